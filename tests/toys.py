"""Small exact models whose output can be computed by hand."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specviz.core.noise import Noise
from specviz.core.ports import Exchange, Scorer, Tokenizer
from specviz.core.rounds import Candidate, Draft, Round
from specviz.core.sampling import Logits, Row
from specviz.core.settings import Rule, Sampling
from specviz.core.vocabulary import Vocabulary
from specviz.drafters.combined import CombinedDrafter
from specviz.drafters.model import ModelDrafter
from specviz.engines.toy import ToyScorer, ToyTokenizer
from specviz.targets.local import LocalTarget

TOKENIZER = ToyTokenizer()


def asked(
    context_ids: Sequence[int], candidates: Sequence[Candidate], sampling: Sampling, rule: Rule, seed: int = 0
) -> Round:
    """A round as the loop builds it: the first of a run with this seed."""
    return Round(tuple(context_ids), Draft(tuple(candidates)), sampling, rule, Noise(seed))


def block(*ids: int) -> Candidate:
    """A candidate that was chosen, not drawn."""
    return block_of(ids, tuple(map(Row.one_hot, ids)))


def block_of(ids: Sequence[int], rows: Sequence[Row]) -> Candidate:
    """A candidate with tokens and their q only, without recorded figures."""
    n = len(ids)
    return Candidate(tuple(ids), tuple(rows), (None,) * n, (None,) * n, ((),) * n, (0.0,) * n)


def draft(candidate: Candidate) -> Draft:
    """A draft of one candidate; without candidates if the given one is empty."""
    return Draft((candidate,) if candidate.token_ids else ())


@dataclass(frozen=True)
class TableModel:
    """Wraps a scorer as the `Model` that a target needs."""

    made: Scorer
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    stop_ids: frozenset[int] = frozenset()
    max_context: int = 10_000
    name: str = "table"
    engine: str = "toy"
    precision: str = "float32"
    blas: str = ""
    model_file: str = ""

    def scorer(self) -> Scorer:
        return self.made


def local_target(
    name: str,
    scorer: Scorer,
    tokenizer: Tokenizer,
    vocab_size: int,
    max_context: int = 10_000,
    stop_ids: frozenset[int] = frozenset(),
) -> LocalTarget:
    vocabulary = Vocabulary("toy", tuple(map(str, range(vocab_size))))
    return LocalTarget(name, TableModel(scorer, tokenizer, vocabulary, stop_ids, max_context))


def toy_target(max_context: int = 4096, stop_ids: frozenset[int] | None = None) -> LocalTarget:
    stops = TOKENIZER.stop_ids if stop_ids is None else stop_ids
    return local_target("toy", ToyScorer(TOKENIZER), TOKENIZER, TOKENIZER.vocab_size, max_context, stops)


def toy_draft(noise: float = 0.8, **options: object) -> ModelDrafter:
    return ModelDrafter("toy", ToyScorer(TOKENIZER, noise), TOKENIZER, **options)  # type: ignore[arg-type]


class FixedScorer(Scorer):
    """The same distribution at every position."""

    def __init__(self, probs: Sequence[float]) -> None:
        with np.errstate(divide="ignore"):
            self._row: Logits = np.log(np.asarray(probs)).astype(np.float32)

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        return np.tile(self._row, (rows, 1))

    def reset(self) -> None:
        pass


class LetterTokenizer:
    """Id i is the i-th letter, or the i-th of the given strings."""

    def __init__(self, pieces: Sequence[str] = "abcdefghij") -> None:
        self.pieces = list(pieces)

    def encode(self, text: str) -> list[int]:
        return [self.pieces.index(c) for c in text]

    def chat(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
        return prompt

    def chat_ids(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> tuple[str, list[int]]:
        return prompt, self.encode(prompt)

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(self.pieces[i] for i in token_ids)

    def token_bytes(self, token_id: int) -> bytes:
        return self.pieces[token_id].encode()

    def token_name(self, token_id: int) -> str:
        return self.pieces[token_id]


def fixed_target(probs: Sequence[float], stop_ids: frozenset[int] = frozenset()) -> LocalTarget:
    return local_target("fixed", FixedScorer(probs), LetterTokenizer(), len(probs), stop_ids=stop_ids)


def fixed_draft(probs: Sequence[float]) -> ModelDrafter:
    return ModelDrafter("fixed", FixedScorer(probs), LetterTokenizer())


class MarkovScorer(Scorer):
    """Row i of a table of probabilities is the distribution after id i."""

    def __init__(self, table: Sequence[Sequence[float]]) -> None:
        with np.errstate(divide="ignore"):
            self._rows: Logits = np.log(np.asarray(table)).astype(np.float32)

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        return self._rows[list(token_ids[len(token_ids) - rows :])]

    def reset(self) -> None:
        pass


def markov_target(table: Sequence[Sequence[float]]) -> LocalTarget:
    return local_target("markov", MarkovScorer(table), LetterTokenizer(), len(table))


class PrunedScorer(Scorer):
    """Another scorer's columns for some ids, like a model with a smaller vocabulary."""

    def __init__(self, scorer: Scorer, tokens: Sequence[int]) -> None:
        self._scorer, self._tokens = scorer, list(tokens)

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        return self._scorer.score(token_ids, rows)[:, self._tokens]

    def reset(self) -> None:
        self._scorer.reset()


#: Toy ids of a draft with a smaller vocabulary: up to the end token, without every fifth id and one half character.
PRUNED = [i for i in range(TOKENIZER.end_id + 1) if i % 5 and i not in (TOKENIZER.first_half_id,)]


def pruned_draft(noise: float = 0.8, **options: object) -> ModelDrafter:
    scorer = PrunedScorer(ToyScorer(TOKENIZER, noise), PRUNED)
    tokens = np.array(PRUNED, dtype=np.int64)
    return ModelDrafter("pruned", scorer, TOKENIZER, tokens=tokens, **options)  # type: ignore[arg-type]


def combined_draft(
    shortest: int = 1,
    min_confidence: float = 0.0,
    stop_ids: frozenset[int] = frozenset(),
    max_context: int | None = None,
) -> CombinedDrafter:
    model = toy_draft(min_confidence=min_confidence, stop_ids=stop_ids, max_context=max_context)
    return CombinedDrafter(model, shortest=shortest, stop_ids=TOKENIZER.stop_ids)
