import random
import re
from collections import Counter

import pytest

from specviz.distill.damage import damage
from specviz.distill.prompts import (
    DOMAINS,
    Prompt,
    fix_prompt,
    held_out,
    summarise_prompt,
    training_prompts,
)
from specviz.distill.texts import passages, templates, topics

TEXT_DOMAINS = ("summarise", "fix")


@pytest.fixture(scope="module")
def training() -> list[Prompt]:
    return training_prompts(2000, seed=0)


def words(text: str) -> list[str]:
    return [bare for word in text.lower().split() if (bare := word.strip(",.!?;:\"'()"))]


def runs(text: str, length: int) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[i : i + length]) for i in range(len(found) - length + 1)}


def test_every_domain_has_the_wanted_number_of_distinct_prompts(training: list[Prompt]) -> None:
    assert Counter(prompt.domain for prompt in training) == dict.fromkeys(DOMAINS, 2000)
    assert len({prompt.text for prompt in training}) == len(training)


def test_three_thousand_of_each_exist() -> None:
    assert len(set(training_prompts(3000, seed=1))) == 3000 * len(DOMAINS)


def test_a_seed_decides_the_prompts() -> None:
    assert training_prompts(20, seed=0) == training_prompts(20, seed=0)
    assert training_prompts(20, seed=0) != training_prompts(20, seed=1)


def test_asking_for_more_than_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"\d+ distinct prompts, 300000 were asked for"):
        training_prompts(300_000, seed=0)


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_domain_has_enough_phrasings(domain: str) -> None:
    assert len(set(templates()[domain])) == len(templates()[domain]) >= 12


def test_every_list_of_topics_is_used_and_free_of_duplicates() -> None:
    phrasings = " ".join(template for domain in DOMAINS for template in templates()[domain])
    for name, items in topics().items():
        assert f"{{{name}}}" in phrasings
        assert [item for item, count in Counter(items).items() if count > 1] == [], name


def test_all_text_is_plain_and_filled(training: list[Prompt]) -> None:
    for prompt in (*training, *held_out()):
        assert all(line.isprintable() for line in prompt.text.split("\n")), prompt
        assert prompt.text == prompt.text.strip()
    assert not [prompt for prompt in training if "{" in prompt.text or "  " in prompt.text]


def test_passages_are_many_short_and_different() -> None:
    assert len(set(passages())) == len(passages()) >= 40
    assert all(50 <= len(passage.split()) <= 110 for passage in passages())


def test_held_out_prompts_are_eight_of_each_domain() -> None:
    assert [prompt.domain for prompt in held_out()] == [domain for domain in DOMAINS for _ in range(8)]
    assert len({prompt.text for prompt in held_out()}) == 80
    assert all(60 <= len(p.text.split()) <= 150 for p in held_out() if p.domain in TEXT_DOMAINS)


def test_held_out_prompts_share_nothing_with_training(training: list[Prompt]) -> None:
    assert not {" ".join(words(p.text)) for p in training} & {" ".join(words(p.text)) for p in held_out()}
    seen = set().union(*(runs(text, 8) for text in (*(p.text for p in training), *passages())))
    shared = {run for prompt in held_out() for run in runs(prompt.text, 8)} & seen
    assert not shared


def test_held_out_prompts_name_no_training_topic() -> None:
    generic = ("count", "recipient", "tone", "genre", "code_ask", "json_ask", "ask", "greeting", "audience")
    items = [item.lower() for name, listed in topics().items() if name not in generic for item in listed]
    asked = "\n".join(prompt.text.lower() for prompt in held_out() if prompt.domain not in TEXT_DOMAINS)
    assert [topic for topic in items if re.search(rf"(?<!\w){re.escape(topic)}(?!\w)", asked)] == []


def test_a_prompt_for_a_summary_contains_the_whole_text() -> None:
    text = 'One {brace} and "quotes" stay. So does this.'
    written = [summarise_prompt(text, random.Random(seed)) for seed in range(100)]
    assert all(text in prompt.text and prompt.domain == "summarise" for prompt in written)
    assert len(set(written)) >= 12


def test_a_prompt_for_a_correction_contains_the_text_with_mistakes() -> None:
    text = passages()[0]
    written = [fix_prompt(text, random.Random(seed)) for seed in range(100)]
    assert all(text not in prompt.text and prompt.domain == "fix" for prompt in written)
    assert len(set(written)) == 100


@pytest.mark.parametrize("seed", range(20))
def test_damage_hits_one_word_in_six_to_twelve(seed: int) -> None:
    for passage in passages():
        damaged = damage(passage, random.Random(seed))
        before, after = passage.split(), damaged.split()
        assert len(after) == len(before)
        hits = sum(b != a for b, a in zip(before, after, strict=True))
        assert len(before) / 12 <= hits <= len(before) / 6 + 1


def test_damage_makes_every_kind_of_mistake() -> None:
    expected = {"don't": "dont", "Their": "There", "its": "it's", "goes": "go", "because": "becuase", "end.": "end"}
    for word, fault in expected.items():
        assert fault in {damage(word, random.Random(seed)) for seed in range(60)}
    assert {damage("water", random.Random(seed)) for seed in range(200)} >= {"waer", "watter", "waetr"}
    assert damage("The", random.Random(0)) == "the"


def test_damage_keeps_white_space_and_text_without_letters() -> None:
    assert damage("12 + 30", random.Random(0)) == "12 + 30"
    assert damage("", random.Random(0)) == ""
    lines = "\n- one thing\n\n  - another  thing\n"
    assert re.findall(r"\s+", damage(lines, random.Random(3))) == re.findall(r"\s+", lines)


def test_the_random_generator_decides_the_damage() -> None:
    text = passages()[1]
    assert damage(text, random.Random(5)) == damage(text, random.Random(5)) != damage(text, random.Random(6))
