"""Measure what specviz claims about its own speed: `python -m tests.benchmarks [NAME …]`.

Prints one JSON object: ratios from one run on one machine, medians with their spread. Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from specviz.core.decoding import autoregressive, speculative
from specviz.core.events import Metrics
from specviz.core.ports import Drafter, Scorer
from specviz.core.sampling import Logits
from specviz.core.settings import Settings
from specviz.drafters.model import ModelDrafter
from specviz.drafters.ngram import NgramDrafter
from specviz.engines.mlx.language_model import LanguageModel
from specviz.record.trace import TraceWriter
from specviz.setup import loading
from specviz.targets.local import LocalTarget
from tests.benchmarks.figures import spread
from tests.toys import TableModel

NAME = "smollm2-135m"
PROMPT = "Explain why the sky is blue."


class TimedScorer(Scorer):
    """A scorer that keeps the time spent in the model."""

    def __init__(self, model: LanguageModel) -> None:
        self._scorer, self.spent_s = model.scorer(), 0.0

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        began = time.perf_counter()
        try:
            return self._scorer.score(token_ids, rows)
        finally:
            self.spent_s += time.perf_counter() - began

    def reset(self) -> None:
        self._scorer.reset()


def target_of(model: LanguageModel, scorer: TimedScorer) -> LocalTarget:
    # No stop tokens: every run has the same length.
    return LocalTarget(NAME, TableModel(scorer, model.tokenizer, model.vocabulary, max_context=model.max_context))


def chat_ids(model: LanguageModel) -> list[int]:
    return model.tokenizer.encode(model.tokenizer.chat(PROMPT))


def loop_overhead(model: LanguageModel) -> dict[str, Any]:
    """Wall time that is not in the models, events recorded to disk: loop, rule, bookkeeping, JSON."""
    out = {}
    for draft in ("ngram", f"model:{NAME}"):
        for temperature in (0.0, 0.8):
            shares = []
            for _ in range(3):
                judge, proposer = TimedScorer(model), TimedScorer(model)
                drafter: Drafter = (
                    NgramDrafter() if draft == "ngram" else ModelDrafter(draft, proposer, model.tokenizer)
                )
                wanted = Settings(temperature=temperature, max_tokens=64)
                with tempfile.TemporaryDirectory() as folder, TraceWriter(Path(folder) / "t.jsonl", wanted) as writer:
                    began = time.perf_counter()
                    for event in speculative(drafter, target_of(model, judge), chat_ids(model), wanted, seed=0):
                        writer.write(event)
                    wall = time.perf_counter() - began
                shares.append(1 - (judge.spent_s + proposer.spent_s) / wall)
            out[f"{draft}, T={temperature:g}"] = spread(shares)
    return {"share_of_wall_time": out, "wanted": "<= 0.03"}


def verify_against_context(model: LanguageModel) -> dict[str, Any]:
    """One verification of K=8 at 1,500 tokens of context against 100."""
    words = chat_ids(model)
    text = (words * (1 + 1600 // len(words)))[:1600]
    times: dict[int, list[float]] = {100: [], 1500: []}
    scorers = {n: model.scorer() for n in times}
    for n, scorer in scorers.items():
        scorer.score(text[:n], 1)
    for repeat in range(12):
        for n, scorer in scorers.items():
            began = time.perf_counter()
            scorer.score([*text[:n], *text[n : n + 8]], 9)
            if repeat:
                times[n].append((time.perf_counter() - began) * 1000)
    ratio = statistics.median(times[1500]) / statistics.median(times[100])
    return {"ratio": round(ratio, 3), "wanted": "<= 1.5", "ms": {str(n): spread(t) for n, t in times.items()}}


def against_mlx_lm(model: LanguageModel) -> dict[str, Any]:
    """Tokens per second against mlx-lm's own speculation and plain generation, on the same weights, interleaved."""
    from mlx_lm import stream_generate
    from mlx_lm.sample_utils import make_sampler
    from mlx_lm.tokenizer_utils import TokenizerWrapper
    from transformers import AutoTokenizer

    from specviz.store import store

    path = store.local_path(NAME)
    hf = AutoTokenizer.from_pretrained(path)
    wrapped = TokenizerWrapper(hf, eos_token_ids=[-1])
    ids, n, k = chat_ids(model), 64, 4

    def theirs(temperature: float, draft: bool, seed: int) -> float:
        import mlx.core as mx

        mx.random.seed(seed)
        options: dict[str, Any] = {"sampler": make_sampler(temp=temperature), "max_tokens": n}
        if draft:
            options |= {"draft_model": model.model, "num_draft_tokens": k}
        stamps = [time.perf_counter() for _ in stream_generate(model.model, wrapped, ids, **options)]
        return steady(stamps)

    def ours(temperature: float, draft: bool, seed: int) -> float:
        wanted = Settings(temperature=temperature, k=k, max_tokens=n, seed=seed)
        target = target_of(model, TimedScorer(model))
        drafter = ModelDrafter(NAME, model.scorer(), model.tokenizer)
        events = speculative(drafter, target, ids, wanted) if draft else autoregressive(target, ids, wanted)
        stamps: list[float] = []
        for event in events:
            if isinstance(event, Metrics):
                stamps += [time.perf_counter()] * event.emitted
        return steady(stamps)

    def steady(stamps: Sequence[float]) -> float:
        """Tokens per second behind the first block, so that prefill and loading are outside on both sides."""
        later = [s for s in stamps if s > stamps[0]]
        first = max(s for s in stamps if s <= stamps[min(k, len(stamps) - 1)])
        later = [s for s in stamps if s > first]
        return len(later) / (stamps[-1] - first)

    out: dict[str, Any] = {}
    for temperature, wanted in ((0.0, ">= 1.0"), (0.8, ">= 1.25")):
        for draft in (True, False):
            pairs = []
            for seed in range(5):
                a, b = ours(temperature, draft, seed), theirs(temperature, draft, seed)
                if seed:
                    pairs.append((a, b))
            key = f"{'speculative K=4, draft = target' if draft else 'plain'}, T={temperature:g}"
            out[key] = {
                "ratio": round(statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs), 3),
                "specviz": spread([a for a, _ in pairs]),
                "mlx_lm": spread([b for _, b in pairs]),
            } | ({"wanted": wanted} if draft else {})
    return out


