"""A student learns from the shards: AdamW at a constant rate, so that it can always go on, and a decay beside it."""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from typing import Any

import torch
from batches import Batch, batches
from loss import loss_and_gradient
from model import DEVICE, HALF, Llama, read_target
from progress import log
from student import choose_vocabulary, cut_student

from specviz.distill.samples import load_shard
from specviz.engines.tokenizer import ModelTokenizer

WARM_UP_STEPS = 60
#: What acceptance weighs in the loss in the end; the rest is KL, which keeps the tails in place.
TV_MOST = 0.9
CHECKPOINT_S = 120.0


class Trainer:
    """A student, its optimizer, and how far they have come.

    Attributes:
        state: steps, tokens learned from, and seconds, over all sessions.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        """Cut the student out of the target, or go on from its checkpoint."""
        self._options = options
        self._folder: Path = options.work / options.student
        self._folder.mkdir(parents=True, exist_ok=True)
        target = read_target(options.target)
        vocabulary = self._vocabulary(target)
        self._inputs = vocabulary["inputs"].to(DEVICE)
        tokens = vocabulary["tokens"].to(DEVICE)
        self._own = torch.full((len(self._inputs),), -1, device=DEVICE)
        self._own[tokens] = torch.arange(len(tokens), device=DEVICE)
        self._layers = tuple(int(n) for n in options.layers.split(","))
        self.student = cut_student(target, tokens, self._layers, options.ffn)
        self._forward: Any = torch.compile(self.student, dynamic=True) if options.compile else self.student
        self._optimizer = torch.optim.AdamW(
            self.student.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.01, fused=True
        )
        self.state: dict[str, Any] = {"step": 0, "learned": 0, "seconds": 0.0}
        if self.checkpoint.exists():
            stored = torch.load(self.checkpoint, map_location=DEVICE)
            self.student.load_state_dict(stored["student"])
            self._optimizer.load_state_dict(stored["optimizer"])
            self.state = stored["state"]
            log("goes on from", self.state)

    @property
    def checkpoint(self) -> Path:
        return self._folder / "checkpoint.pt"

    @property
    def decayed(self) -> Path:
        return self._folder / "decayed.pt"

    def _vocabulary(self, target: Llama) -> dict[str, torch.Tensor]:
        path = self._folder / "vocabulary.pt"
        if not path.exists():
            written = [s for p in sorted((self._options.work / "shards").glob("*.npz")) for s in load_shard(p).samples]
            tokenizer = ModelTokenizer(self._options.target)
            always = sorted({*tokenizer.stop_ids, *tokenizer.encode(tokenizer.chat("x"))})
            torch.save(choose_vocabulary(written, target, self._options.vocab, always), path)
        found: dict[str, torch.Tensor] = torch.load(path)
        return found

    def learn(self, batch: Batch, rate: float) -> torch.Tensor:
        """One step; returns the means of `loss_and_gradient`."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._options.lr * min(1.0, (self.state["step"] + 1) / WARM_UP_STEPS) * rate
        with torch.autocast(DEVICE, HALF):
            hidden = self._forward(self._inputs[batch.ids]).flatten(0, 1)[batch.where]
        mean, gradient, into_head = self._head(hidden.detach(), batch)
        self._optimizer.zero_grad(set_to_none=True)
        hidden.backward(gradient)
        embedding = self.student.embed.weight
        embedding.grad = into_head if embedding.grad is None else embedding.grad + into_head
        torch.nn.utils.clip_grad_norm_(self.student.parameters(), 1.0)
        self._optimizer.step()
        self.state["step"] += 1
        self.state["learned"] += len(hidden)
        return mean

    @torch.no_grad()
    def _head(self, hidden: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Loss and gradients of hidden states and head, some rows at a time: all logits at once would be gigabytes."""
        tv = TV_MOST * min(1.0, self.state["learned"] / self._options.move)
        embedding = self.student.embed.weight
        head, n = embedding.to(HALF), len(hidden)
        top = self._own[batch.top.long()]
        mean, gradient, into_head = torch.zeros(3), torch.empty_like(hidden), torch.zeros_like(embedding)
        for rows in torch.arange(n, device=DEVICE).split(self._options.rows):
            logits = (hidden[rows] @ head.T).float()
            found, back = loss_and_gradient(logits, top[rows], batch.logp[rows], batch.sums[rows], tv)
            share = len(rows) / n
            back = (back * share).to(HALF)
            gradient[rows] = back @ head
            into_head += back.T @ hidden[rows]
            mean += found.cpu() * share
        return mean, gradient, into_head

    def save(self, path: Path) -> None:
        """Whole or not at all."""
        facts = {"layers": self._layers, "ffn": self._options.ffn, "seed": self._options.seed, "lr": self._options.lr}
        whole = {
            "student": self.student.state_dict(), "state": self.state, "facts": facts, "config": self.student.config,
        }  # fmt: skip
        if path == self.checkpoint:
            whole["optimizer"] = self._optimizer.state_dict()
        torch.save(whole, path.with_suffix(".partial"))
        path.with_suffix(".partial").replace(path)


def train(options: argparse.Namespace) -> None:
    """Train for --minutes at a constant rate, or for --decay-minutes down to none."""
    trainer = Trainer(options)
    decaying = options.decay_minutes > 0
    seconds = 60 * (options.decay_minutes if decaying else options.minutes)
    began = saved = time.perf_counter()
    before = trainer.state["seconds"]
    means, steps = torch.zeros(3), 0
    for batch in batches(options.work / "shards", options.padded, random.Random(options.seed + trainer.state["step"])):
        spent = time.perf_counter() - began
        trainer.state["seconds"] = before + spent
        if spent >= seconds:
            break
        rate = 1 - spent / seconds if decaying else 1.0
        means, steps = means + trainer.learn(batch, rate), steps + 1
        if steps == options.every:
            kl, warm, cold = (means / steps).tolist()
            log(
                f"step {trainer.state['step']}, {trainer.state['learned']:,} tokens, rate × {rate:.2f} | "
                f"kl {kl:.3f} warm {warm:.4f} cold {cold:.4f}"
            )
            means, steps = torch.zeros(3), 0
        if time.perf_counter() - saved > CHECKPOINT_S and not decaying:
            trainer.save(trainer.checkpoint)
            saved = time.perf_counter()
    trainer.save(trainer.decayed if decaying else trainer.checkpoint)
    log("saved", trainer.state)
