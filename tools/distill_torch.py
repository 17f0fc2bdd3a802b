"""The recipe of `python -m specviz distill` with PyTorch: for a CUDA GPU, or a CPU with bfloat16 matrix units.

    python tools/distill_torch.py write --target FOLDER --work WORK --seed 1 --minutes 30
    python tools/distill_torch.py train --target FOLDER --work WORK --student 4L --layers 0,1,2,29 --minutes 60
    python tools/distill_torch.py export --work WORK --student 4L --out FOLDER

FOLDER of the target is what `python -m specviz models path smollm2-135m` prints. `write` and `train` may run at the
same time, several of each; each may be killed and started again. Texts are kept in the shards of
`specviz.distill.samples`; the folder of the draft is written by `specviz.distill.folder`.

Training has a constant learning rate, so that it can always go on; `train --decay-minutes` goes from the last
checkpoint down to a rate of nothing, beside it, which is what gets exported.

Needs torch, transformers and safetensors; only `export` needs MLX.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from specviz.distill.held_out import HELD_OUT  # noqa: E402
from specviz.distill.prompts import Prompt, fix_prompt, summarise_prompt, training_prompts  # noqa: E402
from specviz.distill.samples import (  # noqa: E402
    SOFT_TEMPERATURES,
    TOP,
    Rows,
    Sample,
    Shard,
    load_shard,
    save_shard,
)
from specviz.models.tokenizer import ModelTokenizer  # noqa: E402

TEMPERATURES = (0.0, 0.0, 0.0, 0.5, 0.5, 0.8, 0.8, 0.8, 1.0, 1.0)
OWN_QUESTION = "own question"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HALF = torch.bfloat16
Config = dict[str, Any]
STARTED = time.perf_counter()


def log(*words: object) -> None:
    print(f"[{time.perf_counter() - STARTED:7.1f} s]", *words, flush=True)


# --- The model -----------------------------------------------------------------------------------------------------


class Layer(nn.Module):
    """One Llama layer with grouped queries and interleaved rotary embedding (`rope_traditional`)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        hidden, ffn = config["hidden_size"], config["intermediate_size"]
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim, self.eps = hidden // self.heads, config["rms_norm_eps"]
        self.input_layernorm = nn.Parameter(torch.ones(hidden))
        self.post_attention_layernorm = nn.Parameter(torch.ones(hidden))
        self.q_proj = nn.Linear(hidden, self.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(hidden, self.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden, self.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.head_dim, hidden, bias=False)
        self.gate_proj = nn.Linear(hidden, ffn, bias=False)
        self.up_proj = nn.Linear(hidden, ffn, bias=False)
        self.down_proj = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], cache: Tensor | None, at: int) -> Tensor:
        """x (B, L, hidden) at positions at … at+L-1; a cache (2, B, kv_heads, max, head_dim) is written in place."""
        b, n, _ = x.shape
        h = F.rms_norm(x, (x.shape[-1],), self.input_layernorm.to(x.dtype), self.eps)
        q = rotate(self.q_proj(h).view(b, n, self.heads, self.head_dim).transpose(1, 2), rope)
        k = rotate(self.k_proj(h).view(b, n, self.kv_heads, self.head_dim).transpose(1, 2), rope)
        v = self.v_proj(h).view(b, n, self.kv_heads, self.head_dim).transpose(1, 2)
        groups = self.heads // self.kv_heads
        if cache is not None:
            cache[0, :, :, at : at + n], cache[1, :, :, at : at + n] = k, v
        if cache is not None and n == 1:
            # The queries of one group see the same keys: one row each, no mask, nothing copied.
            grouped = q.reshape(b, self.kv_heads, groups, self.head_dim)
            out = F.scaled_dot_product_attention(grouped, cache[0, :, :, : at + 1], cache[1, :, :, : at + 1])
            out = out.reshape(b, 1, -1)
        else:
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, -1)
        x = x + self.o_proj(out)
        h = F.rms_norm(x, (x.shape[-1],), self.post_attention_layernorm.to(x.dtype), self.eps)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))


