"""From a typed prompt to the ids that both models get."""

import pytest

from specviz.core.prompt import prepare, without_template
from specviz.core.settings import Settings
from tests.toys import TOKENIZER, toy_target

BEFORE = [("the draft", "so that"), ("and then", "")]


def test_without_a_template_each_text_has_lines_of_its_own_and_nothing_stands_for_what_is_empty() -> None:
    assert without_template("the target", "is fast", BEFORE) == "is fast\nthe draft\nso that\nand then\nthe target"
    assert without_template("the target") == "the target" and without_template("", "is fast") == "is fast\n"


@pytest.mark.parametrize("raw", [False, True])
def test_the_conversation_is_in_front_of_the_prompt(raw: bool) -> None:
    system = "" if raw else "is fast"
    text, ids = prepare(toy_target(), Settings(raw=raw, system=system), "the target", BEFORE)
    assert text == without_template("the target", system, BEFORE)
    assert ids == TOKENIZER.encode(text)
    assert prepare(toy_target(), Settings(raw=raw), "the target")[0] == "the target"
