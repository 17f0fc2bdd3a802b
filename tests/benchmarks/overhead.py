"""What specviz adds to each round: `python -m tests.benchmarks.overhead`.

Everything of a round that is not a pass of a model: rows, draws, rule, events, and the trace written to a file. It is
CPU time of the decoding thread less its time inside `Scorer.score`, so other programs disturb it little. Without
`--engine` the models are tables of rows as peaked as SmolLM2's, and a pass costs nothing. Beside real models the same
work takes two to three times as long, because each pass empties the processor's caches. Nothing here asserts a time.

`exp_us` is what one exp of a row takes at that time: where it is above its usual value, everything was slower.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np

from specviz.bench.suites.builtin import builtin_texts
from specviz.core import session
from specviz.core.events import Error, Metrics
from specviz.core.pair import Pair
from specviz.core.ports import Scorer
from specviz.core.rounds import Explain
from specviz.core.sampling import Ids, Logits
from specviz.core.session import EncodedPrompt
from specviz.core.settings import Sampling, Settings
from specviz.drafters.combined import CombinedDrafter
from specviz.drafters.model import ModelDrafter
from specviz.record.trace import TraceWriter
from specviz.setup.builder import Builder
from specviz.targets.local import LocalTarget
from tests.toys import LetterTokenizer, local_target

VOCABULARY, DRAFTED = 49_152, 12_288
#: (name, settings)
SAMPLINGS = (
    ("T=0", Sampling(0.0)),
    ("T=0.8", Sampling(0.8)),
    ("T=0.8 top-p 0.95", Sampling(0.8, top_p=0.95)),
    ("T=0.8 top-k 40", Sampling(0.8, top_k=40)),
)
#: Tokens of text at which the rounds are measured, and how many tokens long that lasts.
LENGTHS, SPAN = (50, 1500), 200


@dataclass
class Clock:
    """CPU seconds of this thread by part. `models` is in `draft` and `rule` too, and all are in the whole round."""

    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("models", "draft", "rule"), 0.0))

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time added to a part; a pass of a model is taken from the part that it is in."""

        def call(*args: Any, **options: Any) -> Any:
            began, models = time.thread_time(), self.spent["models"]
            try:
                return function(*args, **options)
            finally:
                self.spent[part] += time.thread_time() - began - (self.spent["models"] - models)

        return call


class Timed(Scorer):
    """A scorer whose time is counted as the model's."""

    def __init__(self, scorer: Scorer, clock: Clock) -> None:
        self._scorer, self._clock = scorer, clock

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        began = time.thread_time()
        try:
            return self._scorer.score(token_ids, rows)
        finally:
            self._clock.spent["models"] += time.thread_time() - began

    def reset(self) -> None:
        self._scorer.reset()


class Table(Scorer):
    """Rows by the length of the context, as views: draft and target mean the same position."""

    def __init__(self, rows: Logits) -> None:
        # A block may reach over the end.
        self._rows, self._count = np.concatenate([rows, rows[:17]]), len(rows)

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        at = (len(token_ids) - rows) % self._count
        return self._rows[at : at + rows]

    def reset(self) -> None:
        pass


def peaked(count: int, rng: np.random.Generator) -> Logits:
    """Rows whose best tokens follow a power law: their entropy is from under one to several bits."""
    rows = rng.normal(scale=4.0, size=(count, VOCABULARY)).astype(np.float32)
    for row in rows:
        best = rng.permutation(DRAFTED)[:60]
        row[best] = 24 - rng.uniform(1.5, 5.0) * np.log1p(np.arange(60))
    return rows


