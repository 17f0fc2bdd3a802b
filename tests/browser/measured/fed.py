"""Runs of scripted rounds that come at a set rate, as from a fast decoder that leaves the processor alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle

import numpy as np

from specviz.core.events import Alternative, Done, DraftToken, Event, Metrics, RunStarted, VerifyResult
from specviz.host.run import Run
from tests.browser.measured.recipe import Recipe
from tests.ui.fakes import HOSTILE
from tests.views.scripted import Story, Token

#: What real runs say of every position; see `specviz.core.alternatives.TOP`.
ALTERNATIVES = 10
_WORDS = " the draft proposes and the target decides so every token is its own 🙂 naïve\n".replace(" ", "| ").split("|")
_TAIL = " of the text 你好"


class FedRun:
    """Feeds one run from a thread of its own.

    Attributes:
        born: when the nodes of a part of a round came into being: first id, one past the last id, seconds since 1970.
        ended_at: when the last event was put; 0 before.
        cpu_s: what the feeding itself took, to be left out of the page's.
    """

    def __init__(self, run: Run, recipe: Recipe) -> None:
        self.run, self.recipe = run, recipe
        self.born: list[tuple[int, int, float]] = []
        self.ended_at = 0.0
        self.cpu_s = 0.0
        self._nodes = 0
        threading.Thread(target=self._feed, name=f"fed-{run.id}", daemon=True).start()

    def _feed(self) -> None:
        run, recipe = self.run, self.recipe
        run.phase = "running"
        story = Story(baseline_tps=recipe.rate / 2)
        run.put(story.events.pop())
        due = time.monotonic()
        for drafted, judged, emitted in rounds(story, recipe):
            self._put(drafted)
            if self._nodes >= recipe.preload:
                due = max(due, time.monotonic() - 1) + emitted / recipe.rate
                time.sleep(max(0.0, due - time.monotonic()))
            self._put(judged)
            self.cpu_s = time.thread_time()
            if run.cancelled():
                break
        run.put(_end(story, stopped=run.cancelled()))
        self.ended_at = time.time()
        run.finish()

    def _put(self, events: list[Event]) -> None:
        first = self._nodes
        self._nodes += sum(map(_adds_node, events))
        if self._nodes > first:
            self.born.append((first, self._nodes, time.time()))
        for event in events:
            self.run.put(event)


def _adds_node(event: Event) -> bool:
    final = isinstance(event, VerifyResult) and event.status in ("rejected", "bonus")
    return isinstance(event, DraftToken) or final


def _end(story: Story, *, stopped: bool) -> Done:
    done = story.done("stopped" if stopped else "max_tokens").events.pop()
    assert isinstance(done, Done)
    return done


def rounds(story: Story, recipe: Recipe) -> Iterator[tuple[list[Event], list[Event], int]]:
    """Per round: what is drafted, what becomes of it, how many tokens it emits. All there is to say of each is said."""
    rng = np.random.default_rng(recipe.seed)
    words: Iterator[Token] = cycle(_WORDS)
    hostile = list(HOSTILE) if recipe.hostile else []
    while len(story.ids) < recipe.tokens:
        before = len(story.ids)
        drafts = [next(words) for _ in range(recipe.k)]
        if hostile:
            # One by one: kept, and as what stands in place of a refused one.
            drafts[0] = hostile[0]
            story.round(drafts, int(len(hostile) % 2), hostile.pop(0))
        else:
            refused = int(np.argmax(np.append(rng.random(recipe.k) > recipe.kept, True)))
            story.round(drafts, refused, next(words), acceptance=0.7)
        told = [_in_full(event, rng) for event in story.events]
        story.events.clear()
        drafted = [e for e in told if isinstance(e, DraftToken)]
        yield [*drafted], [e for e in told if not isinstance(e, DraftToken)], len(story.ids) - before


def _in_full(event: Event, rng: np.random.Generator) -> Event:
    """With alternatives and probabilities, in the numbers and sizes that a model gives."""
    if isinstance(event, DraftToken):
        return replace(event, top_tokens=_alternatives(event.token_id, event.token, rng))
    if isinstance(event, VerifyResult):
        p, q, u = rng.random(3)
        name = event.draft_token or event.final_token or ""
        shown = _alternatives(event.draft_token_id or 0, name, rng)
        judged = event.status in ("accepted", "rejected")
        return replace(event, top_tokens=shown, p=p, q=q, u=u if judged else None)
    assert isinstance(event, Metrics | RunStarted)
    return event


def _alternatives(token_id: int, token: str, rng: np.random.Generator) -> tuple[Alternative, ...]:
    """Every object made anew, as tokenizers and models do: this is what a run keeps in memory."""
    probs = np.sort(rng.dirichlet(np.full(ALTERNATIVES, 0.3)))[::-1]
    others = (f" {_TAIL[i % 9 :]}{i}" for i in range(1, ALTERNATIVES))
    return tuple(
        Alternative(token_id + 1000 * i, name, float(np.log(prob + 1e-12)), float(prob))
        for i, (name, prob) in enumerate(zip([token, *others], probs, strict=True))
    )
