"""Names: parsing, and writing a parsed name back."""

import pytest

from specviz.core.names import DraftName, TargetName, default_draft, draft_name, parse_draft, parse_target, target_name


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        ("local:smollm2-135m", TargetName("local", "smollm2-135m"), "here"),
        ("local:org/name", TargetName("local", "org/name"), "here"),
        ("toy", TargetName("toy"), "here"),
        ("openai:org/model:7b", TargetName("openai", "org/model:7b"), "completions"),
        ("openai:", TargetName("openai"), "completions"),
        ("local:org/name:Q4_K_M", TargetName("local", "org/name:Q4_K_M"), "here"),
        ("verifier:http://127.0.0.1:9000", TargetName("verifier", "http://127.0.0.1:9000"), "verifier"),
    ],
)
def test_targets(text: str, name: TargetName, place: str) -> None:
    assert parse_target(text) == name and name.place == place and str(name) == text


def test_openai_alone_is_a_completions_target_without_a_model() -> None:
    assert parse_target("openai") == TargetName("openai")


@pytest.mark.parametrize("text", ["", "local:", "verifier:", "smollm2-135m", "toy:x", "http://h/x", "nonsense"])
def test_what_is_no_target_is_unknown_and_here(text: str) -> None:
    assert parse_target(text).kind == "unknown" and parse_target(text).place == "here"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("none", DraftName("none")),
        ("ngram", DraftName("ngram")),
        ("toy", DraftName("toy")),
        ("model:smollm2-draft", DraftName("model", "smollm2-draft")),
        ("model:ngram+x", DraftName("model", "ngram+x")),
        ("ngram+model:org/name", DraftName("model", "org/name", lookup_first=True)),
        ("ngram+toy", DraftName("toy", lookup_first=True)),
        ("ngram+model:ollama/llama3.2:3b", DraftName("model", "ollama/llama3.2:3b", lookup_first=True)),
    ],
)
def test_drafts(text: str, name: DraftName) -> None:
    assert parse_draft(text) == name and str(name) == text == draft_name(text)


def test_a_bare_name_is_a_model() -> None:
    assert draft_name(" smollm2-draft ") == "model:smollm2-draft"
    assert draft_name("ngram+org/name") == "ngram+model:org/name"
    assert target_name("smollm2-135m") == "local:smollm2-135m"
    assert (target_name("toy"), target_name("openai:m")) == ("toy", "openai:m")
    assert (target_name("org/name:Q8_0"), draft_name("org/name:Q8_0")) == ("local:org/name:Q8_0", "model:org/name:Q8_0")
    assert draft_name("ngram+hf.co/org/name:Q8_0") == "ngram+model:hf.co/org/name:Q8_0"
    assert target_name("verifier:http://host:9000/v1") == "verifier:http://host:9000/v1"


@pytest.mark.parametrize("text", ["", "ngram+", "ngram+none", "ngram+ngram", "openai:x", "model:", "auto"])
def test_what_is_no_draft_is_unknown_and_left_as_it_is(text: str) -> None:
    assert parse_draft(text).kind == "unknown" and draft_name(text) == text


def test_the_default_pair_has_a_draft_of_its_own() -> None:
    assert parse_draft(default_draft("local:smollm2-135m")) == DraftName("model", "smollm2-draft", lookup_first=True)
    assert default_draft("local:anything") == default_draft("toy") == "ngram"
