"""Prompt lookup: finds an earlier occurrence of the last tokens of a context.

It costs almost nothing and needs no model (Saxena 2023, "Prompt Lookup Decoding"). It helps with summaries, corrections
and code, where the output repeats the prompt or itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specviz.core.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Lookup:
    """Searches a context for its own last tokens: the longest match wins, then the most recent.

    Attributes:
        longest, shortest: maximum and minimum number of tokens that must match.
    """

    longest: int = 4
    shortest: int = 1

    def __post_init__(self) -> None:
        """Check the lengths.

        Raises:
            SettingsError: they do not form a range.
        """
        if not 1 <= self.shortest <= self.longest:
            raise SettingsError(
                f"n-gram lengths must be 1 ≤ shortest ≤ longest, not {self.shortest} and {self.longest}."
            )

    def find(self, ids: Sequence[int]) -> int | None:
        """Index of the id that followed the best earlier match; None if there is no match.

        A caller that copies from there while appending to `ids` never reaches the end: after a match near the end, the
        copy continues with the copied ids, and a repeated phrase goes on repeating.
        """
        if len(ids) <= self.shortest:
            return None
        context = np.asarray(ids, dtype=np.int64)
        ends = np.flatnonzero(context[:-1] == context[-1])
        best, length = None, 0
        for n in range(1, self.longest + 1):
            if n > 1:
                ends = ends[ends >= n - 1]
                ends = ends[context[ends - (n - 1)] == context[-n]] if n <= len(context) else ends[:0]
            if len(ends) == 0:
                break
            best, length = int(ends[-1]) + 1, n
        return best if length >= self.shortest else None
