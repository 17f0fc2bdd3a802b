"""A drafter and a target with the same vocabulary, and the protocol of what builds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from specviz.core.connection import Secret
from specviz.core.ports import Drafter, Target
from specviz.core.settings import Settings
from specviz.core.wait import Wait


def _nothing_to_close() -> None:
    """A pair in this process holds no connection."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A drafter and a target whose vocabularies were checked.

    Attributes:
        where: the address of a completions target, without secrets.
        close: closes the connection; call it when the pair is no longer used.
    """

    drafter: Drafter
    target: Target
    where: str = ""
    close: Callable[[], None] = _nothing_to_close


class PairBuilder(Protocol):
    """Builds pairs; belongs to one thread and may keep models loaded between calls."""

    def build(self, settings: Settings, wait: Wait = Wait(), key: Secret | None = None) -> Pair:
        """Load what is missing and check the pairing. `key`: API key of a completions target; default: environment."""
        ...
