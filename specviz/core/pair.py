"""A drafter and a target that fit each other, and what makes such pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from specviz.core.connection import Secret
from specviz.core.ports import Drafter, Target, Wait
from specviz.core.settings import Settings


def _nothing_to_close() -> None:
    """A pair in this process holds no connection."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A drafter and a target whose vocabularies were checked.

    Attributes:
        where: the address of a remote target, as it may be shown.
        close: lets go of a connection; to be called when the pair is used no more.
    """

    drafter: Drafter
    target: Target
    where: str = ""
    close: Callable[[], None] = _nothing_to_close


class PairBuilder(Protocol):
    """Makes pairs; belongs to one thread and may keep models loaded between calls."""

    def build(self, settings: Settings, wait: Wait = Wait(), key: Secret | None = None) -> Pair:
        """Load what is missing and check the pairing. `key` opens a remote target; without one, the environment's."""
        ...
