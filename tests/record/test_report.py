"""Summaries of a run as an object and in words: unknown values are marked, and 'slower' is written out."""

from __future__ import annotations

from typing import Any

import pytest

from specviz.cli.generate import print_summary
from specviz.record.report import summary
from tests.views.scripted import Story


def remote(rounds: int = 3, **options: Any) -> Story:
    """50 ms and 2 tokens a round: 40 tokens/s."""
    given: dict[str, Any] = {"billed": (100, 1), "baseline_tps": 93.0, "per_call_tps": 21.0} | options
    story = Story(way="scoring", **given)
    for _ in range(rounds):
        story.round(["a", "b"], 1, "c")
    return story.done()


def test_a_remote_run_has_both_baselines_and_what_it_cost() -> None:
    data = summary(remote().state())
    assert data["way"] == "scoring" and data["requests"] == 3
    assert (data["billed_prompt_tokens"], data["billed_completion_tokens"]) == (300, 3)
    assert data["baseline"] == "streaming" and data["baseline_tokens_per_second"] == 93.0
    assert data["speedup"] == pytest.approx(40 / 93)
    assert data["per_call_tokens_per_second"] == 21.0 and data["speedup_per_call"] == pytest.approx(40 / 21)


def test_times_that_nobody_knows_are_none_and_the_rest_adds_up() -> None:
    times = summary(remote().state())["time_ms"]
    assert times["network"] is times["queue"] is times["target"] is None
    assert times["call"] == 90.0 and times["wall"] == 150.0
    assert sum(v for k, v in times.items() if k != "wall" and v is not None) == times["wall"]


def test_what_no_round_counted_is_none() -> None:
    data = summary(remote(billed=None).state())
    assert data["requests"] is data["billed_prompt_tokens"] is data["billed_completion_tokens"] is None


def test_a_local_run_says_nothing_of_servers() -> None:
    data = summary(Story().round(["a"], 1, "b").round(["a"], 1, "b").done().state())
    assert (
        data["way"] is None
        and data["place"] == "here"
        and data["baseline"] == "plain decoding"
        and data["requests"] is None
    )
    assert data["per_call_tokens_per_second"] is data["speedup_per_call"] is None
    assert data["time_ms"]["call"] == 0.0


def test_without_a_baseline_there_is_no_kind_of_it() -> None:
    data = summary(remote(baseline_tps=None, per_call_tps=None).state())
    assert data["baseline"] is data["speedup"] is data["speedup_per_call"] is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {},
            "93.0 streamed: 0.43 x, slower than streaming; 21.0 with one call per token: 1.90 x one call per token",
        ),
        ({"baseline_tps": 20.0}, "20.0 streamed: 2.00 x; 21.0 with"),
        (
            {"baseline_tps": 21.0},
            "21.0 with one call per token: 1.90 x (its streaming could not be measured)",
        ),
        ({"baseline_tps": 50.0, "per_call_tps": 50.0}, "0.80 x, slower than one call per token"),
        ({"per_call_tps": None}, "93.0 streamed: 0.43 x, slower than streaming\n"),
        ({"baseline_tps": None, "per_call_tps": None}, "speed-up n/a"),
        ({}, "verified by scoring, 3 requests; billed tokens: prompt 300 + completion 3"),
        ({"billed": None}, "verified by scoring, n/a requests; billed tokens: prompt n/a + completion n/a"),
        ({"billed": (1000, 5)}, "prompt 3,000 + completion 15"),
    ],
)
def test_the_summary_in_words(options: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(remote(**options).state())
    assert said in capsys.readouterr().err


def test_a_local_summary_is_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(Story(baseline_tps=50.0).round(["a"], 1, "b").round(["a"], 1, "b").done().state())
    err = capsys.readouterr().err
    assert "40.0 tokens/s over 2 tokens, 50.0 in plain decoding: 0.80 x, slower than plain decoding" in err
    assert "verified by" not in err


def far(**options: Any) -> Story:
    """130 ms and 2 tokens a round, 80 ms of them on the way: 15.4 tokens/s."""
    given: dict[str, Any] = {"baseline_tps": 20.0, "per_call_tps": 8.0, "network": (80.0, 20.0)} | options
    story = Story(**given)
    return story.round(["a", "b"], 1, "c").round(["a", "b"], 1, "c").round(["a", "b"], 1, "c").done()


def test_a_run_behind_a_simulated_network_says_so_and_has_both_baselines() -> None:
    data = summary(far().state())
    assert (data["simulated_rtt_ms"], data["simulated_jitter_ms"]) == (80.0, 20.0)
    assert data["baseline"] == "plain decoding without the network" and data["way"] is None
    assert data["speedup"] == pytest.approx(2 / 0.13 / 20) and data["speedup_per_call"] == pytest.approx(2 / 0.13 / 8)
    assert data["time_ms"]["network"] == 240.0
    assert summary(Story().state())["simulated_rtt_ms"] == 0.0


def test_the_summary_in_words_names_the_simulated_network_beside_the_speed(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(far().state())
    *_, network, speed = capsys.readouterr().err.splitlines()
    assert network == "simulated network: 80 ms ± 20 ms before every call"
    assert speed == (
        "15.4 tokens/s over 4 tokens, 20.0 in plain decoding without the network: 0.77 x, slower than plain decoding "
        "without the network; 8.0 with one call per token: 1.92 x one call per token"
    )
    print_summary(far(per_call_tps=None, network=(80.0, 0.0)).state())
    said = capsys.readouterr().err
    assert "simulated network: 80 ms before" in said and "one call per token" not in said
    print_summary(Story().state())
    assert "network" not in capsys.readouterr().err
