"""Greedy speculation beside greedy plain decoding, token for token: `python -m tests.benchmarks.greedy`.

Each drafter, each K, each prompt on the default model. Where a text differs, the logits of both tokens in a fresh pass
over the common text tell whether it is a near tie. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import islice, product
from typing import Any

import numpy as np

from specviz.core import session
from specviz.core.events import Done
from specviz.core.pair import Pair
from specviz.core.settings import Settings
from specviz.distill.prompts import held_out
from specviz.setup.builder import Builder
from specviz.setup.loading import Loading, load_model

DRAFTS = ("ngram", "model:smollm2-draft", "ngram+model:smollm2-draft")
KS = (1, 2, 4, 8, 16)


def text(pair: Pair, prompt: str, settings: Settings) -> tuple[int, ...]:
    """The ids that a run writes."""
    *_, last = session.run(pair, prompt, settings)
    if not isinstance(last, Done):
        raise SystemExit(str(last))
    return last.token_ids


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    builder = Builder({})
    scorer = load_model("smollm2-135m", how=Loading(asked.engine)).scorer()
    same, differences = 0, list[dict[str, Any]]()
    step = 80 // asked.prompts
    for number, prompt in enumerate(islice(held_out(), 0, step * asked.prompts, step)):
        common = {"engine": asked.engine, "max_tokens": asked.tokens}
        plain = Settings(draft="none", **common)
        pair = builder.build(plain)
        expected = text(pair, prompt.text, plain)
        prompt_ids = pair.target.tokenizer.chat_ids(prompt.text)[1]
        for draft, k in product(DRAFTS, KS):
            settings = Settings(draft=draft, k=k, **common)
            found = text(builder.build(settings), prompt.text, settings)
            if found == expected:
                same += 1
                continue
            at = next(i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b)
            row = np.array(scorer.score([*prompt_ids, *expected[:at]], 1)[0])
            gap = abs(float(row[found[at]] - row[expected[at]]))
            differences.append({"prompt": number, "draft": draft, "k": k, "at": at, "logit_gap": round(gap, 4)})
        print(f"{number + 1} of {asked.prompts}: {same} equal, {len(differences)} different", file=sys.stderr)
    return {"engine": asked.engine, "equal": same, "different": len(differences), "differences": differences}


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--engine", choices=("llama", "mlx"), default="llama")
    p.add_argument("--prompts", type=int, default=20)
    p.add_argument("--tokens", type=int, default=64)
    print(json.dumps(measure(p.parse_args()), indent=2))