class Llama(nn.Module):
    """Embedding, layers, norm; the head is the embedding."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = nn.Parameter(torch.ones(config["hidden_size"]))

    def forward(self, ids: Tensor, caches: Tensor | None = None, at: int = 0) -> Tensor:
        """Hidden states (B, L, hidden) in half precision, normed, ready for the head."""
        x = F.embedding(ids, self.embed.weight).to(HALF)
        size = self.config["hidden_size"] // self.config["num_attention_heads"]
        turns = self.config["rope_theta"] ** (-torch.arange(0, size, 2, device=ids.device).float() / size)
        angles = torch.outer(torch.arange(at, at + ids.shape[1], device=ids.device).float(), turns)
        rope = angles.cos().to(HALF), angles.sin().to(HALF)
        for i, layer in enumerate(self.layers):
            x = layer(x, rope, None if caches is None else caches[i], at)
        return F.rms_norm(x, (x.shape[-1],), self.norm.to(x.dtype), self.config["rms_norm_eps"])

    def head(self, hidden: Tensor) -> Tensor:
        return hidden @ self.embed.weight.to(hidden.dtype).T


def rotate(x: Tensor, rope: tuple[Tensor, Tensor]) -> Tensor:
    """Turn each pair (x[2i], x[2i+1]) by its position's angle."""
    cos, sin = rope
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def names(model: Llama) -> Iterator[tuple[Tensor, str]]:
    """(parameter, its name in mlx-lm's Llama)."""
    yield model.embed.weight, "model.embed_tokens.weight"
    yield model.norm, "model.norm.weight"
    for i, layer in enumerate(model.layers):
        for name, parameter in layer.named_parameters():
            part = name.removesuffix(".weight")
            inside = {"g": "mlp.", "u": "mlp.", "d": "mlp.", "i": "", "p": ""}.get(part[0], "self_attn.")
            yield parameter, f"model.layers.{i}.{inside}{part}.weight"


