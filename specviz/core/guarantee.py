"""How exact a run is: the four guarantees, from best to worst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from specviz.core.codec import Share

#: From best to worst.
GuaranteeKind = Literal["EXACT", "BOUNDED", "LOSSY", "UNKNOWN"]
_GUARANTEES: dict[str, GuaranteeKind] = {kind: kind for kind in get_args(GuaranteeKind)}


@dataclass(frozen=True, slots=True)
class Guarantee:
    """How far the output distribution is the target's own.

    Attributes:
        kind: EXACT, BOUNDED (total variation per token at most `epsilon`), LOSSY or UNKNOWN.
        reason: why, in one sentence for the user.
    """

    kind: GuaranteeKind
    reason: str
    epsilon: Share | None = None

    def __str__(self) -> str:
        return f"BOUNDED({self.epsilon:.2g})" if self.kind == "BOUNDED" else self.kind

    @classmethod
    def parse(cls, text: str) -> Guarantee:
        """The inverse of `str`, without the reason. Any other text is UNKNOWN."""
        kind, _, epsilon = text.rstrip(")").partition("(")
        try:
            return cls(_GUARANTEES[kind], "", float(epsilon) if epsilon else None)
        except (KeyError, ValueError):
            return cls("UNKNOWN", "")


def badness(guarantee: Guarantee) -> tuple[int, float]:
    """Sort key; larger is worse: EXACT, BOUNDED by its epsilon, LOSSY, UNKNOWN."""
    return tuple(_GUARANTEES).index(guarantee.kind), guarantee.epsilon or 0.0


def worst(one: Guarantee, *others: Guarantee | None) -> Guarantee:
    """The worst of some guarantees, the first on a tie."""
    return max([one, *(g for g in others if g is not None)], key=badness)
