"""The baseline is plain decoding, measured; stops do not shorten it."""

import pytest

from specviz import baseline
from specviz.errors import RunError
from specviz.ports import Capabilities, Progress
from specviz.settings import Settings
from specviz.targets.local import LocalTarget
from tests.toys import FixedScorer, LetterTokenizer, toy_target


def test_it_decodes_plainly_past_stops_and_reports_progress() -> None:
    seen: list[Progress] = []
    target = LocalTarget(
        "stops", FixedScorer([0.1, 0.9]), LetterTokenizer(), Capabilities(True, 2, 999, frozenset({0, 1}))
    )
    found = baseline.measure(target, [0], Settings(temperature=1.0), on_progress=seen.append, tokens=12)
    assert found.complete and found.tokens_per_second
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 12, 12)


def test_the_first_token_with_its_prefill_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    class Slow(FixedScorer):
        calls = 0

        def score(self, token_ids, rows):  # type: ignore[no-untyped-def]
            self.calls += 1
            now[0] += 100.0 if self.calls == 1 else 0.5
            return super().score(token_ids, rows)

    real = baseline.autoregressive
    monkeypatch.setattr(baseline, "autoregressive", lambda *a, **kw: real(*a, **kw, clock=lambda: now[0]))
    target = LocalTarget("slow", Slow([0.5, 0.5]), LetterTokenizer(), Capabilities(True, 2, 99))
    assert baseline.measure(target, [0], Settings(), tokens=8).tokens_per_second == pytest.approx(2.0)


def test_a_short_context_still_gives_what_fits() -> None:
    assert baseline.measure(toy_target(max_context=3), [0, 1], Settings()) == baseline.Baseline(None, False)
    some = baseline.measure(toy_target(max_context=9), [0, 1], Settings())
    assert some.tokens_per_second and not some.complete


def test_cancelling_ends_it() -> None:
    asked = iter(range(99))
    found = baseline.measure(toy_target(), [0], Settings(), cancelled=lambda: next(asked) > 5)
    assert found == baseline.Baseline(None, False), "a measurement that was cut short is none"


def test_a_failing_target_is_an_error() -> None:
    class Gone(FixedScorer):
        def score(self, token_ids, rows):  # type: ignore[no-untyped-def]
            raise RunError("gone", "try later")

    target = LocalTarget("gone", Gone([1.0]), LetterTokenizer(), Capabilities(True, 1, 99))
    with pytest.raises(RunError, match="baseline failed: gone"):
        baseline.measure(target, [0], Settings())
