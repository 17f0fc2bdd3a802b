"""Exact text of ids, and ids of text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.core.errors import AnswerError
from specviz.targets.completions.reading.texts import exact_text, ids_of, token_of, whole_characters, written_all
from tests.targets.completions.remotes import TOY
from tests.toys import TOKENIZER, LetterTokenizer

WORDS = TOKENIZER.first_half_id


@given(st.lists(st.integers(0, TOKENIZER.end_id)))
def test_the_text_of_ids_holds_all_of_them(ids: list[int]) -> None:
    exact = exact_text(ids, TOY)
    assert exact.faithful == (TOY.encode(exact.text) == ids)
    if "\ufffd" not in exact.text:
        assert exact.text.encode() == written_all(ids, TOY)


def test_special_tokens_go_by_their_names() -> None:
    ids = [*TOKENIZER.encode(" the draft"), TOKENIZER.end_id, *TOKENIZER.encode(" model")]
    exact = exact_text(ids, TOKENIZER)
    assert exact.text == " the draft<|end|> model" and exact.faithful


def test_half_a_character_is_not_faithful() -> None:
    assert not exact_text([0, TOKENIZER.first_half_id], TOY).faithful
    assert exact_text([0, TOKENIZER.first_half_id, TOKENIZER.first_half_id + 1], TOY).faithful


class Sentence(LetterTokenizer):
    """As SentencePiece: it adds a space at the start of a text; the BOS has only a name."""

    bos_id = 0

    def __init__(self) -> None:
        super().__init__(["<s>", " a", " b", "b", "\n", " "])

    def encode(self, text: str) -> list[int]:
        text, ids = " " + text if text and not text.startswith("<s>") else text, []
        while text:
            piece = max((p for p in self.pieces if text.startswith(p)), key=len)
            ids.append(self.pieces.index(piece))
            text = text[len(piece) :]
        return ids

    def token_bytes(self, token_id: int) -> bytes:
        return b"" if token_id == 0 else super().token_bytes(token_id)


def test_a_space_that_the_tokenizer_adds_is_left_out() -> None:
    exact = exact_text([1, 2, 3], Sentence())
    assert exact.text == "a bb" and exact.faithful


def test_a_bos_that_the_server_adds_is_left_out() -> None:
    assert exact_text([0, 1, 2], Sentence(), bos_added=True).text == "a b"
    assert exact_text([0, 1, 2], Sentence()).text == "<s> a b"
    assert exact_text([1, 2], Sentence(), bos_added=True).text == "a b"


def test_a_piece_in_the_middle_of_a_text_has_no_such_space() -> None:
    assert ids_of(b"b", Sentence(), 6) == (3,)
    assert ids_of(b"bb", Sentence(), 6) == (3, 3)
    assert ids_of(b" b", Sentence(), 6) == (2,)


class Tolerant(LetterTokenizer):
    """Leaves out characters that it has no token for."""

    def encode(self, text: str) -> list[int]:
        return super().encode("".join(c for c in text if c in self.pieces))


def test_a_token_that_encoding_never_gives_is_found() -> None:
    """Reported as trl#5224."""

    tokenizer = Tolerant(["l", "o", "llo"])
    assert token_of(b"llo", tokenizer, 3) == 2 and token_of(b"llo", tokenizer, 2) is None


@given(st.text(max_size=20))
def test_any_text_can_be_written(text: str) -> None:
    data = text.encode()
    assert written_all(ids_of(data, TOY, TOY.vocab_size), TOY) == data if data else True


@given(st.binary(min_size=1, max_size=8))
def test_any_bytes_can_be_written(data: bytes) -> None:
    assert written_all(ids_of(data, TOY, TOY.vocab_size), TOY) == data


def test_bytes_without_tokens_are_refused_with_a_short_message() -> None:
    with pytest.raises(AnswerError, match="has no tokens for") as caught:
        ids_of(b"z" * 10_000 + b"\x00", Tolerant(["z"]), 1)
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("data", "whole"),
    [(b"", True), (b"a", True), (b"\xf0\x9f", False), ("😀".encode(), True), (b"\x80", True), (b"\xc3", False)],
)
def test_where_characters_end(data: bytes, whole: bool) -> None:
    assert whole_characters(data) is whole
