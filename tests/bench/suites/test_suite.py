import hashlib
import json
import re
from collections import Counter
from dataclasses import FrozenInstanceError

import pytest

from specviz.bench.suites.builtin import builtin_texts
from specviz.bench.suites.suite import BenchPrompt, Suite, builtin
from specviz.core.errors import SettingsError
from specviz.distill.prompts import held_out, training_prompts
from specviz.distill.texts import passages, topics

DOMAINS = ("chat", "explanation", "story", "python", "json", "maths", "summarise", "fix")
TO_SUMMARISE, TO_FIX = ([entry.passage for entry in builtin_texts()[domain]] for domain in ("summarise", "fix"))
#: What is wrong in each text of `TO_FIX`, in its order.
MISTAKES = (
    ("parents evening", "thursday", "both of us has", "hollidays", "weather", "alot", "better then"),
    ("It were", "have took", "aple", "wont", "discribe", "your the owner", "like that to."),
    ("keys are hidden", "rooms holds", "Bronze age", "burgler", "personaly", "and let", "fourty", "half of them was"),
    ("finaly", "havn't", "realy", "two childrens", "definately", "recomend"),
    ("Welcome in", "is taking", "a excursion", "ask please", "needs about", "you find", "near of", "informations"),
    ("with out", "breaked", "slided", "us were", "and than", "happend", "they're", "cars was"),
    ("We was", "begining", "a half", "bycicle", "their were", "sayed", "who throws"),
    ("gutters has", "permit.", "everything of", "balconys", "alot", "trough", "ment", "accept"),
)
SMALL = Suite("small", tuple(BenchPrompt(f"{n}", "ab"[n % 2], f"text {n}") for n in range(6)))


def words(text: str) -> list[str]:
    return [bare for word in text.lower().split() if (bare := word.strip(",.!?;:\"'()"))]


def runs(text: str, length: int) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[i : i + length]) for i in range(len(found) - length + 1)}


def ids(suite: Suite) -> list[str]:
    return [prompt.id for prompt in suite.prompts]


def test_the_builtin_suite_has_eight_prompts_of_eight_domains() -> None:
    suite = builtin()
    assert suite.name == "builtin"
    assert suite.domains == DOMAINS
    assert Counter(prompt.domain for prompt in suite.prompts) == dict.fromkeys(DOMAINS, 8)


def test_its_ids_and_texts_are_unique_and_plain() -> None:
    prompts = builtin().prompts
    assert len({prompt.id for prompt in prompts}) == len({" ".join(words(p.text)) for p in prompts}) == 64
    for prompt in prompts:
        assert prompt.text == prompt.text.strip()
        assert "{text}" not in prompt.text
        assert all(line.isprintable() for line in prompt.text.split("\n")), prompt


def test_word_problems_have_a_number_as_answer_and_nothing_else_has_one() -> None:
    for prompt in builtin().prompts:
        is_number = re.fullmatch(r"\d+(\.\d+)?", prompt.answer) is not None
        assert is_number if prompt.domain == "maths" else prompt.answer == ""
    assert [p.answer for p in builtin().prompts if p.domain == "maths"] == [
        f"{14 * 12 - 97 - 5}",
        f"{42 / 60 / (1 / 5 + 1 / 30):.0f}",
        f"{(660 - 4 * 120) / (7 - 4):.0f}",
        f"{240 * 5 / 8 / (6 - 1):.0f}",
        f"{3 * 12}",
        f"{54 / 0.75 / 1.2:.0f}",
        f"{480 / 100 * 7.5 * 1.75 / 5:.2f}",
        f"{(84 - 2 * 29) / 2:.0f}",
    ]


@pytest.mark.parametrize("text", [*TO_SUMMARISE, *TO_FIX], ids=lambda text: text[:20])
def test_a_passage_has_60_to_120_words(text: str) -> None:
    assert 60 <= len(text.split()) <= 120
    assert sum(text in prompt.text for prompt in builtin().prompts) == 1


