"""The prompts are those that earlier drafts were made and measured with: hashes of what version 0.2 gave."""

import hashlib
import json
import random
from typing import Any

import pytest

from specviz.distill.prompts import fix_prompt, held_out, training_prompts
from specviz.distill.sources import OwnPrompts, ToyPrompts
from specviz.distill.texts import passages

ANSWER = "The library keeps its oldest books in a cool and dark room, where nobody may eat or drink. " * 3


def digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, ensure_ascii=False).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("seed", "expected"), [(0, "1555f879e26b0e07"), (1, "59d0130b98ad188f"), (7, "5e8a0ff863b394dd")]
)
def test_training_prompts_are_the_same_for_the_same_seed(seed: int, expected: str) -> None:
    assert digest([[p.domain, p.text] for p in training_prompts(300, seed)]) == expected


def test_held_out_prompts_and_passages_are_the_same() -> None:
    assert digest([[p.domain, p.text] for p in held_out()]) == "068be811bd129742"
    assert digest(list(passages())) == "520882e1f5df162e"


def test_prompts_of_a_run_are_the_same() -> None:
    own = OwnPrompts(3).prompts(1900, 200, [ANSWER, "short"])
    assert digest([[p.domain, p.text] for p in own]) == "2c711943ac553260"
    assert digest([[p.domain, p.text] for p in ToyPrompts(0).prompts(0, 50, [])]) == "840a01f1f93495a8"


def test_a_text_is_damaged_in_the_same_places() -> None:
    assert digest([fix_prompt(passages()[0], random.Random(seed)).text for seed in range(100)]) == "9ef8e76930dfb963"
