"""Checks that a draft and a target can be paired: equal ids must mean equal tokens."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from specviz.core.errors import PairingError


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The properties that must be equal in a draft and a target.

    Attributes:
        kind: how pieces encode bytes: "byte-level BPE" or "SentencePiece".
        pieces: raw strings of the real tokens by id, without the padding rows that a model may have after them.
        bos_id: id of the beginning-of-text token; None if the model has none.
    """

    kind: str
    pieces: tuple[str, ...]
    bos_id: int | None = None


def fingerprint(vocabulary: Vocabulary) -> str:
    """SHA-256 of a vocabulary, in hexadecimal. Equal for two vocabularies that `check_pair` accepts as a pair."""
    seen = hashlib.sha256()
    bos = "" if vocabulary.bos_id is None else str(vocabulary.bos_id)
    for text in (vocabulary.kind, bos, *vocabulary.pieces):
        # Each length comes before its bytes: a piece may contain any character, so no separator is safe.
        data = text.encode(errors="surrogatepass")
        seen.update(len(data).to_bytes(4, "little") + data)
    return seen.hexdigest()


_REMEDY = "Use a draft of the target's own family, or the ngram draft, which fits every target."


def check_pair(draft: Vocabulary, target: Vocabulary) -> None:
    """Refuse two vocabularies that differ, with one message per cause.

    Padding is ignored: 152,064 and 151,936 rows with the same tokens are accepted. Padding rows are masked.

    Raises:
        PairingError: kind, tokens, size or beginning of text differ; reports the first difference in this order.
    """
    if draft.kind != target.kind:
        raise PairingError(
            f"Draft and target have different types of tokenizer: {draft.kind} against {target.kind}.", _REMEDY
        )
    for i, (mine, theirs) in enumerate(zip(draft.pieces, target.pieces, strict=False)):
        if mine != theirs:
            raise PairingError(
                f"Draft and target have different tokens; the first is id {i}: {mine!r} in the draft, "
                f"{theirs!r} in the target.",
                _REMEDY,
            )
    if len(draft.pieces) != len(target.pieces):
        raise PairingError(
            f"Draft and target have vocabularies of different sizes: {len(draft.pieces):,} tokens against "
            f"{len(target.pieces):,}.",
            _REMEDY,
        )
    if draft.bos_id != target.bos_id:
        raise PairingError(
            f"Draft and target begin a text differently: {_bos(draft)} in the draft, {_bos(target)} in the target.",
            _REMEDY,
        )


def _bos(vocabulary: Vocabulary) -> str:
    i = vocabulary.bos_id
    if i is None:
        return "no BOS token"
    piece = vocabulary.pieces[i] if 0 <= i < len(vocabulary.pieces) else "?"
    return f"BOS {piece!r} (id {i})"
