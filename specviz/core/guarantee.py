"""How exact a run is: the four guarantees, from best to worst."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Literal, get_args

from specviz.core.codec import Share

#: From best to worst.
GuaranteeKind = Literal["EXACT", "BOUNDED", "LOSSY", "UNKNOWN"]
_GUARANTEES: dict[str, GuaranteeKind] = {kind: kind for kind in get_args(GuaranteeKind)}
#: A bound is shown with two digits, and never below its value.
_SHOWN = Context(prec=2, rounding=ROUND_CEILING)


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
        if self.kind != "BOUNDED" or self.epsilon is None:
            return self.kind
        return f"BOUNDED({float(_SHOWN.create_decimal(repr(self.epsilon))):g})"

    @classmethod
    def parse(cls, text: str) -> Guarantee:
        """The inverse of `str`, without the reason. Any other text, or a bound that is no share, is UNKNOWN."""
        kind, _, epsilon = text.rstrip(")").partition("(")
        try:
            bound = float(epsilon) if epsilon else None
            if bound is None or 0 <= bound <= 1:
                return cls(_GUARANTEES[kind], "", bound)
        except (KeyError, ValueError):
            pass
        return cls("UNKNOWN", "")


#: Of a run that has ended without a token.
NOTHING = Guarantee("UNKNOWN", "No token was emitted, so there is no output to promise anything about.")


def badness(guarantee: Guarantee) -> tuple[int, float]:
    """Sort key; larger is worse: EXACT, BOUNDED by its epsilon (1 where it is not known), LOSSY, UNKNOWN."""
    return tuple(_GUARANTEES).index(guarantee.kind), 1.0 if guarantee.epsilon is None else guarantee.epsilon


def worst(one: Guarantee, *others: Guarantee | None) -> Guarantee:
    """The worst of some guarantees, the first on a tie."""
    return max([one, *(g for g in others if g is not None)], key=badness)