def tables() -> tuple[Logits, Ids, Logits]:
    """Rows of the target; the token ids of the draft, and its rows over these."""
    rng = np.random.default_rng(0)
    target = peaked(32, rng)
    tokens = np.sort(rng.permutation(np.arange(DRAFTED, VOCABULARY))[: DRAFTED // 8])
    tokens = np.concatenate([np.arange(DRAFTED - len(tokens)), tokens]).astype(np.int64)
    noise = rng.normal(scale=2.0, size=(len(target), len(tokens))).astype(np.float32)
    return target, tokens, target[:, tokens] + noise


def table_pair() -> Callable[[Clock], Pair]:
    """A pair without models, for a clock."""
    target, tokens, draft = tables()
    tokenizer = LetterTokenizer([f" w{i}" for i in range(VOCABULARY)])

    def pair(clock: Clock) -> Pair:
        scorer = Timed(Table(draft), clock)
        return Pair(
            ModelDrafter("table", scorer, tokenizer, tokens=tokens),
            local_target("table", Timed(Table(target), clock), tokenizer, VOCABULARY),
        )

    return pair


def real_pair(target: str, draft: str, engine: str) -> Callable[[Clock], Pair]:
    """The models themselves, for a clock. No token ends a text."""
    builder, wanted = Builder(), Settings(target=target, draft=draft, engine=engine, min_confidence=0.0)  # type: ignore[arg-type]

    def pair(clock: Clock) -> Pair:
        made = builder.build(wanted)
        judge, drafter = made.target, made.drafter
        assert isinstance(judge, LocalTarget)
        judge.capabilities = dataclasses.replace(judge.capabilities, stop_ids=frozenset())
        judge._scorer = Timed(judge.scorer, clock)
        model = drafter._model if isinstance(drafter, CombinedDrafter) else drafter
        if isinstance(model, ModelDrafter):
            model._scorer, model._stop_ids = Timed(model._scorer, clock), frozenset()
        return made

    return pair


def prompt_of(pair: Pair, length: int) -> list[int]:
    """The first tokens of a long text."""
    text = " ".join(entry.passage for entries in builtin_texts().values() for entry in entries)
    return pair.target.tokenizer.encode(text)[:length]


def rounds_of(
    pair: Pair, clock: Clock, settings: Settings, prompt: Sequence[int], since: int, explain: Explain
) -> list[dict[str, float]]:
    """Milliseconds by part of each round that begins behind `since` tokens of text.

    The trace is written in batches: each round has the mean of all.
    """
    pair.drafter.propose = clock.timed("draft", pair.drafter.propose)  # type: ignore[method-assign]
    pair.target.verify = clock.timed("rule", pair.target.verify)  # type: ignore[method-assign]
    out: list[dict[str, float]] = []
    row, length, count, writing = np.zeros(VOCABULARY, dtype=np.float32), len(prompt), 0, 0.0
    began = time.thread_time()
    with tempfile.TemporaryDirectory() as folder, TraceWriter(Path(folder) / "t.jsonl", settings) as writer:
        for event in session.run(pair, EncodedPrompt(prompt), settings, explain=explain):
            came = time.thread_time()
            writer.write(event)
            written = time.thread_time() - came
            writing += written
            began += written
            if isinstance(event, Error):
                raise RuntimeError(event.message)
            if not isinstance(event, Metrics):
                continue
            count += 1
            if length >= since:
                added = time.thread_time() - began - clock.spent["models"]
                ended = time.thread_time()
                np.exp(row)
                parts = {**clock.spent, "all": added, "exp": time.thread_time() - ended}
                out.append({name: 1000 * s for name, s in parts.items()} | {"emitted": event.emitted})
            length += event.emitted
            clock.spent.update(dict.fromkeys(clock.spent, 0.0))
            began = time.thread_time()
        began = time.thread_time()
    writing += time.thread_time() - began
    trace = 1000 * writing / count
    return [round | {"trace": trace, "all": round["all"] + trace} for round in out]


def told(rounds: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Median and quartiles of what is added, and the mean of each part, in ms."""
    parts = ("draft", "rule", "trace")
    low, middle, high = statistics.quantiles([r["all"] for r in rounds], n=4)
    means = {name: statistics.mean(r[name] for r in rounds) for name in ("all", *parts)}
    means["loop"] = means.pop("all") - sum(means[name] for name in parts)
    return {
        "median_ms": round(middle, 3),
        "quartiles_ms": [round(low, 3), round(high, 3)],
        "rounds": len(rounds),
        "tokens_per_round": round(statistics.mean(r["emitted"] for r in rounds), 2),
        "mean_ms_by_part": {name: round(ms, 3) for name, ms in means.items()},
        "models_ms": round(statistics.median(r["models"] for r in rounds), 3),
        "exp_us": round(statistics.median(r["exp"] for r in rounds) * 1000, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.overhead", description=__doc__)
    parser.add_argument("--engine", choices=("llama", "mlx"), help="measure beside real models")
    parser.add_argument("--target", default="local:smollm2-135m")
    parser.add_argument("--draft", default="model:smollm2-draft")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--stop", action="append", default=[], help="a stop string of the runs")
    parser.add_argument("--explain", type=int, choices=get_args(Explain), default=1)
    options = parser.parse_args()
    pair = real_pair(options.target, options.draft, options.engine) if options.engine else table_pair()
    out: dict[str, Any] = {}
    for name, sampling in SAMPLINGS:
        for length in LENGTHS:
            rounds = []
            for seed in range(options.repeat):
                clock = Clock()
                made = pair(clock)
                # The second half of a long text is output, which grows while it is decoded.
                prompt = prompt_of(made, length // 2) if options.engine else list(range(length // 2))
                settings = Settings(
                    k=options.k,
                    temperature=sampling.temperature,
                    top_k=sampling.top_k,
                    top_p=sampling.top_p,
                    max_tokens=length - len(prompt) + SPAN,
                    stop=tuple(options.stop),
                    seed=seed,
                )
                rounds += rounds_of(made, clock, settings, prompt, length, options.explain)
            out[f"{name}, {length} tokens"] = told(rounds)
            print(name, length, out[f"{name}, {length} tokens"], file=sys.stderr, flush=True)
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
