"""One run: prompt, baseline, empty caches, loop."""

import dataclasses
from typing import Any, get_args

import pytest

from specviz.core import session
from specviz.core.baseline import Baselines
from specviz.core.errors import PromptError, RunError, StoppedError
from specviz.core.events import Done, DraftToken, Error, Event, RunStarted, VerifyResult
from specviz.core.pair import Pair
from specviz.core.rounds import Explain
from specviz.core.settings import Settings
from specviz.core.wait import Progress, Wait
from tests.toys import TOKENIZER, toy_draft, toy_target

SETTINGS = Settings(target="toy", draft="toy", max_tokens=20, temperature=0.8, seed=4)


def pair() -> Pair:
    return Pair(toy_draft(), toy_target())


def ids(events: Any) -> tuple[int, ...]:
    *_, last = events
    assert isinstance(last, Done)
    return last.token_ids


def test_a_text_is_prepared_and_recorded_with_its_ids() -> None:
    started = next(iter(session.run(pair(), "the draft", SETTINGS)))
    assert isinstance(started, RunStarted)
    assert started.prompt_text == "the draft" and list(started.prompt_ids) == TOKENIZER.encode("the draft")
    assert (started.place, started.engine, started.way) == ("here", "toy", None) and started.versions["specviz"]


def test_a_run_without_baselines_has_no_speed_up_and_one_with_has_its_kind() -> None:
    *_, without = session.run(pair(), "the", SETTINGS)
    events = list(session.run(pair(), "the", SETTINGS, baselines=Baselines()))
    started, with_one = events[0], events[-1]
    assert isinstance(without, Done) and without.baseline_tps is None and without.speedup is None
    assert isinstance(started, RunStarted) and started.baseline_kind == "separate_run" and started.baseline_tps
    assert isinstance(with_one, Done) and with_one.token_ids == without.token_ids, "a baseline changes no text"


def test_every_run_starts_from_empty_caches() -> None:
    used, resets = pair(), list[str]()
    for name, part in (("target", used.target), ("drafter", used.drafter)):
        part.reset = lambda name=name: resets.append(name)  # type: ignore[method-assign,misc]
    first, again = (ids(session.run(used, "the draft", SETTINGS)) for _ in range(2))
    assert first == again and resets == ["target", "drafter"] * 2


def test_the_seed_can_be_given_apart_from_the_settings() -> None:
    own = ids(session.run(pair(), "the", SETTINGS))
    assert ids(session.run(pair(), "the", SETTINGS, seed=4)) == own != ids(session.run(pair(), "the", SETTINGS, seed=5))


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_what_is_explained_changes_no_number_of_a_token(temperature: float) -> None:
    wanted = dataclasses.replace(SETTINGS, temperature=temperature)
    numbers, whole = (list(session.run(pair(), "the", wanted, explain=level)) for level in get_args(Explain))
    shown = {"entropy": None, "top_tokens": (), "weighed": (), "draft_time_ms": 0.0, "verify_latency_ms": 0.0}

    def told(event: Event) -> dict[str, Any]:
        return {f.name: shown.get(f.name, getattr(event, f.name)) for f in dataclasses.fields(event)}

    pairs = [
        (one, other)
        for one, other in zip(numbers, whole, strict=True)
        if isinstance(one, DraftToken | VerifyResult) and isinstance(other, DraftToken | VerifyResult)
    ]
    assert len(pairs) > 20 and all(told(one) == told(other) for one, other in pairs)
    assert not any(one.entropy is not None or one.top_tokens for one, _ in pairs)
    judged = [other for _, other in pairs if getattr(other, "status", "") != "ignored"]
    assert all(other.entropy is not None and other.top_tokens for other in judged)


def test_cancelled_before_the_first_round_there_are_no_events() -> None:
    assert list(session.run(pair(), "the", SETTINGS, baselines=Baselines(), wait=Wait(cancelled=lambda: True))) == []


def test_a_prompt_that_nothing_can_be_decoded_from_is_refused_before_anything_is_measured() -> None:
    seen: list[Progress] = []
    with pytest.raises(PromptError):
        list(session.run(pair(), "  ", SETTINGS, baselines=Baselines(), wait=Wait(seen.append)))
    assert seen == []


def test_plain_decoding_draws_by_position_so_its_text_is_that_of_the_draft_none() -> None:
    from specviz.drafters.none import NoDrafter

    prompt = session.EncodedPrompt(TOKENIZER.encode("the"))
    plain = ids(session.run_plain(toy_target(), prompt, SETTINGS))
    assert ids(session.run(Pair(NoDrafter(), toy_target()), prompt, SETTINGS)) == plain


def test_finished_tells_how_far_it_is_and_gives_end_and_rounds() -> None:
    seen: list[Progress] = []
    done, rounds = session.finished(session.run(pair(), "the", SETTINGS), "Writing", 20, Wait(seen.append))
    assert done.total_tokens == sum(m.emitted for m in rounds) == seen[-1].done
    assert {(p.what, p.total) for p in seen} == {("Writing", 20)}


def test_finished_refuses_a_run_that_failed_or_was_stopped() -> None:
    with pytest.raises(RunError, match="gone"):
        session.finished(iter([Error("RunError", "gone", "wait")]))
    stopped = session.run(pair(), "the", SETTINGS, wait=Wait(cancelled=iter([False] * 4 + [True] * 9).__next__))
    with pytest.raises(StoppedError):
        session.finished(stopped)
