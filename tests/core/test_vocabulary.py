from __future__ import annotations

import pytest

from specviz.core.errors import PairingError
from specviz.core.vocabulary import Vocabulary, check_pair, fingerprint

WORDS = ("<s>", "a", "b", "c")
TARGET = Vocabulary("byte-level BPE", WORDS, bos_id=0)


def test_equal_vocabularies_pass() -> None:
    check_pair(Vocabulary("byte-level BPE", ("<s>", "a", "b", "c"), bos_id=0), TARGET)


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (Vocabulary("SentencePiece", WORDS, 0), ["types", "SentencePiece", "byte-level BPE"]),
        (Vocabulary("byte-level BPE", ("<s>", "a", "x", "y"), 0), ["id 2", "'x' in the draft", "'b' in the target"]),
        (Vocabulary("byte-level BPE", (*WORDS, "d"), 0), ["sizes", "5 tokens against 4"]),
        (Vocabulary("byte-level BPE", WORDS[:3], 0), ["sizes", "3 tokens against 4"]),
        (Vocabulary("byte-level BPE", WORDS, 1), ["begin", "BOS 'a' (id 1)", "BOS '<s>' (id 0)"]),
        (Vocabulary("byte-level BPE", WORDS, None), ["begin", "no BOS token"]),
    ],
)
def test_each_cause_has_its_own_message(draft: Vocabulary, said: list[str]) -> None:
    with pytest.raises(PairingError) as caught:
        check_pair(draft, TARGET)
    assert all(words in caught.value.message for words in said)
    assert "ngram" in caught.value.remedy


def test_equal_vocabularies_have_one_fingerprint_and_others_have_another() -> None:
    assert fingerprint(TARGET) == fingerprint(Vocabulary("byte-level BPE", tuple(WORDS), bos_id=0))
    others = [
        Vocabulary("byte-level BPE", WORDS, None),
        Vocabulary("byte-level BPE", WORDS, 1),
        Vocabulary("SentencePiece", WORDS, 0),
        Vocabulary("byte-level BPE", (*WORDS, ""), 0),
        Vocabulary("byte-level BPE", ("<s>", "ab", "", "c"), 0),
        Vocabulary("byte-level BPE", ("<s>", "a\0b", "c"), 0),
        Vocabulary("byte-level BPE", ("<s>", "a", "b", "\ud800"), 0),
    ]
    assert len({fingerprint(v) for v in (TARGET, *others)}) == len(others) + 1


def test_the_fingerprint_stays_what_released_drafts_carry() -> None:
    assert fingerprint(TARGET) == "4dfc2fae245d65cca700b5980f14a8424b25f4b9fea89f08fb24412ba4307d26"
