"""What a completions target's server can do, and the guarantees that follow: for `specviz doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from specviz.core.connection import Secret
from specviz.core.errors import IncapableError
from specviz.core.events import Way
from specviz.core.guarantee import Guarantee
from specviz.core.settings import Sampling, Settings
from specviz.core.wait import Wait
from specviz.setup.builder import probe_target

if TYPE_CHECKING:
    from specviz.targets.completions.values import Findings

TEMPERATURES = (0.0, 0.7, 1.0)


@dataclass(frozen=True, slots=True)
class VerificationPlan:
    """How rounds are verified at one temperature.

    Attributes:
        way, guarantee: None if verification is impossible. reason: of the guarantee, or why it is impossible.
    """

    temperature: float
    way: Way | None
    guarantee: Guarantee | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """As JSON-ready data. Only the kind of the guarantee: a bound is known only during a run."""
        kind = self.guarantee.kind if self.guarantee else None
        return {"temperature": self.temperature, "way": self.way, "guarantee": kind, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of probing a server.

    Attributes:
        address: without secrets.
        tokenizer: the model that it was read from. own: whether it is the target's own; else it is the draft's.
    """

    target: str
    address: str
    tokenizer: str
    own: bool
    findings: Findings
    plans: tuple[VerificationPlan, ...]

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON-ready data."""
        return {
            "target": self.target,
            "address": self.address,
            "tokenizer": self.tokenizer,
            "tokenizer_is_the_targets_own": self.own,
            "ways": list(self.findings.ways),
            "plans": [plan.to_json() for plan in self.plans],
            **asdict(self.findings),
        }


def diagnose(
    settings: Settings,
    variables: Mapping[str, str],
    key: Secret | None = None,
    wait: Wait = Wait(),
) -> Diagnosis:
    """Probe the server of a completions target, and plan for `TEMPERATURES` with the other settings unchanged.

    Raises: see `setup.builder.probe_target`.
    """
    findings, tokens, shown = probe_target(settings, variables, key, wait)
    plans = tuple(_plan(findings, settings, tokens.vocab_size, temperature) for temperature in TEMPERATURES)
    return Diagnosis(settings.target, shown, tokens.name, tokens.own, findings, plans)


def _plan(findings: Findings, settings: Settings, vocab_size: int, temperature: float) -> VerificationPlan:
    from specviz.targets.completions.choice import choose

    sampling = Sampling(temperature, settings.top_k, settings.top_p)
    try:
        way, guarantee = choose(findings, settings.verification, sampling, settings.acceptance_rule, vocab_size)
    except IncapableError as exc:
        return VerificationPlan(temperature, None, None, str(exc))
    return VerificationPlan(temperature, way, guarantee, guarantee.reason)
