"""Sources of prompts: files, and lists that are the same at every call."""

import json
from pathlib import Path

import pytest

from specviz.core.errors import PromptError
from specviz.distill.prompts import DOMAINS, Prompt
from specviz.distill.sources import GivenPrompts, OwnPrompts, ToyPrompts, read_prompts

ANSWER = "The library keeps its oldest books in a cool and dark room, where nobody may eat or drink. " * 3


def file(tmp_path: Path, contents: bytes, name: str = "prompts.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(contents)
    return path


def test_one_prompt_a_line(tmp_path: Path) -> None:
    found = read_prompts(file(tmp_path, b"\xef\xbb\xbfHello\r\n\r\n  Write it down. \nna\xc3\xafve"))
    assert found == [Prompt("file", "Hello"), Prompt("file", "Write it down."), Prompt("file", "naïve")]


def test_json_lines_may_name_their_domain(tmp_path: Path) -> None:
    lines = [{"prompt": "Two\nlines", "id": 7}, {"prompt": "x", "domain": "maths"}]
    contents = "\n".join(map(json.dumps, lines)).encode()
    expected = [Prompt("file", "Two\nlines"), Prompt("maths", "x")]
    assert read_prompts(file(tmp_path, contents)) == expected
    assert read_prompts(file(tmp_path, contents, "p.jsonl")) == expected


def test_a_line_of_text_that_looks_like_json_is_text(tmp_path: Path) -> None:
    assert read_prompts(file(tmp_path, b'Explain {"a": 1}\n[1, 2]\n"quoted"'))[1] == Prompt("file", "[1, 2]")


@pytest.mark.parametrize(
    ("contents", "name", "words"),
    [
        (b"", "p.txt", "no prompt"),
        (b" \n\t\n", "p.txt", "no prompt"),
        (b"PAR1\x15\x04", "p.parquet", "is a Parquet file, not a text file of prompts"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "p.txt", "is a Git LFS pointer"),
        (b"good\nbad \xff\xfe line\n", "p.txt", "cannot be read as UTF-8: .* 0xff in line 2"),
        (b"good\n\nwith a \0 in it", "p.txt", "Line 3 .* not valid text"),
        (b"x" * 20_001, "p.txt", "Line 1 .* 20,001 characters"),
        (b'{"prompt": "a"}\n{"prompt": ', "p.txt", "Line 2 .* not JSON: expecting value at character 11"),
        (b'{"prompt": "a"}\nplain', "p.txt", "Line 2 .* not JSON: expecting value"),
        (b'{"prompt": "a"}\n{"text": "b"}', "p.txt", "Line 2 .* missing required field `prompt`"),
        (b'{"prompt": 5}', "p.jsonl", r"Line 1 .* got `int` - at `\$.prompt`"),
        (b'{"prompt": " "}', "p.jsonl", "Line 1 .* prompt is empty"),
        (b'{"prompt": "\\ud800"}', "p.jsonl", "Line 1 .* cannot be used"),
        (b'{"prompt": "a", "domain": " "}', "p.jsonl", r"Line 1 .* at `\$.domain`"),
        (b'{"prompt": "a", "domain": ["x"]}', "p.jsonl", r"Line 1 .* got `array` - at `\$.domain`"),
        (b"[" * 100_000, "p.jsonl", "Line 1 .* nested too deeply"),
        (b"[1]", "p.jsonl", "Line 1 .* Expected `object`"),
    ],
)
def test_a_bad_line_is_named_with_its_number(tmp_path: Path, contents: bytes, name: str, words: str) -> None:
    with pytest.raises(PromptError, match=words):
        read_prompts(file(tmp_path, contents, name))


def test_a_path_without_a_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(PromptError, match="cannot be read|is a folder"):
            read_prompts(path)


def test_own_prompts_are_of_all_domains_and_the_same_at_every_call() -> None:
    found = OwnPrompts(3).prompts(0, 200, [])
    assert {p.domain for p in found} == set(DOMAINS)
    assert OwnPrompts(3).prompts(40, 9, []) == found[40:49]
    assert OwnPrompts(4).prompts(0, 200, []) != found
    far = OwnPrompts(3).prompts(1990, 20, [])  # across two rounds
    assert len({p.text for p in far}) == 20


def test_some_prompts_contain_an_earlier_answer_of_the_target() -> None:
    found = OwnPrompts(3).prompts(0, 300, [ANSWER, "short"])
    own = [p for p in found if "oldest books in a cool" in p.text]
    assert {p.domain for p in own} <= {"summarise", "fix"} and len(own) > 10
    assert OwnPrompts(3).prompts(0, 300, [ANSWER, "short"]) == found
    without = OwnPrompts(3).prompts(0, 300, ["short"])
    assert [p for p in found if p.domain == "chat"] == [p for p in without if p.domain == "chat"]


def test_given_prompts_are_repeated_in_another_order() -> None:
    given = [Prompt("file", str(i)) for i in range(10)]
    found = GivenPrompts(given, 0).prompts(0, 20, [])
    assert sorted(p.text for p in found[:10]) == sorted(p.text for p in found[10:]) == [str(i) for i in range(10)]
    assert found[:10] != found[10:] and GivenPrompts(given, 0).prompts(5, 5, []) == found[5:10]


def test_toy_prompts_are_words_of_the_toy() -> None:
    found = ToyPrompts(0).prompts(0, 50, [])
    assert all(p.domain == "toy" for p in found) and len({p.text for p in found}) > 40
    assert not {p.text for p in found} & {p.text for p in ToyPrompts(-1).prompts(0, 16, [])}
