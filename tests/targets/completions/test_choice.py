"""Which way, with which promise, and why not another."""

from typing import Any

import pytest

from specviz.core.errors import IncapableError
from specviz.core.settings import Rule, RuleName, Sampling, Verification
from specviz.targets.completions.choice import choose
from specviz.targets.completions.values import Findings
from tests.targets.completions.remotes import findings_of


def chosen(
    findings: Findings,
    temperature: float = 0.0,
    rule: RuleName = "probabilistic",
    verification: Verification = "auto",
    vocab_size: int = 1000,
    **sampling: Any,
) -> tuple[str, str]:
    way, guarantee = choose(findings, verification, Sampling(temperature, **sampling), Rule(rule), vocab_size)
    return way, guarantee.kind


FULL = findings_of("vllm")


@pytest.mark.parametrize(
    ("found", "temperature", "expected"),
    [
        ({}, 0.0, ("scoring", "EXACT")),
        ({}, 1.0, ("scoring", "EXACT")),
        ({}, 0.7, ("prefixes", "EXACT")),
        ({"batch": False}, 0.7, ("generating", "EXACT")),
        ({"scores": False}, 1.0, ("prefixes", "EXACT")),
        ({"scores": False, "batch": False}, 1.0, ("generating", "EXACT")),
        ({"ids_in": False}, 0.0, ("prefixes", "EXACT")),
        ({"same_tokens": False}, 0.0, ("generating", "EXACT")),
        ({"top": 0}, 0.0, ("prefixes", "EXACT")),
    ],
)
def test_the_best_exact_way(found: dict[str, Any], temperature: float, expected: tuple[str, str]) -> None:
    assert chosen(findings_of("vllm", **found), temperature) == expected


def test_scoring_away_from_temperature_1_is_bounded() -> None:
    assert chosen(FULL, 0.7, verification="scoring") == ("scoring", "BOUNDED")
    assert chosen(FULL, 0.7, verification="scoring", vocab_size=15) == ("scoring", "EXACT")
    assert chosen(FULL, 0.7, top_k=10) == ("scoring", "EXACT")
    with pytest.raises(IncapableError, match="top-k keeps 50"):
        chosen(FULL, 0.7, top_k=50, verification="scoring")


@pytest.mark.parametrize(
    ("rule", "temperature", "expected"),
    [
        ("deterministic", 1.0, ("prefixes", "EXACT")),
        ("greedy", 0.0, ("scoring", "EXACT")),
        ("greedy", 1.0, ("scoring", "LOSSY")),
        ("threshold", 1.0, ("scoring", "LOSSY")),
    ],
)
def test_the_rule_limits_the_ways(rule: RuleName, temperature: float, expected: tuple[str, str]) -> None:
    assert chosen(FULL, temperature, rule) == expected


@pytest.mark.parametrize(
    ("verification", "rule", "found", "why"),
    [
        ("scoring", "probabilistic", {"scores": False, "notes": ("Echo gave 1 row.",)}, "Echo gave 1 row"),
        ("scoring", "probabilistic", {"ids_in": False}, "takes token ids"),
        ("scoring", "probabilistic", {"same_tokens": False}, "own tokenizer"),
        ("scoring", "deterministic", {}, "own draws"),
        ("prefixes", "probabilistic", {"batch": False, "notes": ("Two prompts: 400.",)}, "Two prompts: 400"),
        ("prefixes", "probabilistic", {"same_tokens": False}, "other tokens"),
        ("prefixes", "threshold", {}, "only scoring"),
        ("generating", "threshold", {}, "only scoring"),
        ("auto", "threshold", {"scores": False}, "log-probabilities of given tokens"),
    ],
)
def test_a_way_that_cannot_be_had_is_refused_with_the_reason(
    verification: Verification, rule: RuleName, found: dict[str, Any], why: str
) -> None:
    with pytest.raises(IncapableError, match=why) as caught:
        chosen(findings_of("vllm", **found), 1.0, rule, verification)
    assert caught.value.remedy


def test_long_notes_are_cut() -> None:
    with pytest.raises(IncapableError) as caught:
        chosen(findings_of("vllm", batch=False, notes=("x" * 5000,)), verification="prefixes")
    assert len(caught.value.message) < 400


def test_the_rule_in_force_is_named() -> None:
    """Reported as mlx-lm PR#1709."""
    _, guarantee = choose(FULL, "prefixes", Sampling(0.7), Rule(), 1000)
    assert "Rule in force: comparison with" in guarantee.reason
    _, guarantee = choose(FULL, "generating", Sampling(0.7), Rule("deterministic"), 1000)
    assert "Rule in force" not in guarantee.reason and "saves nothing against streaming" in guarantee.reason


def test_a_server_with_samplers_of_its_own_is_not_vouched_for() -> None:
    assert chosen(findings_of("mlx"), 0.7, top_p=0.9) == ("generating", "LOSSY")
    assert chosen(findings_of("mlx"), 0.0, top_p=0.9) == ("generating", "EXACT")
    assert chosen(findings_of("generates", takes_top_k=False), 1.0, top_k=5) == ("generating", "LOSSY")
    assert chosen(findings_of("generates", takes_top_k=None), 1.0, top_k=5) == ("generating", "UNKNOWN")
    assert chosen(findings_of("generates", takes_top_k=None), 0.0, top_k=5) == ("generating", "EXACT")


@pytest.mark.parametrize("way", ["scoring", "prefixes", "generating"])
def test_samplers_that_could_not_be_named_may_be_on(way: Verification) -> None:
    """llama-server behind a proxy that passes the completions API alone keeps its top-k, top-p and min-p."""
    found = findings_of("vllm", own_samplers=True)
    for temperature, kind in ((0.0, "EXACT"), (1.0, "UNKNOWN")):
        assert choose(found, way, Sampling(temperature), Rule(), 300)[1].kind == kind
