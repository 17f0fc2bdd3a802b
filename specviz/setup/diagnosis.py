"""What a remote target's server can do, and what may be promised with it: for `specviz doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from specviz.core.connection import Secret
from specviz.core.errors import IncapableError
from specviz.core.events import Guarantee, Way
from specviz.core.ports import Wait
from specviz.core.settings import Sampling, Settings
from specviz.setup import catalog

if TYPE_CHECKING:
    from specviz.targets.completions.values import Findings

TEMPERATURES = (0.0, 0.7, 1.0)


@dataclass(frozen=True, slots=True)
class VerificationPlan:
    """How a round would be verified at a temperature.

    Attributes:
        way, guarantee: None where it could not be. reason: of the guarantee, or of there being none.
    """

    temperature: float
    way: Way | None
    guarantee: Guarantee | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """The guarantee by its kind alone: what a bound is shows as a run goes on."""
        kind = self.guarantee.kind if self.guarantee else None
        return {"temperature": self.temperature, "way": self.way, "guarantee": kind, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A server, tried out.

    Attributes:
        address: as it may be shown.
        tokenizer: where it is from. own: it is the target's; else the draft's, which stands in.
    """

    target: str
    address: str
    tokenizer: str
    own: bool
    findings: Findings
    plans: tuple[VerificationPlan, ...]

    def to_json(self) -> dict[str, Any]:
        """Everything, for a program."""
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
    """Try the server of a remote target out, and plan for `TEMPERATURES`, other settings as they are.

    Raises: see `catalog.probe_target`.
    """
    findings, tokens, shown = catalog.probe_target(settings, variables, key, wait)
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
