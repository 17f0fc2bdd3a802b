"""Trials of targets and drafts, on the toy and on scripted ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from specviz.core.errors import RunError, StoppedError
from specviz.core.ports import Arrival
from specviz.core.settings import Sampling, Settings
from specviz.core.wait import Progress, Wait
from specviz.host.trial import STREAMED, TOKENS, try_draft, try_target
from specviz.setup.builder import Builder

TOY = Settings(target="toy", draft="toy")


class Streams:
    """The toy as a target that can stream."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.asked: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def stream_plain(self, context_ids: Sequence[int], sampling: Sampling, max_tokens: int) -> Iterator[Arrival]:
        self.asked.append(max_tokens)
        yield from (Arrival(i / 100, 1) for i in range(max_tokens))


class Broken(Streams):
    def verify(self, *_: object) -> Any:
        raise RunError("The cable was pulled.", "Put it back.")


def test_a_target_says_its_first_words_with_figures() -> None:
    seen: list[Progress] = []
    tried = try_target(Builder().build(TOY).target, TOY, Wait(seen.append))
    assert tried.what == "target" and tried.name == "toy" and tried.text
    assert tried.latency_ms and tried.latency_ms > 0 and tried.tokens_per_second and tried.tokens_per_second > 0
    assert str(tried.guarantee) == "EXACT" and tried.way is None and tried.findings is None
    assert [p.done for p in seen][:2] == [0, 1] and max(p.done for p in seen) <= TOKENS


def test_a_target_that_streams_is_timed_streaming() -> None:
    target = Streams(Builder().build(TOY).target)
    assert try_target(target, TOY).tokens_per_second == pytest.approx(100.0)
    assert target.asked == [STREAMED + 1]


def test_a_target_that_fails_keeps_its_remedy() -> None:
    with pytest.raises(RunError) as told:
        try_target(Broken(Builder().build(TOY).target), TOY)
    assert (told.value.message, told.value.remedy) == ("The cable was pulled.", "Put it back.")


@pytest.mark.parametrize("draft", ["toy", "ngram", "ngram+toy"])
def test_a_draft_goes_on_with_a_text_that_repeats(draft: str) -> None:
    settings = replace(TOY, draft=draft, raw=False, system="Be brief.")
    pair = Builder().build(settings)
    tried = try_draft(pair.drafter, pair.target, settings)
    assert tried.what == "draft" and tried.text and not tried.note
    assert tried.latency_ms and tried.latency_ms > 0 and tried.tokens_per_second and tried.tokens_per_second > 0


def test_lookup_copies_what_followed() -> None:
    settings = replace(TOY, draft="ngram")
    pair = Builder().build(settings)
    assert try_draft(pair.drafter, pair.target, settings).text.startswith(" f")


def test_a_draft_that_drafts_nothing_says_so_and_has_no_speed() -> None:
    settings = replace(TOY, draft="none")
    pair = Builder().build(settings)
    tried = try_draft(pair.drafter, pair.target, settings)
    assert "nothing" in tried.note and tried.tokens_per_second is None and tried.latency_ms is None


def test_a_trial_can_be_stopped() -> None:
    pair = Builder().build(TOY)
    with pytest.raises(StoppedError):
        try_target(pair.target, TOY, Wait(cancelled=lambda: True))
    with pytest.raises(StoppedError):
        try_draft(pair.drafter, pair.target, TOY, Wait(cancelled=lambda: True))
