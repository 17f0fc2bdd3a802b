"""A loaded distilled draft, whichever engine runs it: scorers, and the map to its target's tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specviz.core.ports import Scorer
from specviz.core.vocabulary import Vocabulary
from specviz.engines.distilled import Description, DraftVocabulary, check_target


@dataclass(frozen=True, slots=True, eq=False)
class DistilledModel:
    """A loaded draft. Only the thread that loaded it may use it.

    It is no `specviz.core.ports.Model`: it has no tokenizer, and its rows are over a part of its target's tokens.

    Attributes:
        name: as the user gave it.
        vocabulary: which of its target's tokens it has. description: the target that it was trained for.
        max_context: tokens.
        precision: number format of its weights at run time. engine: what runs it.
        scorer: makes a new, empty cache. It takes the target's ids, and gives logits (rows, V) over the draft's tokens.
    """

    name: str
    vocabulary: DraftVocabulary
    description: Description
    max_context: int
    precision: str
    engine: str
    scorer: Callable[[], Scorer]

    def check_target(self, target: Vocabulary) -> None:
        """Refuse a target that it was not trained for.

        Raises:
            PairingError: see `specviz.engines.distilled.check_target`.
        """
        check_target(self.name, self.description, target)