@torch.no_grad()
def read_target(folder: Path) -> Llama:
    """An MLX folder, dequantised: MLX packs w = scale · code + bias, codes from the low bits of uint32 up."""
    config = json.loads((folder / "config.json").read_text())
    stored = load_file(folder / "model.safetensors")
    quantization = config["quantization"]
    model = Llama(config)
    for parameter, name in names(model):
        base = name.removesuffix(".weight")
        value = stored[name]
        if f"{base}.scales" in stored:
            bits = quantization.get(base, quantization)["bits"]
            words = value.to(torch.int64) & 0xFFFFFFFF
            codes = torch.stack([(words >> (bits * i)) & (2**bits - 1) for i in range(32 // bits)], -1).flatten(-2)
            scales, biases = stored[f"{base}.scales"].float(), stored[f"{base}.biases"].float()
            value = (codes.view(*scales.shape, -1).float() * scales[..., None] + biases[..., None]).flatten(-2)
        parameter.copy_(value)
    return model.eval()


# --- What the target writes ----------------------------------------------------------------------------------------


@torch.no_grad()
def write_texts(
    target: Llama, prompts: Sequence[Sequence[int]], heats: Sequence[float], limit: int, stop: int
) -> list[tuple[list[int], Rows]]:
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
        out.append((texts[i, len(prompt) : len(prompt) + n].tolist(), Rows(top[kept], logp[kept], sums[kept])))
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
        self.held = {p.text for p in HELD_OUT}
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
        if choice < 0.15 and self.questions:
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
                    samples.append(Sample(prompt.domain, heat, *arrays, rows))
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
        log(f"shard {number}: {tokens:,} tokens, {tokens / (time.perf_counter() - STARTED):.0f}/s")
        if time.perf_counter() - STARTED > options.minutes * 60:
            break


# --- Vocabulary and student ----------------------------------------------------------------------------------------


def choose_vocabulary(samples: Sequence[Sample], target: Llama, size: int, always: Sequence[int]) -> dict[str, Tensor]:
    """tokens (V,) ascending target ids; inputs (target tokens,) the draft id that stands for each."""
    total = target.embed.weight.shape[0]
    counts = np.zeros(total)
    for sample in samples:
        # What it might have written counts as what it wrote; prompts count a little, since their tokens are read.
        np.add.at(counts, sample.rows.ids.ravel(), np.exp(sample.rows.logprobs).ravel())
        np.add.at(counts, sample.prompt_ids, 0.1)
    ranked = np.sort(counts)[::-1]
    for cut in (4096, 8192, 12288, 16384):
        log(f"the {cut} most frequent tokens: {ranked[:cut].sum() / ranked.sum():.4f} of all")
    counts[list(always)] = counts.max() + 1
    tokens = torch.from_numpy(np.sort(np.argsort(-counts, kind="stable")[:size]))
    rows = F.normalize(target.embed.weight.float().cpu(), dim=-1)
    inputs = torch.cat([(part @ rows[tokens].T).argmax(-1) for part in rows.split(4096)])
    inputs[tokens] = torch.arange(len(tokens))
    return {"tokens": tokens, "inputs": inputs}


@torch.no_grad()
def cut_student(target: Llama, tokens: Tensor, layers: Sequence[int], ffn: int) -> Llama:
    """Layers of the target, their feed-forward blocks thinned to the neurons with the largest weights."""
    config = {k: v for k, v in target.config.items() if k != "quantization"}
    config |= {"vocab_size": len(tokens), "num_hidden_layers": len(layers), "intermediate_size": ffn}
    student = Llama(config).to(DEVICE)
    student.embed.weight.copy_(target.embed.weight[tokens])
    student.norm.copy_(target.norm)
    for mine, number in zip(student.layers, layers, strict=True):
        theirs = dict(target.layers[number].named_parameters())
        strength = theirs["down_proj.weight"].norm(dim=0)
        for name in ("gate_proj.weight", "up_proj.weight"):
            strength = strength * theirs[name].norm(dim=1)
        kept = strength.topk(ffn).indices.sort().values
        for name, parameter in mine.named_parameters():
            if name in ("gate_proj.weight", "up_proj.weight"):
                parameter.copy_(theirs[name][kept])
            else:
                parameter.copy_(theirs[name][:, kept] if name == "down_proj.weight" else theirs[name])
    return student


# --- Training ------------------------------------------------------------------------------------------------------


@dataclass
class Batch:
    """ids (B, L) of the target, padded on the right; where (n,) flat positions whose next token the target wrote."""

    ids: Tensor
    where: Tensor
    top: Tensor
    logp: Tensor
    sums: Tensor


def batches(folder: Path, padded: int, chooser: random.Random) -> Iterator[Batch]:
    """For ever: texts of about one length together, in random order; shards that are new come in with each pass."""
    samples: dict[Path, tuple[Sample, ...]] = {}
    while True:
        for path in sorted(folder.glob("*.npz")):
            if path not in samples:
                samples[path] = load_shard(path).samples
        everything = [s for part in samples.values() for s in part]
        log(f"{len(everything):,} texts, {sum(len(s.token_ids) for s in everything):,} tokens of the target")
        lengths = [len(s.prompt_ids) + len(s.token_ids) for s in everything]
        order = sorted(range(len(everything)), key=lambda i: lengths[i] + chooser.randint(0, 24))
        groups: list[list[int]] = [[]]
        longest = 0
        for i in order:
            longest = max(longest, lengths[i])
            if (len(groups[-1]) + 1) * longest > padded and groups[-1]:
                groups.append([])
                longest = lengths[i]
            groups[-1].append(i)
        chooser.shuffle(groups)
        for group in groups:
            yield collate([everything[i] for i in group])


def collate(samples: Sequence[Sample]) -> Batch:
    longest = max(len(s.prompt_ids) + len(s.token_ids) for s in samples)
    ids = np.zeros((len(samples), longest), dtype=np.int64)
    where = []
    for k, s in enumerate(samples):
        text = np.concatenate([s.prompt_ids, s.token_ids])
        ids[k, : len(text)] = text
        where.append(k * longest + len(s.prompt_ids) - 1 + np.arange(len(s.token_ids)))
    parts = (np.concatenate([getattr(s.rows, n) for s in samples]) for n in ("ids", "logprobs", "log_sums"))
    arrays = (ids, np.concatenate(where), *parts)
    return Batch(*(torch.from_numpy(a).to(DEVICE) for a in arrays))


@torch.no_grad()
def loss_and_gradient(z: Tensor, top: Tensor, logp: Tensor, sums: Tensor, tv: float) -> tuple[Tensor, Tensor]:
    """Forward KL at temperature 1 and 1 - Σ min(p, q) at the soft temperatures: their means, and d loss / d z.

    Written out by hand: one exponential per logit and temperature, where autograd keeps and makes many more.

    Args:
        z: (n, V) the student's logits, overwritten. top: (n, 64) draft ids of the target's most probable tokens, -1
            for those that the student lacks. logp, sums: see `specviz.distill.samples.Rows`.
        tv: weight of the acceptance terms, 1 - tv that of KL.

    Returns:
        (KL, Σ min at 0.8, Σ min at 0.3) means; the gradient (n, V) of the mean loss.
    """
    kept, index = top >= 0, top.clamp(min=0).long()
    n = len(z)
    z -= z.amax(-1, keepdim=True)
    one = z.exp()
    total = one.sum(-1, keepdim=True)
    p = logp.exp() * kept
    kl = (p * (logp - z.gather(1, index) + total.log())).sum(-1)
    gradient = one.mul_((1 - tv) * p.sum(-1, keepdim=True) / total / n)
    sparse = -(1 - tv) / n * p
    shares = []
    for i, t in enumerate(SOFT_TEMPERATURES):
        soft = (z / t).exp_()
        total = soft.sum(-1, keepdim=True)
        p, q = (logp / t - sums[:, i : i + 1]).exp() * kept, soft.gather(1, index) / total * kept
        shares.append(torch.minimum(p, q).sum(-1).mean())
        low = q * (q < p)  # where more of q would be accepted
        weight = tv / len(SOFT_TEMPERATURES) / t / n
        gradient.addcmul_(soft, weight * low.sum(-1, keepdim=True) / total)
        sparse = sparse - weight * low
    gradient.scatter_add_(1, index, sparse)
    return torch.stack([kl.mean(), *shares]), gradient


def train(options: argparse.Namespace) -> None:
    folder: Path = options.work / options.student
    folder.mkdir(parents=True, exist_ok=True)
    target = read_target(options.target)
    shards = options.work / "shards"
    if not (folder / "vocabulary.pt").exists():
        first = [s for p in sorted(shards.glob("*.npz")) for s in load_shard(p).samples]
        tokenizer = ModelTokenizer(options.target)
        always = sorted({*tokenizer.stop_ids, *tokenizer.encode(tokenizer.chat("x"))})
        torch.save(choose_vocabulary(first, target, options.vocab, always), folder / "vocabulary.pt")
    vocabulary = torch.load(folder / "vocabulary.pt")
    tokens, inputs = vocabulary["tokens"].to(DEVICE), vocabulary["inputs"].to(DEVICE)
    own = torch.full((len(inputs),), -1, device=DEVICE)
    own[tokens] = torch.arange(len(tokens), device=DEVICE)
    layers = tuple(int(n) for n in options.layers.split(","))
    student = cut_student(target, tokens, layers, options.ffn)
    del target
    optimizer = torch.optim.AdamW(student.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.01, fused=True)
    state = {"step": 0, "learned": 0, "seconds": 0.0}
    decaying = options.decay_minutes > 0
    checkpoint, decayed = folder / "checkpoint.pt", folder / "decayed.pt"
    if checkpoint.exists():
        stored = torch.load(checkpoint, map_location=DEVICE)
        student.load_state_dict(stored["student"])
        optimizer.load_state_dict(stored["optimizer"])
        state = stored["state"]
        log("goes on from", state)
    seconds = 60 * (options.decay_minutes if decaying else options.minutes)
    began = saved = time.perf_counter()
    before = state["seconds"]
    means, count = torch.zeros(3), 0

    def save(path: Path) -> None:
        state["seconds"] = before + time.perf_counter() - began
        facts = {
            "layers": layers,
            "ffn": options.ffn,
            "torch": torch.__version__,
            "seed": options.seed,
            "lr": options.lr,
        }
        whole = {"student": student.state_dict(), "state": state, "facts": facts, "config": student.config}
        if path == checkpoint:
            whole["optimizer"] = optimizer.state_dict()
        torch.save(whole, path.with_suffix(".partial"))
        path.with_suffix(".partial").replace(path)

    for batch in batches(shards, options.padded, random.Random(options.seed + state["step"])):
        spent = time.perf_counter() - began
        if spent >= seconds:
            break
        rate = min(1.0, (state["step"] + 1) / 60) * (1 - spent / seconds if decaying else 1.0)
        for group in optimizer.param_groups:
            group["lr"] = options.lr * rate
        tv = 0.9 * min(1.0, state["learned"] / options.move)
        with torch.autocast(DEVICE, HALF):
            hidden = student(inputs[batch.ids]).flatten(0, 1)[batch.where]
        head = student.embed.weight.to(HALF)
        top = own[batch.top.long()]
        mean = torch.zeros(3)
        back, n = torch.empty_like(hidden), len(hidden)
        into = torch.zeros_like(student.embed.weight)
        with torch.no_grad():
            for rows in torch.arange(n, device=DEVICE).split(options.rows):
                z = (hidden[rows] @ head.T).float()
                found, dz = loss_and_gradient(z, top[rows], batch.logp[rows], batch.sums[rows], tv)
                dz = (dz * (len(rows) / n)).to(HALF)
                back[rows] = dz @ head
                into += dz.T @ hidden[rows]
                mean += found.cpu() * (len(rows) / n)
        optimizer.zero_grad(set_to_none=True)
        hidden.backward(back)
        student.embed.weight.grad = into if student.embed.weight.grad is None else student.embed.weight.grad + into
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        state["step"] += 1
        state["learned"] += n
        means, count = means + mean, count + 1
        if count == options.every:
            kl, warm, cold = (means / count).tolist()
            per_second = (state["learned"]) / (before + time.perf_counter() - began)
            log(
                f"step {state['step']}, {state['learned']:,} tokens, {per_second:.0f}/s, rate {options.lr * rate:.1e}, "
                f"tv {tv:.2f} | kl {kl:.3f} warm {warm:.4f} cold {cold:.4f}"
            )
            means, count = torch.zeros(3), 0
        if time.perf_counter() - saved > 120 and not decaying:
            save(checkpoint)
            saved = time.perf_counter()
    save(decayed if decaying else checkpoint)
    log("saved", state)


# --- Results -------------------------------------------------------------------------------------------------------


def export(options: argparse.Namespace) -> None:
    """The folder of a draft, from the decayed weights where there are some, measured on the held-out prompts."""
    from specviz.distill.card import Training, describe, versions
    from specviz.distill.folder import finish
    from specviz.distill.measure import measure
    from specviz.models.distilled import DraftVocabulary

    folder: Path = options.work / options.student
    path = folder / "decayed.pt" if (folder / "decayed.pt").exists() else folder / "checkpoint.pt"
    stored, vocabulary = torch.load(path, map_location="cpu"), torch.load(folder / "vocabulary.pt")
    model = Llama(stored["config"])
    model.load_state_dict(stored["student"])
    weights = {name: parameter.detach().float().numpy() for parameter, name in names(model)}
    own = DraftVocabulary(*(vocabulary[n].numpy().astype(np.int32) for n in ("tokens", "inputs")))
    shards = [load_shard(p) for p in sorted((options.work / "shards").glob("*.npz"))]
    written = np.concatenate([s.token_ids for shard in shards for s in shard.samples])
    facts, state = stored["facts"], stored["state"]
    training = Training(
        command=COMMANDS.format(layers=",".join(map(str, facts["layers"])), vocab=len(own.tokens), lr=facts["lr"]),
        seed=facts["seed"],
        layers=tuple(facts["layers"]),
        texts=sum(len(shard.samples) for shard in shards),
        tokens=len(written),
        tokens_seen=state["learned"],
        coverage=float(np.isin(written, own.tokens).mean()),
        minutes=(sum(shard.seconds for shard in shards) + state["seconds"]) / 60,
        machine=options.machine,
        date=datetime.date.today().isoformat(),
        data=DATA,
        recipe=RECIPE,
        complete=True,
        versions=versions("torch", "numpy"),
    )
    target_vocabulary = ModelTokenizer(options.target).vocabulary

    def put(found: Sequence[Any]) -> None:
        about = describe(options.name, target_vocabulary, training, found)
        finish(options.out, {**stored["config"], "model_type": "llama"}, weights, own, about, bits=options.bits)

    put([])
    put(measure(f"model:{options.out}", options.name, on_progress=lambda _: None))


#: What the model card says; `{...}` are filled in.
COMMANDS = (
    "python tools/distill_torch.py write --target TARGET --work WORK --seed 1; "
    "python tools/distill_torch.py train --target TARGET --work WORK --layers {layers} --vocab {vocab} --lr {lr}; "
    "the same with --decay-minutes; python tools/distill_torch.py export --work WORK --out OUT"
)
DATA = (
    "Prompts written for specviz in ten domains (chat, explanation, story, list, e-mail, Python, JavaScript, JSON, "
    "summarise, fix), some that the target asked itself, continuing an empty user turn, and its own earlier answers as "
    "texts to summarise and to correct. Answered with the chat template at temperatures 0, 0.5, 0.8 and 1.0."
)
RECIPE = (
    "Loss: forward KL at temperature 1, moving to 1 - Σ min(p, q) at temperatures 0.8 and 0.3. AdamW, bfloat16 matrix "
    "products over float32 weights, a constant rate, and a linear decay in the end."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(required=True)
    w = jobs.add_parser("write")
    w.set_defaults(run=write)
    w.add_argument("--batch", type=int, default=192, help="texts that are written at once")
    w.add_argument("--limit", type=int, default=192, help="tokens of an answer")
    t = jobs.add_parser("train")
    t.set_defaults(run=train)
    t.add_argument("--layers", default="0,1,2,29")
    t.add_argument("--ffn", type=int, default=1536)
    t.add_argument("--vocab", type=int, default=12288)
    t.add_argument("--padded", type=int, default=4096, help="positions of a batch")
    t.add_argument("--rows", type=int, default=256, help="rows of logits at once")
    t.add_argument("--lr", type=float, default=1e-3)
    t.add_argument("--move", type=float, default=2e6, help="tokens over which the loss moves from KL to acceptance")
    t.add_argument("--decay-minutes", type=float, default=0.0)
    t.add_argument("--every", type=int, default=50)
    e = jobs.add_parser("export")
    e.set_defaults(run=export)
    e.add_argument("--out", type=Path, required=True)
    e.add_argument("--name", default="smollm2-135m", help="of the target")
    e.add_argument("--bits", type=int, default=6)
    e.add_argument("--machine", default="2 CPU cores with bfloat16 matrix units", help="what it ran on, for the card")
    for job in (w, t, e):
        job.add_argument("--target", type=Path, required=True)
    for job in (w, t):
        job.add_argument("--seed", type=int, default=0)
        job.add_argument("--minutes", type=float, default=30)
    for job in (t, e):
        job.add_argument("--student", default="student")
    for job in (w, t, e):
        job.add_argument("--work", type=Path, required=True)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
