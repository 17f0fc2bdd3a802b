"""What the target writes: batches of texts, with its distributions, into shards."""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from model import DEVICE, HALF, Llama, read_target
from progress import log, seconds
from torch import Tensor

from specviz.distill.prompts import Prompt, fix_prompt, held_out, summarise_prompt, training_prompts
from specviz.distill.samples import SOFT_TEMPERATURES, TOP, Shard, TeacherRows, TeacherText, save_shard
from specviz.engines.tokenizer import ModelTokenizer

#: Of training texts, drawn anew for each: mostly the two at which a draft is measured.
TEMPERATURES = (0.0, 0.0, 0.0, 0.5, 0.5, 0.8, 0.8, 0.8, 1.0, 1.0)
OWN_QUESTION = "own question"


@torch.no_grad()
def write_texts(
    target: Llama, prompts: Sequence[Sequence[int]], heats: Sequence[float], limit: int, stop: int
) -> list[tuple[list[int], TeacherRows]]:
    """The target continues a batch of prompts, in step: (what it wrote, the stop token included; its distributions).

    Texts that are still in their prompt take the prompt's token instead of the drawn one, so lengths may differ.
    Tokens are drawn from the 64 most probable.
    """
    longest, shortest = max(map(len, prompts)), min(map(len, prompts))
    ids = torch.full((len(prompts), longest + limit), stop, dtype=torch.int64)
    for i, prompt in enumerate(prompts):
        ids[i, : len(prompt)] = torch.tensor(list(prompt))
    ids = ids.to(DEVICE)
    lengths = torch.tensor([len(p) for p in prompts], device=DEVICE)
    heat = torch.tensor(list(heats), device=DEVICE)[:, None]
    alive = torch.arange(len(prompts), device=DEVICE)
    size = (len(target.layers), 2, len(prompts), target.config["num_key_value_heads"], longest + limit, 64)
    caches = torch.empty(size, dtype=HALF, device=DEVICE)
    found: list[tuple[Tensor, ...]] = []  # per step: which texts, and their rows
    over = torch.zeros(len(prompts), dtype=torch.bool, device=DEVICE)
    hidden = target(ids[:, :shortest], caches)[:, -1:]
    for at in range(shortest, longest + limit):
        if at > shortest:
            hidden = target(ids[alive, at - 1 : at], caches, at - 1)
        logits = target.head(hidden)[:, 0].float()
        value, index = logits.topk(TOP, dim=-1)
        value = value - logits.logsumexp(-1, keepdim=True)
        noise = -torch.empty_like(value).exponential_().clamp_(min=1e-30).log_()
        drawn = index.gather(1, (value + noise * heat[alive]).argmax(-1, keepdim=True))[:, 0]
        writing = (at >= lengths[alive]) & ~over
        ids[alive, at] = torch.where(writing, drawn, ids[alive, at])
        found.append((alive[writing], index[writing].to(torch.int32), value[writing].half()))
        over |= writing & ((drawn == stop) | (at + 1 - lengths[alive] >= limit))
        if bool(over.all()):
            break
        if float(over.float().mean()) > 0.15:  # room is made now and then: it copies the caches
            caches, alive, over = caches[:, :, ~over], alive[~over], over[~over]
    which, top, logp = (torch.cat(part) for part in zip(*found, strict=True))
    # By text; a stable sort keeps the steps in order.
    order = which.sort(stable=True).indices
    counts = torch.bincount(which, minlength=len(prompts)).tolist()
    texts, top, logp = ids.cpu().numpy(), top[order].cpu().numpy(), logp[order].float().cpu().numpy()
    # At lower temperatures next to nothing lies outside of the 64.
    sums = np.stack([np.log(np.exp(logp / t).sum(-1)) for t in SOFT_TEMPERATURES], -1).astype(np.float32)
    out, row = [], 0
    for i, (prompt, n) in enumerate(zip(prompts, counts, strict=True)):
        kept = slice(row, row + n)
        out.append((texts[i, len(prompt) : len(prompt) + n].tolist(), TeacherRows(top[kept], logp[kept], sums[kept])))
        row += n
    return out


