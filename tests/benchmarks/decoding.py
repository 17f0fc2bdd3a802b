"""Tokens per second of whole runs: through specviz without a page, and of llama-server."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace

from specviz.core import session
from specviz.core.events import Done, Error, Metrics
from specviz.core.pair import Pair
from specviz.core.settings import Settings
from tests.llama_server import LlamaServer


def without_stops(pair: Pair) -> Pair:
    """The same pair, whose texts are as long as their budget."""
    pair.target.capabilities = replace(pair.target.capabilities, stop_ids=frozenset())
    return pair


def rate(pair: Pair, ids: Sequence[int], settings: Settings) -> float:
    """Tokens per second of wall time, from the end of the first round, which holds the prefill, to the last event."""
    began, first = 0.0, 0
    for event in session.run(pair, session.EncodedPrompt(ids), settings):
        if isinstance(event, Metrics) and not began:
            began, first = time.perf_counter(), event.emitted
        if isinstance(event, Error):
            raise SystemExit(f"{event.message} {event.remedy}")
        if isinstance(event, Done):
            return (event.total_tokens - first) / (time.perf_counter() - began)
    raise AssertionError("a run ends with Done or Error")


@dataclass(frozen=True, slots=True)
class Answered:
    """Tokens per second of llama-server, by its own clock: of the prompt, and behind the first token of the answer."""

    prompt: float
    behind_first: float


def answered(server: LlamaServer, ids: Sequence[int], tokens: int, past_stop: bool = False) -> Answered:
    """Its greedy answer, with the samplers off that greedy decoding does not need."""
    body = {
        "prompt": list(ids),
        "n_predict": tokens,
        "temperature": 0.0,
        "samplers": ["top_k"],
        "top_k": 1,
        "ignore_eos": past_stop,
        "cache_prompt": False,
    }
    request = urllib.request.Request(
        f"{server.root}/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        timings = json.load(answer)["timings"]
    # Its clock starts when the first token is there.
    return Answered(timings["prompt_per_second"], (timings["predicted_n"] - 1) * 1000 / timings["predicted_ms"])
