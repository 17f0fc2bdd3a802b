"""Conversion between ids and text, for servers that take or give no ids.

The ids decide. The exact text of ids has special tokens by their names, so that nothing is lost, and the server's
tokens can be checked against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specviz.core.errors import AnswerError
from specviz.core.ports import Tokenizer

REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class ExactText:
    """A prompt as text. `faithful`: encoding it gives exactly the ids that it was made of."""

    text: str
    faithful: bool


def written(token_id: int, tokenizer: Tokenizer) -> bytes:
    """The exact text of one token: its bytes, or its name where it is a special token."""
    return tokenizer.token_bytes(token_id) or tokenizer.token_name(token_id).encode()


def written_all(token_ids: Sequence[int], tokenizer: Tokenizer) -> bytes:
    """The exact text of ids, as UTF-8; may begin or end inside a character."""
    return b"".join(written(i, tokenizer) for i in token_ids)


def exact_text(token_ids: Sequence[int], tokenizer: Tokenizer, bos_added: bool = False) -> ExactText:
    """The text to send for ids.

    Args:
        bos_added: the server adds a BOS itself, so one at the start of the ids is left out.
    """
    ids = list(token_ids)
    if bos_added and ids and ids[0] == getattr(tokenizer, "bos_id", None):
        ids = ids[1:]
    text = written_all(ids, tokenizer).decode("utf-8", errors="replace")
    # SentencePiece adds a space at the start of a text, so the text to send may have one space less.
    for candidate in [text, text[1:]] if text.startswith(" ") else [text]:
        if tokenizer.encode(candidate) == ids:
            return ExactText(candidate, True)
    return ExactText(text, False)


def whole_characters(data: bytes) -> bool:
    """Whether bytes end at the end of a character."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as exc:
        return exc.reason != "unexpected end of data"
    return True


def token_of(data: bytes, tokenizer: Tokenizer, vocab_size: int) -> int | None:
    """The token of exactly these bytes; None where the vocabulary has none."""
    encoded = _encode(data, tokenizer, vocab_size)
    if len(encoded) == 1:
        return encoded[0]
    # A model may write tokens that encoding never gives, such as "llo" after "he".
    return next((i for i in range(vocab_size) if tokenizer.token_bytes(i) == data), None) if data else None


def ids_of(data: bytes, tokenizer: Tokenizer, vocab_size: int) -> tuple[int, ...]:
    """Ids whose exact text is these bytes; a single id where there is such a token.

    Raises:
        AnswerError: no ids write exactly this.
    """
    one = token_of(data, tokenizer, vocab_size)
    ids = (one,) if one is not None else _encode(data, tokenizer, vocab_size)
    return ids or _longest_first(data, tokenizer, vocab_size)


def _longest_first(data: bytes, tokenizer: Tokenizer, vocab_size: int) -> tuple[int, ...]:
    """Ids for bytes that no text encodes to, such as the second half of a character."""
    tokens = {tokenizer.token_bytes(i): i for i in reversed(range(vocab_size))}
    longest, ids, at = max(map(len, tokens)), [], 0
    while at < len(data):
        ends = range(min(len(data), at + longest), at, -1)
        end = next((end for end in ends if data[at:end] in tokens), None)
        if end is None:
            shown = data[:80].decode("utf-8", errors="backslashreplace")
            raise AnswerError(
                f"The server wrote {shown!r}, which this tokenizer has no tokens for.",
                "Name the target's own tokenizer (--tokenizer).",
            )
        ids.append(tokens[data[at:end]])
        at = end
    return tuple(ids)


def _encode(data: bytes, tokenizer: Tokenizer, vocab_size: int) -> tuple[int, ...]:
    """The tokenizer's ids; () unless their exact text is `data`."""
    text = data.decode("utf-8", errors="replace")
    for ids in _encodings(text, tokenizer):
        if all(0 <= i < vocab_size for i in ids) and written_all(ids, tokenizer) == data:
            return tuple(ids)
    return ()


def _encodings(text: str, tokenizer: Tokenizer) -> Iterator[list[int]]:
    """The ids of a text on its own, then of the text at the start of a line, where SentencePiece adds no space."""
    yield tokenizer.encode(text)
    anchor = tokenizer.encode("\n")
    yield tokenizer.encode("\n" + text)[len(anchor) :]
