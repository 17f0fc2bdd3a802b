"""What a draft buys on the held-out prompts: `python -m tests.benchmarks.draft --draft ngram+model:smollm2-draft …`.

Plain decoding, and each setting, one after the other on every prompt, all on one loaded target; the order is drawn anew
for each prompt. Prints one JSON object. Rates leave the first round out on both sides, since it holds the prefill;
a group's rate is its tokens over its seconds. At temperature 0 every text is compared with the plain one, token for
token. Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specviz.core.decoding import autoregressive, speculative
from specviz.core.events import Error, Event, Metrics, VerifyResult
from specviz.core.names import draft_name
from specviz.core.prompt import prepare
from specviz.core.settings import Settings
from specviz.distill.prompts import DOMAINS, Prompt, held_out
from specviz.setup.builder import Builder

COPYING = ("summarise", "fix")


@dataclass
class Sum:
    """Of all runs of one setting in one domain: tokens and seconds without the first rounds; the rest with them."""

    tokens: int = 0
    seconds: float = 0.0
    rounds: int = 0
    emitted: int = 0
    drafted: int = 0
    tested: int = 0
    accepted: int = 0
    split: dict[str, float] = field(default_factory=dict)

    def add(self, metrics: Sequence[Metrics]) -> None:
        for m in metrics[1:]:
            self.tokens += m.emitted
            self.seconds += m.split.wall_ms / 1000
            for part in ("draft_ms", "target_ms", "rule_ms"):
                self.split[part] = self.split.get(part, 0.0) + getattr(m.split, part)
        self.rounds += len(metrics)
        self.emitted += sum(m.emitted for m in metrics)
        self.drafted += sum(m.drafted for m in metrics)
        self.tested += sum(m.tested for m in metrics)
        self.accepted += sum(m.accepted for m in metrics)

    def __add__(self, other: Sum) -> Sum:
        names = ("tokens", "seconds", "rounds", "emitted", "drafted", "tested", "accepted")
        parts = {k: self.split.get(k, 0.0) + other.split.get(k, 0.0) for k in {*self.split, *other.split}}
        return Sum(**{n: getattr(self, n) + getattr(other, n) for n in names}, split=parts)

    def told(self, plain: Sum) -> dict[str, Any]:
        rate, base = self.tokens / self.seconds, plain.tokens / plain.seconds
        wall = self.seconds * 1000
        return {
            "speedup": round(rate / base, 3),
            "tokens_per_second": round(rate, 2),
            "tokens_per_round": round(self.emitted / self.rounds, 3),
            "acceptance": round(self.accepted / self.tested, 3) if self.tested else None,
            "drafted_per_round": round(self.drafted / self.rounds, 2),
            "share_of_time": {k.removesuffix("_ms"): round(v / wall, 3) for k, v in self.split.items()},
        }


def chosen(per_domain: int, domains: Sequence[str]) -> list[Prompt]:
    return [p for d in domains for p in [p for p in held_out() if p.domain == d][:per_domain]]


def played(events: Iterator[Event]) -> tuple[list[int], list[Metrics], list[VerifyResult]]:
    ids: list[int] = []
    metrics: list[Metrics] = []
    results: list[VerifyResult] = []
    for event in events:
        if isinstance(event, Error):
            raise SystemExit(f"{event.message} {event.remedy}")
        if isinstance(event, Metrics):
            metrics.append(event)
        elif isinstance(event, VerifyResult):
            if event.final_token_id is not None:
                ids.append(event.final_token_id)
                results.append(event)
    return ids, metrics, results


def difference(plain: Sequence[VerifyResult], ids: Sequence[int]) -> dict[str, Any] | None:
    """Where a greedy text leaves the plain one, and how near its two best tokens were; None where it does not."""
    for i, (result, own) in enumerate(itertools.zip_longest(plain, ids)):
        theirs = None if result is None else result.final_token_id
        if theirs != own:
            top = [] if result is None else [a.logprob for a in result.top_tokens[:2]]
            return {"index": i, "plain": theirs, "draft": own, "gap_nats": round(top[0] - top[1], 5) if top else None}
    return None


def measure(options: argparse.Namespace) -> dict[str, Any]:
    builder = Builder()
    settings = list(itertools.product(options.draft, options.k, options.min_confidence))
    prompts = chosen(options.per_domain, options.domain)
    order = np.random.default_rng(options.seed)
    out: dict[str, Any] = {"prompts": len(prompts), "max_tokens": options.max_tokens, "seed": options.seed}
    for temperature in options.temperature:
        sums: dict[Any, dict[str, Sum]] = {c: {} for c in (None, *settings)}
        differ: list[dict[str, Any]] = []
        compared = 0
        for number, prompt in enumerate(prompts):
            texts: dict[Any, Any] = {}
            for i in order.permutation(len(settings) + 1):
                case = settings[i] if i < len(settings) else None
                draft, k, sure = case or ("none", 1, 0.0)
                wanted = Settings(
                    draft=draft, k=k, temperature=temperature, max_tokens=options.max_tokens, seed=number,
                    min_confidence=sure,
                )  # fmt: skip
                pair = builder.build(wanted)
                _, ids = prepare(pair.target, wanted, prompt.text)
                run = (
                    speculative(pair.drafter, pair.target, ids, wanted)
                    if case
                    else autoregressive(pair.target, ids, wanted)
                )
                texts[case] = played(run)
                sums[case].setdefault(prompt.domain, Sum()).add(texts[case][1])
            if temperature == 0:
                for case in settings:
                    compared += 1
                    if found := difference(texts[None][2], texts[case][0]):
                        differ.append({"prompt": prompt.text[:60], "case": str(case), **found})
            print(f"T={temperature:g}: {number + 1} of {len(prompts)}", end="\r", file=sys.stderr, flush=True)
        told: dict[str, Any] = {}
        plain = sums.pop(None)
        for case, groups in sums.items():
            draft, k, sure = case
            sides = {
                "overall": list(groups),
                "+".join(COPYING): [d for d in groups if d in COPYING],
                **{d: [d] for d in groups if len(groups) > 1},
            }
            told[f"{draft}, K={k}, min_confidence={sure:g}"] = {
                name: sum((groups[d] for d in part), Sum()).told(sum((plain[d] for d in part), Sum()))
                for name, part in sides.items()
                if part
            }
        together = sum(plain.values(), Sum())
        out[f"T={temperature:g}"] = {
            "plain_tokens_per_second": round(together.tokens / together.seconds, 2),
            **told,
        } | ({"equal_to_plain": {"compared": compared, "different": differ}} if temperature == 0 else {})
    return out


def against_mlx_lm(options: argparse.Namespace) -> dict[str, Any]:
    """The same draft in mlx-lm's own speculation, which compares samples: tokens/s on both sides, interleaved."""
    from specviz.engines.mlx.language_model import load_weights
    from specviz.setup import loading
    from specviz.store import store

    name = options.draft[0].rpartition("model:")[2]
    # These load the fast BLAS, which has to be there before MLX is imported.
    distilled = loading.load_draft(name, how=loading.Loading("mlx"))
    module = load_weights(name, store.pull(name)).model
    model = loading.load_mlx_model("smollm2-135m")
    import mlx.core as mx
    from mlx.nn.layers.base import Module
    from mlx_lm import stream_generate
    from mlx_lm.sample_utils import make_sampler
    from mlx_lm.tokenizer_utils import TokenizerWrapper
    from transformers import AutoTokenizer

    class Mapped(Module):
        """The draft behind the target's ids, as mlx-lm wants it."""

        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.inner = module
            self.to_draft = mx.array(distilled.vocabulary.inputs)
            self.to_target = mx.array(distilled.vocabulary.tokens)

        def __call__(self, ids: Any, cache: Any = None) -> Any:
            logits = self.inner(self.to_draft[ids], cache=cache)
            full = mx.full((*logits.shape[:-1], len(distilled.vocabulary.inputs)), -1e9)
            full[..., self.to_target] = logits
            return full

        @property
        def layers(self) -> Any:
            return self.inner.layers

    hf = AutoTokenizer.from_pretrained(store.local_path("smollm2-135m"))
    wrapped, draft = TokenizerWrapper(hf, eos_token_ids=[-1]), Mapped()
    builder = Builder()
    out: dict[str, Any] = {}
    for temperature, k in itertools.product(options.temperature, options.k):
        rates: list[tuple[float, float]] = []
        totals = [[0.0, 0.0], [0.0, 0.0]]
        for number, prompt in enumerate(chosen(options.per_domain, options.domain)):
            wanted = Settings(
                draft=f"model:{name}", k=k, temperature=temperature, max_tokens=options.max_tokens, seed=number,
                min_confidence=options.min_confidence[0],
            )  # fmt: skip
            pair = builder.build(wanted)
            _, ids = prepare(pair.target, wanted, prompt.text)
            # As on mlx-lm's side, no stop token: every run has the same length.
            pair.target.capabilities = dataclasses.replace(pair.target.capabilities, stop_ids=frozenset())
            _, metrics, _ = played(speculative(pair.drafter, pair.target, ids, wanted, seed=number))
            own = Sum()
            own.add(metrics)
            mx.random.seed(number)
            stamps = [
                time.perf_counter()
                for _ in stream_generate(
                    model.model, wrapped, ids, draft_model=draft, num_draft_tokens=k, max_tokens=options.max_tokens,
                    sampler=make_sampler(temp=temperature),
                )
            ]  # fmt: skip
            # Tokens of one block come within microseconds: the first block holds the prefill.
            first = next(i for i in range(len(stamps)) if i + 1 == len(stamps) or stamps[i + 1] - stamps[i] > 0.005)
            later, seconds = len(stamps) - 1 - first, stamps[-1] - stamps[first]
            if not later or not own.tokens:
                continue
            rates.append((own.tokens / own.seconds, later / seconds))
            for i, (tokens, spent) in enumerate(((own.tokens, own.seconds), (later, seconds))):
                totals[i][0] += tokens
                totals[i][1] += spent
            print(f"mlx-lm, T={temperature:g}: {number + 1}", end="\r", file=sys.stderr, flush=True)
        ours, theirs = (tokens / spent for tokens, spent in totals)
        out[f"model:{name} against mlx-lm, T={temperature:g}, K={k}"] = {
            "ratio": round(ours / theirs, 3),
            "specviz": round(ours, 2),
            "mlx_lm": round(theirs, 2),
            "median_of_ratios": round(float(np.median([a / b for a, b in rates])), 3),
            "prompts": len(rates),
        }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.draft", description=__doc__)
    parser.add_argument("--draft", nargs="+", type=draft_name, default=["ngram+model:smollm2-draft"])
    parser.add_argument("--k", nargs="+", type=int, default=[4])
    parser.add_argument("--min-confidence", nargs="+", type=float, default=[0.4])
    parser.add_argument("--temperature", nargs="+", type=float, default=[0.0, 0.8])
    parser.add_argument("--per-domain", type=int, default=2, help="prompts of each domain, at most 8")
    parser.add_argument("--domain", nargs="+", choices=DOMAINS, default=DOMAINS)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mlx-lm", action="store_true", help="against mlx-lm's own speculation instead")
    options = parser.parse_args()
    print(json.dumps(against_mlx_lm(options) if options.mlx_lm else measure(options), indent=1))


if __name__ == "__main__":
    main()
