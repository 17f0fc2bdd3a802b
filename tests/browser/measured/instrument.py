"""Looks into the process that serves the measured page, and answers what the tests ask, over a port of its own.

Patched are our own functions, and from here: the product knows nothing of it.
"""

from __future__ import annotations

import gc
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from specviz.core.connection import Secret
from specviz.core.pair import Pair
from specviz.core.settings import Settings
from specviz.host.models import ModelHost
from specviz.host.run import Run
from specviz.record.state import RunState
from specviz.setup import catalog, validation
from specviz.setup.builder import Builder
from specviz.ui import live, run_view
from specviz.ui.live_view import LiveView
from specviz.views import text, words
from tests.browser.measured.fed import FedRun
from tests.browser.measured.recipe import Recipe

#: What the toy target takes for a round: as a model on a GPU would, it leaves the processor to others meanwhile.
ROUND_S = 0.02

runs: dict[str, Run] = {}
fed: dict[str, FedRun] = {}
finished: dict[str, float] = {}
#: Per run: one entry for every poll of tree and text.
polls: dict[str, list[dict[str, float]]] = {}


class PacedTarget:
    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def verify(self, *asked: Any) -> Any:
        time.sleep(ROUND_S)
        return self._target.verify(*asked)


class PacedBuilder(Builder):
    def build(self, settings: Settings, *asked: Any) -> Pair:
        pair = super().build(settings, *asked)
        return replace(pair, target=PacedTarget(pair.target)) if settings.target == "toy" else pair


class NoQueue:
    """A fed run waits for nobody."""

    def position(self, run: Any) -> int:
        return 0

    def withdraw(self, run: Any) -> None: ...


class MeasuredHost:
    """Starts what the recipe in the prompt says."""

    def __init__(self) -> None:
        self.models = ModelHost(PacedBuilder, validation.check)

    def start(self, settings: Settings, prompt: str, key: Secret | None = None) -> Run:
        recipe = Recipe.of(prompt)
        if recipe.kind == "fed":
            run = Run(replace(settings, k=recipe.k), prompt, NoQueue())
            runs[run.id], fed[run.id] = run, FedRun(run, recipe)
        else:
            run = self.models.start(_settings(settings, recipe), recipe.prompt, key)
            runs[run.id] = run
            run.prompt = prompt  # a reload finds the recipe again
        threading.Thread(target=_note_end, args=(run,), name=f"watch-{run.id}", daemon=True).start()
        return run

    def test(self, *asked: Any) -> Any:
        return self.models.test(*asked)

    def close(self) -> None:
        self.models.close()


def _settings(settings: Settings, recipe: Recipe) -> Settings:
    return replace(
        settings, target=recipe.target, draft=recipe.draft, k=recipe.k, seed=recipe.seed, max_tokens=recipe.tokens,
        temperature=recipe.temperature, min_confidence=None,
    )  # fmt: skip


def _note_end(run: Run) -> None:
    run._finished.wait()
    finished[run.id] = time.time()


@cache
def host() -> MeasuredHost:
    return MeasuredHost()


def _watched_show(show: Callable[..., None]) -> Callable[..., None]:
    def watched(view: LiveView, state: RunState, run: str, placeholder: str) -> None:
        begun = time.thread_time()
        show(view, state, run, placeholder)
        polls.setdefault(run, []).append(
            {
                "at": time.time(),
                "cpu_ms": 1000 * (time.thread_time() - begun),
                "process_ms": 1000 * (time.process_time() - sum(f.cpu_s for f in fed.values())),
                "nodes": len(state.nodes),
                "tokens": len(state.text),
            }
        )

    return watched


def _paced_show(show: Callable[..., None]) -> Callable[..., None]:
    def paced(visit: Any, run: Run) -> None:
        recipe = Recipe.of(run.prompt)
        run_view.TREE_POLL_S, run_view.CHARTS_POLL_S = recipe.tree_s, recipe.charts_s
        show(visit, run)

    return paced


def headless(asked: str) -> dict[str, Any]:
    """A run that no page shows, drained as a command would."""
    run = host().start(Settings(target="toy", draft="toy"), asked)
    while not run.done:
        run.drain()
        time.sleep(0.05)
    return outcome(run.id)


def outcome(run: str) -> dict[str, Any]:
    state = runs[run].state
    done = state.done
    return {
        "run": run,
        "tokens_per_second": done.tokens_per_second if done else None,
        "text": done.generated_text if done else None,
        "error": state.error.message if state.error else None,
        "finished_at": finished.get(run),
    }


def whole(run: str) -> dict[str, Any]:
    """All that a browser should show of a run."""
    state = runs[run].state
    groups = text.delta(state, run, 0)["items"]
    return {
        "nodes": [[n.id, n.status, n.parent, words.label(n.token)] for n in state.nodes],
        "text": "".join(g["chip"] if "chip" in g else g["text"] for g in groups),
        "spans": [state.nodes[i].status for i in state.text],
    }


def memory(_: str = "") -> dict[str, float]:
    gc.collect()
    with open("/proc/self/statm") as pages:
        return {"rss": int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")}


ANSWERS: dict[str, Callable[[str], Any]] = {
    "runs": lambda _: list(runs),
    "polls": lambda run: polls.get(run, []),
    "polled": lambda run: len(polls.get(run, [])),
    "born": lambda run: fed[run].born,
    "ended": lambda run: fed[run].ended_at,
    "finished": lambda run: finished.get(run),
    "whole": whole,
    "outcome": outcome,
    "headless": headless,
    "memory": memory,
    "threads": lambda _: sorted(t.name for t in threading.enumerate()),
}


class Window(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        answer = json.dumps(ANSWERS[asked.path[1:]](parse_qs(asked.query).get("of", [""])[0])).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None: ...


@cache
def install() -> None:
    """Once per process, however often the page runs."""
    LiveView.show = _watched_show(LiveView.show)  # type: ignore[method-assign]
    vars(live)["show_run"] = _paced_show(run_view.show_run)
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["MEASURED_PORT"])), Window)
    threading.Thread(target=server.serve_forever, name="measured-window", daemon=True).start()


CATALOG = SimpleNamespace(targets=catalog.targets, drafts=catalog.drafts, make_host=host)
