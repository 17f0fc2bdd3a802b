"""Small exact models for the combinatorics."""

from collections.abc import Sequence

import numpy as np

from specviz.core.ports import Capabilities, Exchange, Scorer
from specviz.core.sampling import Logits
from specviz.drafters.combined import CombinedDrafter
from specviz.drafters.model import ModelDrafter
from specviz.engines.toy import ToyScorer, ToyTokenizer
from specviz.targets.local import LocalTarget

TOKENIZER = ToyTokenizer()


def toy_target(max_context: int = 4096, stop_ids: frozenset[int] | None = None) -> LocalTarget:
    stops = TOKENIZER.stop_ids if stop_ids is None else stop_ids
    limits = Capabilities(True, TOKENIZER.vocab_size, max_context, stops)
    return LocalTarget("toy", ToyScorer(TOKENIZER), TOKENIZER, limits)


def toy_draft(noise: float = 0.8, **options: object) -> ModelDrafter:
    return ModelDrafter("toy", ToyScorer(TOKENIZER, noise), TOKENIZER, **options)  # type: ignore[arg-type]


class FixedScorer:
    """The same distribution at every position."""

    def __init__(self, probs: Sequence[float]) -> None:
        with np.errstate(divide="ignore"):
            self._row: Logits = np.log(np.asarray(probs)).astype(np.float32)

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        return np.tile(self._row, (rows, 1))

    def reset(self) -> None:
        pass


class LetterTokenizer:
    """Id i is the i-th letter; or any strings given."""

    def __init__(self, pieces: Sequence[str] = "abcdefghij") -> None:
        self.pieces = list(pieces)

    def encode(self, text: str) -> list[int]:
        return [self.pieces.index(c) for c in text]

    def chat(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
        return prompt

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(self.pieces[i] for i in token_ids)

    def token_bytes(self, token_id: int) -> bytes:
        return self.pieces[token_id].encode()

    def token_name(self, token_id: int) -> str:
        return self.pieces[token_id]


def fixed_target(probs: Sequence[float], stop_ids: frozenset[int] = frozenset()) -> LocalTarget:
    return LocalTarget("fixed", FixedScorer(probs), LetterTokenizer(), Capabilities(True, len(probs), 10_000, stop_ids))


def fixed_draft(probs: Sequence[float]) -> ModelDrafter:
    return ModelDrafter("fixed", FixedScorer(probs), LetterTokenizer())


class MarkovScorer:
    """Row i of a table of probabilities stands behind id i."""

    def __init__(self, table: Sequence[Sequence[float]]) -> None:
        with np.errstate(divide="ignore"):
            self._rows: Logits = np.log(np.asarray(table)).astype(np.float32)

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        return self._rows[list(token_ids[len(token_ids) - rows :])]

    def reset(self) -> None:
        pass


def markov_target(table: Sequence[Sequence[float]]) -> LocalTarget:
    limits = Capabilities(True, len(table), 10_000)
    return LocalTarget("markov", MarkovScorer(table), LetterTokenizer(), limits)


class PrunedScorer:
    """Another scorer's columns for some ids, as a model with a smaller vocabulary gives them."""

    def __init__(self, scorer: Scorer, tokens: Sequence[int]) -> None:
        self._scorer, self._tokens = scorer, list(tokens)

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        return self._scorer.score(token_ids, rows)[:, self._tokens]

    def reset(self) -> None:
        self._scorer.reset()


#: Toy ids that a toy draft of a smaller vocabulary has: every word but each fifth, the end, and no half characters.
PRUNED = [i for i in range(TOKENIZER.end_id + 1) if i % 5 and i not in (TOKENIZER.first_half_id,)]


def pruned_draft(noise: float = 0.8, **options: object) -> ModelDrafter:
    scorer = PrunedScorer(ToyScorer(TOKENIZER, noise), PRUNED)
    tokens = np.array(PRUNED, dtype=np.int64)
    return ModelDrafter("pruned", scorer, TOKENIZER, tokens=tokens, **options)  # type: ignore[arg-type]


def combined_draft(shortest: int = 1, min_confidence: float = 0.0, **options: object) -> CombinedDrafter:
    model = toy_draft(min_confidence=min_confidence, **options)
    return CombinedDrafter(model, shortest=shortest, stop_ids=TOKENIZER.stop_ids)
