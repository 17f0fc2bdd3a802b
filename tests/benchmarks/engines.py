"""The engines beside llama-server on the same files: `python -m tests.benchmarks.engines --folder FOLDER`.

Cost of a pass over several tokens, plain decoding through the session, and prefill. All sides are measured in turn in
one run, and the order turns round each time. llama-server is that of the wheel `xllamacpp`, by its own clock. Prints
one JSON object; nothing here asserts a time. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from specviz.core.pair import Pair
from specviz.core.ports import Model
from specviz.core.settings import Settings
from specviz.drafters.none import NoDrafter
from specviz.engines.llama.model import LlamaModel
from specviz.engines.llama.threads import Threads
from specviz.setup.loading import Loading, load_model
from specviz.store.gguf import default
from specviz.targets.local import LocalTarget
from tests.benchmarks.decoding import answered, rate, without_stops
from tests.benchmarks.figures import Sides, in_turn, spread, told
from tests.benchmarks.files import FORMATS, model_files
from tests.llama_server import LlamaServer, Serving, llama_server

PROMPT = "Explain why the sky is blue."
SIZES = (1, 2, 3, 5, 9, 17)
CONTEXT = 64


def passes(model: Model, repeats: int) -> dict[str, Any]:
    """Milliseconds of a pass over so many tokens behind a context, and their ratio to a pass over one."""
    ids = (model.tokenizer.encode(model.tokenizer.chat(PROMPT)) * 8)[: CONTEXT + max(SIZES)]
    scorer = model.scorer()

    def one(size: int) -> float:
        scorer.score(ids[:CONTEXT], 1)
        began = time.perf_counter()
        scorer.score(ids[: CONTEXT + size], size)
        return (time.perf_counter() - began) * 1000

    found = in_turn({str(size): partial(one, size) for size in SIZES}, repeats)
    least = min(found["1"])
    return {
        "ms": {size: spread(times) for size, times in found.items()},
        "ratio to one token, best of each": {size: round(min(times) / least, 2) for size, times in found.items()},
    }


def plain(model: Model, tokens: int) -> Callable[[], float]:
    """Plain decoding through the session."""
    pair = without_stops(Pair(NoDrafter(), LocalTarget("local:measured", model)))
    ids = model.tokenizer.encode(model.tokenizer.chat(PROMPT))
    settings = Settings(target="toy", draft="none", max_tokens=tokens)
    return lambda: rate(pair, ids, settings)


def prefill(model: Model, tokens: int) -> Callable[[], float]:
    """Tokens per second of a prompt."""
    ids = (model.tokenizer.encode(PROMPT) * tokens)[:tokens]
    scorer = model.scorer()

    def once() -> float:
        scorer.reset()
        began = time.perf_counter()
        scorer.score(ids, 1)
        return tokens / (time.perf_counter() - began)

    return once


def beside(server: LlamaServer, model: Model, mlx: Model | None, asked: argparse.Namespace) -> dict[str, Any]:
    """Plain decoding and prefill of both."""
    short = model.tokenizer.encode(model.tokenizer.chat(PROMPT))
    long = (model.tokenizer.encode(PROMPT) * asked.prompt)[: asked.prompt]

    decoding: Sides = {
        "llama": plain(model, asked.tokens),
        "llama-server": lambda: answered(server, short, asked.tokens, past_stop=True).behind_first,
    }
    reading: Sides = {
        "llama": prefill(model, asked.prompt),
        "llama-server": lambda: answered(server, long, 1).prompt,
    }
    if mlx is not None:
        decoding["mlx"] = plain(mlx, min(asked.tokens, 32))
        reading["mlx"] = prefill(mlx, asked.prompt)
    return {
        "plain decoding, tokens per second": told(in_turn(decoding, asked.pairs), "llama"),
        f"prefill of {asked.prompt} tokens, tokens per second": told(in_turn(reading, asked.pairs), "llama"),
    }


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    out: dict[str, Any] = {}
    mlx = load_model("smollm2-135m", how=Loading("mlx")) if "mlx" in asked.engines else None
    if mlx is not None:
        out["passes of mlx"] = passes(mlx, asked.repeats)
    for name, file in model_files(asked.folder, asked.formats).items():
        print(name, file=sys.stderr, flush=True)
        model = load_model(str(file), how=Loading("llama"))
        assert isinstance(model, LlamaModel)
        model = replace(model, threads=Threads(asked.threads))
        out[name] = {"passes of llama": passes(model, asked.repeats)}
        with llama_server(file, Serving(context=8192, slots=1, threads=asked.threads)) as server:
            out[name] |= beside(server, model, mlx if name == default.FORMAT else None, asked)
    return out


def main() -> None:
    p = argparse.ArgumentParser(prog="python -m tests.benchmarks.engines", description=__doc__)
    p.add_argument("--folder", type=Path, required=True, help="keeps the files in the other number formats")
    p.add_argument("--formats", nargs="+", default=list(FORMATS), choices=FORMATS)
    p.add_argument("--engines", nargs="+", default=["llama", "mlx"], choices=["llama", "mlx"])
    p.add_argument("--pairs", type=int, default=7)
    p.add_argument("--repeats", type=int, default=15, help="of each pass")
    p.add_argument("--tokens", type=int, default=128)
    p.add_argument("--prompt", type=int, default=500, help="tokens of the prefill")
    p.add_argument("--threads", type=int, default=2, help="of llama-server, and of the engine llama")
    print(json.dumps(measure(p.parse_args()), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
