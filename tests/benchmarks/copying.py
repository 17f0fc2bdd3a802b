"""N-gram drafts on prompts that copy: `python -m tests.benchmarks.copying`.

The default model at temperature 0: each fixed K against plain decoding, and against llama-server's own n-gram
speculation on the same file. On each prompt all sides run in turn, in an order that is drawn anew. A ratio is the
geometric mean over the prompts; its spread is over the repeats. Prints one JSON object; nothing here asserts a time.
Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from specviz.core.settings import Settings
from specviz.setup.builder import Builder
from specviz.store import store
from tests.benchmarks.copies import COPIES
from tests.benchmarks.decoding import answered, rate
from tests.benchmarks.figures import spread
from tests.llama_server import MODEL, Serving, llama_server

#: Tokens per second on a prompt.
Side = Callable[[Sequence[int]], float]
PLAIN = "plain"


def own_sides(builder: Builder, ks: Sequence[int], tokens: int) -> dict[str, Side]:
    """Through the session, on one loaded target."""

    def run(settings: Settings, ids: Sequence[int]) -> float:
        return rate(builder.build(settings), ids, settings)

    asked = {PLAIN: Settings(draft="none", engine="llama", max_tokens=tokens)}
    asked |= {f"K={k}": Settings(draft="ngram", k=k, engine="llama", max_tokens=tokens) for k in ks}
    return {name: partial(run, settings) for name, settings in asked.items()}


def peer(kind: str, matched: int, drafted: int, threads: int) -> Serving:
    """llama-server that matches so many tokens and drafts at most so many."""
    part = f"ngram_{kind}"
    sizes = (
        {f"{part}.n_match": matched, f"{part}.n_min": 1, f"{part}.n_max": drafted}
        if kind == "mod"
        else {f"{part}.size_n": matched, f"{part}.size_m": drafted}
    )
    return Serving(context=8192, slots=1, threads=threads, speculation=part.upper(), sizes=sizes)


def peers(file: Path, asked: argparse.Namespace, stack: ExitStack) -> dict[str, Side]:
    """Each kind of its speculation with each K."""
    found: dict[str, Side] = {}
    for kind in asked.peers:
        name, _, matched = kind.partition(":")
        for k in asked.peer_k:
            server = stack.enter_context(llama_server(file, peer(name, int(matched), k, asked.threads)))
            found[f"llama-server {kind}, K={k}"] = partial(_their_rate, server, asked.tokens)
    return found


def _their_rate(server: Any, tokens: int, ids: Sequence[int]) -> float:
    return answered(server, ids, tokens).behind_first


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    builder, order = Builder(), np.random.default_rng(0)
    tokenizer = builder.build(Settings(draft="none", engine="llama")).target.tokenizer
    prompts = {copy.name: copy.ids(tokenizer) for copy in COPIES[: asked.prompts]}
    with ExitStack() as stack:
        sides = own_sides(builder, asked.k, asked.tokens) | peers(store.pull_gguf(MODEL), asked, stack)
        names = list(sides)
        # (repeats, prompts, sides)
        rates = np.zeros((asked.repeats, len(prompts), len(names)))
        for repeat in range(-1, asked.repeats):  # the first one warms up
            for at, ids in enumerate(prompts.values()):
                for i in order.permutation(len(names)):
                    value = sides[names[i]](ids)
                    if repeat >= 0:
                        rates[repeat, at, i] = value
                print(f"repeat {repeat + 1} of {asked.repeats}, prompt {at + 1}", end="\r", file=sys.stderr, flush=True)
    return report(names, list(prompts), rates)


def report(names: list[str], prompts: list[str], rates: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Args:
    rates: (repeats, prompts, sides) in tokens per second.
    """
    own = [i for i, name in enumerate(names) if name.startswith("K=")]
    theirs = [i for i, name in enumerate(names) if name.startswith("llama-server")]
    overall = np.exp(np.log(rates).mean(axis=1))  # (repeats, sides)
    typical = np.median(overall, axis=0)
    best = max(own, key=lambda i: typical[i])
    plain = names.index(PLAIN)
    out: dict[str, Any] = {
        "prompts": len(prompts),
        "tokens per second": {name: spread(overall[:, i].tolist()) for i, name in enumerate(names)},
        "÷ plain": {names[i]: spread((overall[:, i] / overall[:, plain]).tolist()) for i in own},
        f"{names[best]} ÷ plain, by prompt": {
            prompt: round(statistics.median(rates[:, at, best] / rates[:, at, plain]), 2)
            for at, prompt in enumerate(prompts)
        },
    }
    if theirs:
        other = max(theirs, key=lambda i: typical[i])
        out[f"{names[best]} ÷ {names[other]}"] = spread((overall[:, best] / overall[:, other]).tolist())
    return out


def main() -> None:
    p = argparse.ArgumentParser(prog="python -m tests.benchmarks.copying", description=__doc__)
    p.add_argument("--k", nargs="+", type=int, default=list(range(1, 9)))
    p.add_argument(
        "--peers", nargs="*", default=["simple:2", "mod:3"], metavar="KIND:N",
        help="llama-server's speculation (simple, map_k, map_k4v, mod), and how many tokens have to match",
    )  # fmt: skip
    p.add_argument("--peer-k", nargs="+", type=int, default=[4, 8])
    p.add_argument("--prompts", type=int, default=len(COPIES), help="for a quick sample, the first so many")
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--tokens", type=int, default=120)
    p.add_argument("--threads", type=int, default=2, help="of llama-server")
    print(json.dumps(measure(p.parse_args()), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