class Writer:
    """Prompts of all domains without end: written by us, asked by the target itself, and on texts that it wrote."""

    def __init__(self, target: Llama, folder: Path, seed: int, limit: int) -> None:
        self.target, self.limit, self.random = target, limit, random.Random(seed)
        self.tokenizer = ModelTokenizer(folder)
        self.before, self.behind = self.tokenizer.chat("\0").split("\0")
        self.stop = self.tokenizer.encode("<|im_end|>")[0]
        pool = training_prompts(2500, seed)
        self.random.shuffle(pool)
        self.plain = iter([p for p in pool if p.domain not in ("summarise", "fix")] * 9)
        self.on_texts = [p for p in pool if p.domain in ("summarise", "fix")]
        self.held = {p.text for p in held_out()}
        self.questions: list[str] = []
        self.texts: list[str] = []

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(f"{self.before}{text}{self.behind}")

    def ask(self, n: int) -> None:
        """What the target takes for a user's turn, from the template alone."""
        start = self.tokenizer.encode(self.before)
        for ids, _ in write_texts(self.target, [start] * n, [1.0] * n, 64, self.stop):
            text = self.tokenizer.decode(ids[:-1]).strip()
            if ids[-1] == self.stop and len(text) > 8 and text not in self.held:
                self.questions.append(text)

    def next_prompt(self) -> Prompt:
        choice = self.random.random()
        if choice < 0.4 and self.questions:
            return Prompt(OWN_QUESTION, self.questions.pop())
        if choice > 0.7:
            if self.texts and self.random.random() < 0.7:
                make = self.random.choice((summarise_prompt, fix_prompt))
                return make(self.texts.pop(self.random.randrange(len(self.texts))), self.random)
            return self.random.choice(self.on_texts)
        return next(self.plain)

    def shards(self, batch: int) -> Iterator[Shard]:
        """Batches of prompts of about one length."""
        while True:
            if len(self.questions) < batch:
                self.ask(batch)
            drawn = [self.next_prompt() for _ in range(4 * batch)]
            encoded = [(self.ids(p.text), p) for p in drawn]
            encoded = sorted((e for e in encoded if len(e[0]) <= 320), key=lambda e: len(e[0]))
            groups = [encoded[i : i + batch] for i in range(0, len(encoded), batch)]
            self.random.shuffle(groups)
            for group in groups:
                began = time.perf_counter()
                heats = [self.random.choice(TEMPERATURES) for _ in group]
                written = write_texts(self.target, [e[0] for e in group], heats, self.limit, self.stop)
                samples = []
                for (prompt_ids, prompt), heat, (ids, rows) in zip(group, heats, written, strict=True):
                    arrays = (np.array(prompt_ids, dtype=np.int32), np.array(ids, dtype=np.int32))
                    samples.append(TeacherText(prompt.domain, heat, *arrays, rows))
                    self.keep(self.tokenizer.decode(ids))
                yield Shard(tuple(samples), time.perf_counter() - began)

    def keep(self, answer: str) -> None:
        """A run of sentences of 25 to 140 words, to be summarised or corrected later."""
        words = answer.split()
        if len(words) < 30 or "```" in answer or "{" in answer or len(self.texts) > 2000:
            return
        text = " ".join(words[: self.random.randint(25, 140)])
        end = max(text.rfind(c) for c in ".!?")
        if end > 80:
            self.texts.append(text[: end + 1])


def write(options: argparse.Namespace) -> None:
    target = read_target(options.target).to(DEVICE, HALF)
    torch.manual_seed(options.seed)
    folder = options.work / "shards"
    folder.mkdir(parents=True, exist_ok=True)
    writer = Writer(target, options.target, options.seed, options.limit)
    tokens = 0
    for number, shard in enumerate(writer.shards(options.batch)):
        save_shard(folder / f"{options.seed:03}-{os.getpid():07}-{number:05}.npz", shard)
        tokens += sum(len(s.token_ids) for s in shard.samples)
        log(f"shard {number}: {tokens:,} tokens, {tokens / (seconds()):.0f}/s")
        if seconds() > options.minutes * 60:
            break