@pytest.mark.parametrize(("text", "mistakes"), list(zip(TO_FIX, MISTAKES, strict=True)))
def test_a_text_to_fix_has_four_to_eight_mistakes(text: str, mistakes: tuple[str, ...]) -> None:
    assert 4 <= len(mistakes) <= 8
    assert [mistake for mistake in mistakes if mistake not in text] == []


def test_prompts_for_json_ask_for_an_object() -> None:
    assert all("json" in prompt.text.lower() for prompt in builtin().prompts if prompt.domain == "json")


def test_lengths_and_voices_differ() -> None:
    lengths = [len(prompt.text.split()) for prompt in builtin().prompts if prompt.domain not in ("summarise", "fix")]
    assert min(lengths) < 8 and max(lengths) > 45
    assert 5 <= sum(prompt.text[0].islower() for prompt in builtin().prompts) <= 25
    assert max(Counter(words(prompt.text)[0] for prompt in builtin().prompts).values()) <= 8


def test_no_draft_has_been_trained_or_judged_on_a_prompt() -> None:
    others = [prompt.text for prompt in (*held_out(), *training_prompts(500, seed=0))] + list(passages())
    assert not {" ".join(words(p.text)) for p in builtin().prompts} & {" ".join(words(text)) for text in others}
    seen = set().union(*(runs(text, 8) for text in others))
    assert not {run for prompt in builtin().prompts for run in runs(prompt.text, 8)} & seen


def test_no_prompt_names_a_topic_that_drafts_are_trained_on() -> None:
    generic = ("count", "recipient", "tone", "genre", "code_ask", "json_ask", "ask", "greeting", "audience")
    items = [item.lower() for name, listed in topics().items() if name not in generic for item in listed]
    asked = "\n".join(p.text.lower() for p in builtin().prompts if p.domain not in ("summarise", "fix"))
    assert [topic for topic in items if re.search(rf"(?<!\w){re.escape(topic)}(?!\w)", asked)] == []


@pytest.mark.parametrize(
    ("per_domain", "limit", "expected"),
    [
        (None, None, "012345"),
        (1, None, "01"),
        (2, None, "0123"),
        (99, 99, "012345"),
        (None, 3, "012"),
        (2, 3, "012"),
        (1, 1, "0"),
    ],
)
def test_the_first_prompts_keep_their_order(per_domain: int | None, limit: int | None, expected: str) -> None:
    few = SMALL.first(per_domain, limit)
    assert few.name == "small"
    assert "".join(ids(few)) == expected


def test_the_first_of_each_domain_are_counted_domain_by_domain() -> None:
    uneven = Suite("uneven", tuple(BenchPrompt(f"{n}", domain, "t") for n, domain in enumerate("aaabac")))
    assert ids(uneven.first(2)) == ["0", "1", "3", "5"]
    assert Counter(prompt.domain for prompt in builtin().first(2).prompts) == dict.fromkeys(DOMAINS, 2)


@pytest.mark.parametrize("number", [0, -1])
def test_a_number_below_one_is_an_error(number: int) -> None:
    with pytest.raises(SettingsError, match=f"per domain must be at least 1, not {number}"):
        SMALL.first(per_domain=number)
    with pytest.raises(SettingsError, match=f"limit of prompts must be at least 1, not {number}"):
        SMALL.first(limit=number)


def test_prompts_and_suites_are_values() -> None:
    assert builtin() == builtin()
    with pytest.raises(FrozenInstanceError):
        SMALL.name = "other"  # type: ignore[misc]


def test_the_builtin_suite_is_the_one_that_earlier_benchmarks_ran() -> None:
    """A hash of what version 0.2 gave."""
    data = [[p.id, p.domain, p.text, p.answer] for p in builtin().prompts]
    digest = hashlib.sha256(json.dumps(data, ensure_ascii=False).encode()).hexdigest()
    assert digest == "e8b11c8264e9daccb9897c7bfb02b39fbf257144df804e7c673db0c381849c17"