_PREFILL = """
import json, sys, time
from specviz.setup import loading
model = loading.load_mlx_model("smollm2-135m")
ids = model.tokenizer.encode(model.tokenizer.chat("Explain why the sky is blue."))
model.scorer().score(ids[:2], 1)
times = []
for _ in range(5):
    scorer = model.scorer()
    began = time.perf_counter()
    scorer.score(ids, 1)
    times.append(time.perf_counter() - began)
print(json.dumps([len(ids), times]))
"""


def prefill_blas(_: LanguageModel) -> dict[str, Any]:
    """Prefill of a 37-token prompt with the fast BLAS against MLX's own."""
    import os

    found = {}
    for name, value in (("fast", None), ("own", "none")):
        environment = dict(os.environ)
        environment.pop("SPECVIZ_BLAS", None)
        if value:
            environment["SPECVIZ_BLAS"] = value
        ran = subprocess.run(
            [sys.executable, "-c", _PREFILL], env=environment, capture_output=True, text=True, check=True
        )
        tokens, times = json.loads(ran.stdout)
        found[name] = times
    ratio = statistics.median(found["fast"]) / statistics.median(found["own"])
    seconds = {name: spread(times) for name, times in found.items()}
    return {"tokens": tokens, "ratio": round(ratio, 4), "wanted": "<= 0.1", "s": seconds}


BENCHMARKS: dict[str, Callable[[LanguageModel], dict[str, Any]]] = {
    "loop_overhead": loop_overhead,
    "verify_against_context": verify_against_context,
    "against_mlx_lm": against_mlx_lm,
    "prefill_blas": prefill_blas,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all by default")
    names = parser.parse_args().names or list(BENCHMARKS)
    model = loading.load_mlx_model(NAME)
    print(json.dumps({name: BENCHMARKS[name](model) for name in names}, indent=2))


if __name__ == "__main__":
    main()
