"""A pair of toy models that need no download: for tests, demonstrations and teaching.

The target is a table of random logits over a small vocabulary, looked up by the last two tokens. The draft is the same
table with noise added, so the two agree often but not always. A test can compute both distributions exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from specviz.core.ports import Exchange, Scorer
from specviz.core.prompt import without_template
from specviz.core.sampling import Logits
from specviz.core.vocabulary import Vocabulary
from specviz.engines.limits import check_context

NAME = "toy"
#: Standard deviation, in nats, of the noise on the draft's logits. About seven in ten of its tokens are kept.
DRAFT_NOISE = 0.8
MAX_CONTEXT = 4096

END = "<|end|>"
_WORDS = (
    " the a small large model draft drafts target token tokens proposes checks keeps refuses and then so that it "
    "is fast exact one two again text word next reads writes while of in call ."
).split(" ")
# Two tokens that make one character together, as a byte-level vocabulary has for an emoji.
_HALVES = (b"\xf0\x9f", b"\x98\x80")
_BYTES = tuple(bytes([b]) for b in range(256))


class ToyTokenizer:
    """Words and, for text that has none, single bytes. Ids: words, two half characters, the end, then 256 bytes."""

    def __init__(self) -> None:
        words = tuple(w.encode() if w == "." else b" " + w.encode() for w in _WORDS[1:])
        self._pieces: tuple[bytes, ...] = (*words, *_HALVES, b"", *_BYTES)
        self._words = sorted(range(len(words)), key=lambda i: -len(words[i]))
        self.end_id = len(words) + len(_HALVES)
        self.first_half_id = len(words)
        self.vocab_size = len(self._pieces)
        self.stop_ids = frozenset({self.end_id})

    @property
    def vocabulary(self) -> Vocabulary:
        """What a draft has to agree with."""
        return Vocabulary("toy", tuple(piece.decode("latin-1") for piece in self._pieces))

    def encode(self, text: str) -> list[int]:
        """Longest word first, then bytes; `<|end|>` is parsed as the special token."""
        ids: list[int] = []
        for at, part in enumerate(text.split(END)):
            ids += [self.end_id] if at else []
            ids += self._encode_plain(part.encode())
        return ids

    def _encode_plain(self, data: bytes) -> list[int]:
        ids: list[int] = []
        while data:
            hit = next((i for i in self._words if data.startswith(self._pieces[i])), self.end_id + 1 + data[0])
            ids.append(hit)
            data = data[len(self._pieces[hit]) :]
        return ids

    def chat(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
        """The toy has no chat template: the system prompt, if any, stands before the prompt."""
        return without_template(prompt, system, before)

    def chat_ids(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> tuple[str, list[int]]:
        """Its text and ids: `<|end|>` is parsed, since there is no template."""
        text = self.chat(prompt, system, before)
        return text, self.encode(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Bytes of all tokens joined, then read as UTF-8."""
        return b"".join(self._pieces[i] for i in token_ids).decode("utf-8", errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """Empty for the end token."""
        return self._pieces[token_id]

    def token_name(self, token_id: int) -> str:
        """The word, `<|end|>`, or escaped bytes."""
        if token_id == self.end_id:
            return END
        return self._pieces[token_id].decode("utf-8", errors="backslashreplace")


class ToyScorer(Scorer):
    """Logits from a table, by the last two tokens of the context.

    Args:
        tokenizer: gives the vocabulary. Single bytes are never generated.
        noise: standard deviation, in nats, of what is added to the target's logits. 0 gives the target.
        seed: of both tables.
    """

    def __init__(self, tokenizer: ToyTokenizer, noise: float = 0.0, seed: int = 7) -> None:
        self._tokenizer, self._noise, self._seed = tokenizer, noise, seed
        self._row = cache(self._make_row)

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        """(rows, V) logits after each of the last `rows` ids.

        Raises:
            PromptError, ValueError: see `check_context`.
        """
        check_context(token_ids, rows, name=NAME, vocab_size=self._tokenizer.vocab_size, max_context=MAX_CONTEXT)
        ids = [self._tokenizer.end_id, *token_ids]
        return np.stack([self._row(ids[i - 1], ids[i]) for i in range(len(ids) - rows, len(ids))])

    def reset(self) -> None:
        """The toy has no cache."""

    def _make_row(self, before: int, last: int) -> Logits:
        n, end = self._tokenizer.vocab_size, self._tokenizer.end_id
        row = np.full(n, -np.inf, dtype=np.float32)
        made = end + 1
        row[:made] = 2.0 * np.random.default_rng((self._seed, before, last)).normal(size=made)
        row[end] -= 2.0
        half = self._tokenizer.first_half_id
        row[half + 1] = -np.inf
        if last == half:
            row[:] = -np.inf
            row[half + 1] = 0.0
        if self._noise:
            noise = np.random.default_rng((self._seed + 1, before, last)).normal(size=n)
            row += np.float32(self._noise) * noise.astype(np.float32)
        return row


class ToyModel:
    """The toy target or, with noise, the toy draft.

    Args:
        noise: see `ToyScorer`; `DRAFT_NOISE` gives the draft.
    """

    name = NAME
    engine = "toy"
    precision = "float32"
    blas = ""
    model_file = ""
    max_context = MAX_CONTEXT

    def __init__(self, noise: float = 0.0) -> None:
        self.tokenizer = ToyTokenizer()
        self.vocabulary = self.tokenizer.vocabulary
        self.stop_ids = self.tokenizer.stop_ids
        self._noise = noise

    def scorer(self) -> ToyScorer:
        """Scorers of one toy give equal rows."""
        return ToyScorer(self.tokenizer, self._noise)
