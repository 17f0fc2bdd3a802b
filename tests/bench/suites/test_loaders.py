import codecs
import gzip
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.bench.suites import loaders
from specviz.bench.suites.loaders import BadRow, Kind, Loaded, load, read_suite, refuse_bad
from specviz.bench.suites.suite import BenchPrompt, Suite
from specviz.core.errors import SettingsError

GSM8K = {"question": "How many legs have 3 cats?", "answer": "3 cats have 3 * 4 = <<3*4=12>>12 legs.\n#### 12"}
HUMANEVAL = {
    "task_id": "Own/0",
    "prompt": 'def double(x):\n    """Twice x."""\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "test": "assert double(2) == 4",
}
SPEC_BENCH = {"question_id": 81, "category": "writing", "turns": ["Write a limerick.", "Now make it sad."]}


def _gzip(data: bytes) -> bytes:
    """Packed without a time stamp, because the names of tests must be the same in every process."""
    return gzip.compress(data, mtime=0)


def lines(*rows: Any) -> bytes:
    return "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows).encode()


def read(data: bytes, name: str = "own.jsonl", **options: Any) -> Loaded:
    return load(io.BytesIO(data), name, **options)


def texts(loaded: Loaded) -> list[str]:
    return [prompt.text for prompt in loaded.suite.prompts]


def ids(loaded: Loaded) -> list[str]:
    return [prompt.id for prompt in loaded.suite.prompts]


# --- kinds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("row", "kind", "expected"),
    [
        (GSM8K, "gsm8k", [BenchPrompt("1", "maths", "How many legs have 3 cats?", "12")]),
        (HUMANEVAL, "humaneval", [BenchPrompt("Own/0", "python", HUMANEVAL["prompt"], "    return 2 * x\n")]),
        (
            SPEC_BENCH,
            "spec-bench",
            [
                BenchPrompt("81/1", "writing", "Write a limerick."),
                BenchPrompt("81/2", "writing", "Now make it sad.", before=("Write a limerick.",)),
            ],
        ),
        ({"prompt": "Hi"}, "jsonl", [BenchPrompt("1", "own", "Hi")]),
        ({"question": "Why?", "answer": "So."}, "jsonl", [BenchPrompt("1", "own", "Why?", "So.")]),
    ],
)
def test_a_kind_is_read_named_or_not(row: dict[str, Any], kind: Kind, expected: list[BenchPrompt], named: bool) -> None:
    assert read(lines(row), kind=kind if named else None) == Loaded(Suite("own", tuple(expected)), (), kind)


def test_the_kind_is_that_of_the_first_row_that_can_be_read() -> None:
    loaded = read(lines("oops", {"other": 1}, {"question": "Why?"}, GSM8K))
    assert (loaded.kind, texts(loaded)) == ("jsonl", ["Why?", GSM8K["question"]])
    loaded = read(lines("oops", {"other": 1}, GSM8K, {"question": "no sum", "answer": "none"}, {"prompt": "p"}))
    assert (loaded.kind, texts(loaded)) == ("gsm8k", [GSM8K["question"], "no sum"])
    assert [(bad.line, bad.why) for bad in loaded.bad][-1] == (5, "its question is missing")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("so #### 1,200", "1,200"), ("a #### 1\n#### -3 ", "-3"), ("no mark", "no mark"), (None, ""), (7, "7")],
)
def test_the_answer_of_gsm8k_comes_after_the_mark(answer: Any, expected: str) -> None:
    loaded = read(lines({"question": "q", "answer": answer}), kind="gsm8k")
    assert loaded.suite.prompts[0].answer == expected


@pytest.mark.parametrize("name", ["own.csv", "own.CSV", "own.csv.gz", "own.tsv"])
def test_a_csv_is_known_by_its_ending(name: str) -> None:
    loaded = read(b'id,prompt,answer,domain\na,"Hi, you",1,chat\nb,"two\nlines",,\n', name)
    assert loaded.kind == "csv"
    assert loaded.suite == Suite(
        "own", (BenchPrompt("a", "chat", "Hi, you", "1"), BenchPrompt("b", "own", "two\nlines"))
    )


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_the_separator_of_a_csv_is_the_one_that_its_first_line_has_most_of(mark: str) -> None:
    assert texts(read(f"id{mark}prompt{mark}task\n1{mark}Hi{mark}x\n".encode(), "a.csv")) == ["Hi"]


def test_a_kind_that_is_named_wins_over_the_ending() -> None:
    assert texts(read(b"prompt\nHi\n", "own.txt", kind="csv")) == ["Hi"]
    assert texts(read(lines({"prompt": "Hi"}), "own.csv", kind="jsonl")) == ["Hi"]


@pytest.mark.parametrize("is_csv", [True, False])
@pytest.mark.parametrize(
    ("columns", "wanted", "found"),
    [
        ("input instruction text question prompt", None, "prompt"),
        ("input instruction text question", None, "question"),
        ("input instruction text", None, "text"),
        ("input instruction", None, "instruction"),
        ("other input", None, "input"),
        ("Other Prompt", None, "Prompt"),
        ("prompt other", "other", "other"),
        ("prompt Other", "oTHER ", "Other"),
    ],
)
def test_the_column_is_the_one_named_or_the_first_known(
    columns: str, wanted: str | None, found: str, is_csv: bool
) -> None:
    names = columns.split()
    data = f"{','.join(names)}\n{','.join(names)}\n".encode() if is_csv else lines({name: name for name in names})
    assert texts(read(data, "own.csv" if is_csv else "own.jsonl", column=wanted)) == [found]


def test_the_column_is_decided_once_for_all_rows() -> None:
    loaded = read(lines({"question": "q"}, {"prompt": "p"}, {"question": "q2", "prompt": "p2"}))
    assert texts(loaded) == ["q", "q2"]
    assert loaded.bad == (BadRow(2, "its question is missing"),)


@pytest.mark.parametrize(
    ("fields", "id_", "domain", "answer"),
    [
        ({}, "1", "own", ""),
        ({"id": "a", "task_id": "b"}, "a", "own", ""),
        ({"task_id": 0, "question_id": "c"}, "0", "own", ""),
        ({"id": None, "question_id": 5}, "5", "own", ""),
        ({"id": True, "task_id": ["x"]}, "1", "own", ""),
        ({"domain": "d", "category": "c", "task": "t"}, "1", "d", ""),
        ({"domain": " ", "category": "c"}, "1", "c", ""),
        ({"task": "t"}, "1", "t", ""),
        ({"answer": "42"}, "1", "own", "42"),
        ({"answer": 42}, "1", "own", "42"),
        ({"answer": None}, "1", "own", ""),
        ({"answer": ["ä", 1]}, "1", "own", '["ä", 1]'),
    ],
)
def test_other_columns_are_used_where_there_are_any(fields: Any, id_: str, domain: str, answer: str) -> None:
    assert read(lines({"prompt": "p", **fields})).suite.prompts == (BenchPrompt(id_, domain, "p", answer),)


def test_the_column_of_the_prompt_is_not_used_for_anything_else() -> None:
    row = {"task": "Hi", "answer": "Ho"}
    assert read(lines(row), column="task").suite.prompts == (BenchPrompt("1", "own", "Hi", "Ho"),)
    assert read(lines(row), column="answer").suite.prompts == (BenchPrompt("1", "Hi", "Ho"),)


def test_of_columns_that_differ_only_in_case_the_first_is_read() -> None:
    assert texts(read(lines({"Prompt": "a", "prompt": "b"}))) == ["a"]
    assert texts(read(b"PROMPT,prompt\na,b\n", "a.csv")) == ["a"]


def test_an_id_that_is_taken_is_followed_by_its_line() -> None:
    assert ids(read(lines(*[{"id": name, "prompt": "p"} for name in ("a", "b", "a", "a")]))) == ["a", "b", "a@3", "a@4"]
    assert ids(read(lines(SPEC_BENCH, SPEC_BENCH))) == ["81/1", "81/2", "81/1@2", "81/2@2"]
    assert ids(read(lines(*[{"id": name, "prompt": "p"} for name in ("a", "a@3", "a")]))) == ["a", "a@3", "a@3@3"]


@pytest.mark.parametrize(
    ("name", "suite"),
    [("gsm.jsonl", "gsm"), ("a.b.jsonl.gz", "a.b"), ("plain", "plain"), ("X.CSV.GZ", "X"), (".jsonl", ".jsonl")],
)
def test_a_suite_has_the_name_of_its_file(name: str, suite: str) -> None:
    data = b"prompt\np\n" if "csv" in name.lower() else lines({"prompt": "p"})
    assert read(data, name).suite.name == suite


def test_a_prompt_is_kept_unchanged() -> None:
    assert texts(read(lines({"prompt": "  two \n"}))) == ["  two \n"]
    assert texts(read(b'prompt\n"  two \n"\n', "a.csv")) == ["  two \n"]


# --- parquet ---------------------------------------------------------------------------------------------------------


def parquet(**columns: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def test_a_parquet_file_of_gsm8k_is_read_as_the_hub_has_it(tmp_path: Path) -> None:
    """levanter#763."""
    path = tmp_path / "test-00000-of-00001.parquet"
    path.write_bytes(parquet(question=[GSM8K["question"], "a b"], answer=[GSM8K["answer"], "so #### 3"]))
    loaded = read_suite(path)
    assert (loaded.kind, loaded.unit, loaded.bad) == ("gsm8k", "row", ())
    assert loaded.suite.prompts[0] == BenchPrompt("1", "maths", "How many legs have 3 cats?", "12")
    assert loaded.suite.prompts[1].answer == "3"


def test_parquet_is_known_by_its_first_bytes_and_has_every_kind() -> None:
    general = read(parquet(Text=["Hi", "Ho"], id=[7, None], category=["a", None], answer=[1, 2]), "own.jsonl")
    assert general == Loaded(
        Suite("own", (BenchPrompt("7", "a", "Hi", "1"), BenchPrompt("2", "own", "Ho", "2"))), (), "parquet", "row"
    )
    turns = read(parquet(question_id=[81], category=["writing"], turns=[SPEC_BENCH["turns"]]), "question.parquet")
    assert turns.suite.prompts == read(lines(SPEC_BENCH), "question.jsonl").suite.prompts
    assert texts(read(parquet(other=["Hi"], blob=[b"x"]), "a.parquet", column=" Other")) == ["Hi"]


def test_a_bad_row_of_parquet_is_listed_by_its_number() -> None:
    loaded = read(parquet(prompt=["a", None, "", "b"]), "own.parquet")
    assert texts(loaded) == ["a", "b"]
    assert loaded.bad == (BadRow(2, "its prompt is missing"), BadRow(3, "its prompt is empty"))
    with pytest.raises(SettingsError, match="own has 2 bad rows: row 2: its prompt is missing; row 3: "):
        refuse_bad(loaded)


def test_a_parquet_file_that_cannot_be_used_is_an_error() -> None:
    whole = parquet(prompt=["a"] * 9)
    with pytest.raises(SettingsError, match=r"a.parquet: The Parquet file is damaged: ") as caught:
        read(whole[:-20], "a.parquet")
    assert caught.value.remedy
    with pytest.raises(SettingsError, match="no column called any of prompt, .*; its columns are 'n'"):
        read(parquet(n=[1]), "a.parquet")
    with pytest.raises(SettingsError, match="It is a Parquet file, not csv"):
        read(whole, "a.parquet", kind="csv")
    with pytest.raises(SettingsError, match="It is not a Parquet file"):
        read(lines({"prompt": "Hi"}), "a.parquet", kind="parquet")
    with pytest.raises(SettingsError, match="It is empty: it has no rows"):
        read(parquet(prompt=pa.array([], pa.string())), "a.parquet")
    with pytest.raises(SettingsError, match="None of its rows can be used: row 1: its prompt is not a string"):
        read(parquet(prompt=[5]), "a.parquet")


def test_the_rows_of_a_damaged_parquet_page_are_an_error() -> None:
    data = bytearray(parquet(prompt=[f"prompt {i}" for i in range(1000)]))
    data[100:140] = b"\xff" * 40
    with pytest.raises(SettingsError, match="own.parquet: The Parquet file is damaged"):
        read(bytes(data), "own.parquet")


# --- bad rows --------------------------------------------------------------------------------------------------------

HALF = '{"prompt": "\\ud83d"}'
GOOD = {"prompt": "good"}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("not json", "it is not JSON: expecting value at character 1"),
        ('{"prompt": "cut', "it is not JSON: unterminated string"),
        ('{"prompt": "a"} {"prompt": "b"}', "it is not JSON: extra data at character 17"),
        ("[1, 2]", "it is not a JSON object but an array"),
        ('"text"', "it is not a JSON object but a string"),
        ("12", "it is not a JSON object but a number"),
        ("1.5", "it is not a JSON object but a number"),
        ("true", "it is not a JSON object but true or false"),
        ("null", "it is not a JSON object but null"),
        ("9" * 5000, "it is not JSON: a number has too many digits"),
        ("[" * 100_000, "its JSON is nested too deeply"),
        ("{}", "its prompt is missing"),
        ('{"prompt": null}', "its prompt is missing"),
        ('{"prompt": ""}', "its prompt is empty"),
        ('{"prompt": " \\n\\u00a0"}', "its prompt is empty"),
        ('{"prompt": 5}', "its prompt is not a string"),
        ('{"prompt": ["a"]}', "its prompt is not a string"),
        (HALF, "it has half of a surrogate pair, which is not a character"),
        ('{"prompt": "p", "id": "\\udc00"}', "it has half of a surrogate pair, which is not a character"),
        (json.dumps({"prompt": "p" * 1_000_000}), "the line is longer than 1,000,000 characters"),
    ],
    ids=lambda value: value[:30],
)
def test_a_bad_line_of_json_is_listed_and_the_others_are_read(bad: str, why: str) -> None:
    loaded = read(lines(GOOD, "", bad, GOOD))
    assert ids(loaded) == ["1", "4"]
    assert [row.line for row in loaded.bad] == [3]
    assert loaded.bad[0].why.startswith(why)


@pytest.mark.parametrize(
    ("turns", "why"),
    [
        (None, "its turns are missing, or not an array, or empty"),
        ([], "its turns are missing, or not an array, or empty"),
        ("text", "its turns are missing, or not an array, or empty"),
        (["a", ""], "its turn 2 is empty"),
        (["a", 3], "its turn 2 is not a string"),
        ([None], "its turn 1 is missing"),
    ],
)
def test_a_bad_turn_makes_its_row_bad(turns: Any, why: str) -> None:
    loaded = read(lines(SPEC_BENCH, {"question_id": 1, "category": "c", "turns": turns}))
    assert (ids(loaded), loaded.bad) == (["81/1", "81/2"], (BadRow(2, why),))


@pytest.mark.parametrize(
    ("bad", "line", "why"),
    [
        ("only one", 5, "it has 1 field, and the first line names 2"),
        ("a,b,c", 5, "it has 3 fields, and the first line names 2"),
        ('"two\nlines"', 5, "it has 1 field, and the first line names 2"),
        ("x,", 5, "its prompt is empty"),
        ("x,  ", 5, "its prompt is empty"),
        (",", 5, "its prompt is empty"),
        ('x,"a"b', 5, "it is not CSV: ',' expected after '\"'"),
        (f"x,{'p' * 200_000}", 5, "a field is longer than 131,072 characters"),
        (f"x,{'p,' * 600_000}", 5, "the line is longer than 1,000,000 characters"),
        (f'x,"{"p" * 1_000_001}', 5, "the line is longer than 1,000,000 characters"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_row_of_csv_is_listed_and_the_others_are_read(bad: str, line: int, why: str) -> None:
    loaded = read(f'n,prompt\n1,"first\nsecond"\n\n{bad}\n2,last\n'.encode(), "own.csv")
    assert texts(loaded) == ["first\nsecond", "last"]
    assert [row.line for row in loaded.bad] == [line]
    assert loaded.bad[0].why.startswith(why)


@pytest.mark.parametrize("rows", [3, 3000])
def test_a_quote_that_is_never_closed_is_listed_with_the_last_line_that_belongs_to_it(rows: int) -> None:
    loaded = read(
        b'n,prompt\n1,fine\n2,"open\n' + b"3,in it, it seems, or is it not so? who knows...\n" * rows, "a.csv"
    )
    assert texts(loaded)[0] == "fine"
    assert loaded.bad[0].line == 3
    assert "never closed" in loaded.bad[0].why
    until = int(loaded.bad[0].why.rpartition("line ")[2].rstrip(")"))
    assert [row.line for row in loaded.bad[1:]] == list(range(until + 1, rows + 4))


def test_blank_lines_are_not_rows() -> None:
    loaded = read(b"\n  \n\t\r\n" + lines(GOOD) + b"\n\n" + lines(GOOD) + b"\n")
    assert (ids(loaded), loaded.bad) == (["4", "7"], ())
    loaded = read(b'\n\nprompt\n\n  \n1\n\r\n2\n""\n\n', "a.csv")
    assert (ids(loaded), loaded.bad) == (["6", "8"], (BadRow(9, "its prompt is empty"),))


def test_a_row_of_csv_has_the_number_of_its_first_line() -> None:
    assert ids(read(b'prompt\n"a\n\nb"\nc\n"d\ne"\n', "a.csv")) == ["2", "5", "6"]


def test_bad_rows_are_refused_with_the_first_ten_named() -> None:
    refuse_bad(read(lines(GOOD)))
    with pytest.raises(SettingsError, match=r"own has 1 bad row: line 2: it is not a JSON object but null\.") as caught:
        refuse_bad(read(lines(GOOD, "null")))
    assert caught.value.remedy == "Correct them, or skip them with --skip-bad; prompts that can be read: 1."
    with pytest.raises(SettingsError, match="own has 12 bad rows: line 2: ") as caught:
        refuse_bad(read(lines(GOOD, *["null"] * 12)))
    assert caught.value.message.count("line ") == 10
    assert caught.value.message.endswith("; and 2 more.")


def test_too_many_bad_rows_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaders, "MAX_BAD", 20)
    assert len(read(lines(GOOD, *["null"] * 20)).bad) == 20
    with pytest.raises(SettingsError, match="own.jsonl: It has more than 20 bad rows: line 2: "):
        read(lines(GOOD, *["null"] * 21))


# --- encodings -------------------------------------------------------------------------------------------------------

WORDS = "Grüße, 你好 😀"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("is_csv", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("mark", "codec", "named"),
    [
        (b"", "utf-8", None),
        (b"", "utf-8", "UTF8"),
        (codecs.BOM_UTF8, "utf-8", None),
        (codecs.BOM_UTF8, "utf-8", "utf_8"),
        (codecs.BOM_UTF16_LE, "utf-16-le", None),
        (codecs.BOM_UTF16_BE, "utf-16-be", None),
        (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16"),
        (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16-le"),
        (b"", "utf-16-le", "utf-16-le"),
        (b"", "utf-16-be", "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le", None),
        (codecs.BOM_UTF32_BE, "utf-32-be", None),
        (b"", "gb18030", "gb18030"),
        (b"", "utf-7", "utf-7"),
    ],
)
def test_a_file_is_read_in_its_encoding(
    mark: bytes, codec: str, named: str | None, end: str, is_csv: bool, packed: bool
) -> None:
    rows = ["prompt", f'"{WORDS}"', "last"] if is_csv else [f'{{"prompt": "{WORDS}"}}', '{"prompt": "last"}']
    data = mark + end.join(rows).encode(codec)
    loaded = read(_gzip(data) if packed else data, "a.csv" if is_csv else "a.jsonl", encoding=named)
    assert (texts(loaded), loaded.bad) == ([WORDS, "last"], ())


@pytest.mark.parametrize("codec", ["cp1252", "latin-1", "cp037", "shift_jis", "euc_kr"])
def test_any_encoding_can_be_named(codec: str) -> None:
    text = {"shift_jis": "日本", "euc_kr": "한국"}.get(codec, "Grüße")
    data = f'{{"prompt": "{text}"}}\n{{"prompt": "b"}}\n'.encode(codec)
    assert texts(read(data, encoding=codec)) == [text, "b"]


def test_a_byte_of_a_utf_16_letter_is_not_a_line_end() -> None:
    text = "\u0a0a\u0a0d\u0d0a" * 3
    for codec in ("utf-16-le", "utf-16-be"):
        assert texts(read(f'{{"prompt": "{text}"}}\n'.encode(codec), encoding=codec)) == [text]


@pytest.mark.parametrize(
    ("wrong", "codec", "named"),
    [
        ('{"prompt": "Grüße"}'.encode("cp1252"), "utf-8", None),
        (b'{"prompt": "\xe4"}', "utf-8", "utf-8"),
        (b'{"prompt": "cut \xf0\x9f"}', "utf-8", None),
        (b'{"prompt": "a surrogate: \xed\xa0\x80"}', "utf-8", None),
        (b'{"prompt": "\x81"}', "cp1252", "cp1252"),
        ('{"prompt": "'.encode("utf-16-le") + b"\x00\xd8" + '"}'.encode("utf-16-le"), "utf-16-le", "utf-16-le"),
        (b'{"prompt": "\x81', "gbk", "gbk"),
        (b'{"prompt": "\x8f', "euc_jp", "euc_jp"),
    ],
)
def test_a_line_that_is_not_in_the_encoding_is_bad_and_the_others_are_read(
    wrong: bytes, codec: str, named: str | None
) -> None:
    good, end = '{"prompt": "good"}'.encode(codec), "\n".encode(codec)
    loaded = read(end.join((good, wrong, good)), encoding=named)
    assert ids(loaded) == ["1", "3"]
    expected = f"it has bytes that are not {codec.upper()}; if the file is in another encoding, name it with --encoding"
    assert loaded.bad == (BadRow(2, expected),)


def test_a_csv_row_that_is_not_in_the_encoding_is_bad_and_the_others_are_read() -> None:
    loaded = read(b'n,prompt\n1,a\n2,"b\n\xff\n"\n3,c\n', "a.csv")
    assert texts(loaded) == ["a", "c"]
    assert [(row.line, row.why[:30]) for row in loaded.bad] == [(3, "it has bytes that are not UTF-")]


def test_a_last_character_that_is_cut_makes_its_line_bad() -> None:
    assert [row.line for row in read(lines(GOOD) + b'{"prompt": "\xe4\xbd').bad] == [2]


def test_utf_16_without_a_mark_is_read_and_not_taken_for_one_with_a_mark() -> None:
    data = '{"prompt": "a"}\n'.encode("utf-16-le")
    assert [p.text for p in read(data).suite.prompts] == ["a"]
    with pytest.raises(SettingsError, match="cannot be read as utf-16") as caught:
        read(data, encoding="utf-16")
    assert "utf-16-le or utf-16-be" in caught.value.remedy


@pytest.mark.parametrize("name", ["klingon", "", "rot13", "hex", "a\0b", "ü", "\ud800"])
def test_an_unknown_encoding_is_an_error(name: str) -> None:
    with pytest.raises(SettingsError, match="own.jsonl: There is no text encoding called") as caught:
        read(lines(GOOD), encoding=name)
    assert "utf-16" in caught.value.remedy


# --- line ends and odd characters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_of_any_system_work(end: str, last: bool) -> None:
    data = end.join(['{"prompt": "a"}', "", '{"prompt": "b"}'])
    assert ids(read((data + end * last).encode())) == ["1", "3"]
    data = end.join(["prompt,id", '"a\nb",', "c,"])
    assert ids(read((data + end * last).encode(), "a.csv")) == ["2", "4"]


def test_a_csv_of_an_old_mac_works() -> None:
    assert ids(read(b"prompt\ra\rb", "a.csv")) == ["2", "3"]


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\0", "\t"])
def test_other_control_characters_do_not_end_a_line(odd: str) -> None:
    text = f"a{odd}b"
    assert texts(read(f'{{"prompt": "{text}"}}\n{{"prompt": "c"}}'.encode())) == [text, "c"]
    assert texts(read(json.dumps({"prompt": text}).encode())) == [text]
    assert texts(read(f'id;prompt\n;{text}\n;"{text}"'.encode(), "a.csv")) == [text, text]


def test_line_ends_inside_a_prompt_stay_as_they_are() -> None:
    assert texts(read(b'{"prompt": "a\rb"}\n')) == ["a\rb"]
    assert texts(read(b'prompt\n"a\r\nb\rc\nd"\n', "a.csv")) == ["a\r\nb\rc\nd"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip), min_size=1, max_size=5))
def test_what_is_written_is_read(prompts: list[str]) -> None:
    written = "".join(json.dumps({"prompt": text}, ensure_ascii=False) + "\n" for text in prompts)
    assert texts(read(written.encode())) == prompts
    table = "prompt\n" + "".join('"' + text.replace('"', '""') + '"\n' for text in prompts)
    assert texts(read(table.encode(), "a.csv")) == prompts


@given(st.binary(max_size=300), st.sampled_from(["a.jsonl", "a.csv"]), st.sampled_from([None, "utf-16", "gbk"]))
def test_any_bytes_give_prompts_or_a_settings_error(data: bytes, name: str, encoding: str | None) -> None:
    try:
        loaded = read(b"prompt\n" * (name == "a.csv") + data, name, encoding=encoding)
    except SettingsError as exc:
        assert exc.message.startswith(f"{name}: ") and exc.remedy
    else:
        assert loaded.suite.prompts


# --- files that cannot be used ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "name", "message", "remedy"),
    [
        (b"", "a.jsonl", "It is empty: it has no rows", "at least one prompt"),
        (b"\n \n", "a.jsonl", "It is empty: it has no rows", "at least one prompt"),
        (codecs.BOM_UTF8, "a.jsonl", "It is empty: it has no rows", "at least one prompt"),
        (_gzip(b""), "a.jsonl", "It is empty: it has no rows", "at least one prompt"),
        (b"", "a.csv", "no rows below the names", "at least one prompt"),
        (b"prompt\n\n", "a.csv", "no rows below the names", "at least one prompt"),
        (b"hello\nworld\n", "a.txt", "None of its rows can be used: line 1: it is not JSON.*; line 2: ", "--encoding"),
        (b"{}\n", "a.jsonl", "line 1: it has none of the columns prompt, .*--column", "--column"),
        (b"n,prompt\n1\n", "a.csv", "None of its rows can be used: line 2: it has 1 field", "a first line that names"),
        (b"a,b\n1,2\n", "a.csv", "no column called any of prompt, .*; its columns are 'a', 'b'", "--column"),
        (b'"a\n', "a.csv", "Line 1, which should name the columns, cannot be read: a quote", "a name to each column"),
        (b"\n\xff,prompt\n1,2\n", "a.csv", "Line 2, which .* cannot be read: it has bytes", "a name to each column"),
        (b'[\n{"prompt": "a"}\n]\n', "a.json", "one JSON array", "jq -c"),
        (b'\n [{"prompt": "a"}, {"prompt": "b"}]', "a.jsonl", "one JSON array", "jq -c"),
        (b'[{"prompt": "' + b"a" * 2_000_000 + b'"}]', "a.jsonl", "one JSON array", "jq -c"),
        (b"[]", "a.jsonl", "one JSON array", "jq -c"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a.jsonl", "is a Git LFS pointer, not a file", "lfs pull"),
        (_gzip(b"version https://git-lfs.github.com/spec/v1\noid"), "a.gz", "is a Git LFS pointer", "lfs pull"),
        (b"<!doctype html><title>Sign in</title>", "a.csv", "is an HTML page, not a file of prompts", "Fetch the file"),
        (b"PK\x03\x04", "a.jsonl", "is a zip archive", "Unpack"),
        (b"SQLite format 3\0", "a.jsonl", "is an SQLite database", "JSON lines, CSV or Parquet"),
        (_gzip(lines(GOOD) * 99)[:-20], "a.jsonl.gz", "gzip file is cut or damaged", "Fetch it again"),
        (_gzip(lines(GOOD) * 99)[:5], "a.jsonl.gz", "gzip file is cut or damaged", "Fetch it again"),
        (b"\x1f\x8b not a gzip", "a.jsonl", "gzip file is cut or damaged", "Fetch it again"),
        (_gzip(lines(GOOD))[:10] + b"\xff" * 40, "a.gz", "gzip file is cut or damaged", "Fetch it again"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_file_that_cannot_be_used_is_an_error_with_a_remedy(
    data: bytes, name: str, message: str, remedy: str
) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        read(data, name)
    assert caught.value.message.startswith(f"{name}: ")
    assert remedy in caught.value.remedy


def test_a_column_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SettingsError, match="no column called 'ask'; its columns are 'prompt'"):
        read(b"prompt\np\n", "a.csv", column="ask")
    with pytest.raises(SettingsError, match="None of its rows can be used: line 1: its ask is missing"):
        read(lines(GOOD), column="ask")
    many = ",".join(f"column{n}" for n in range(12))
    with pytest.raises(SettingsError, match="'column9' and 2 more"):
        read(f"{many}\n{many}\n".encode(), "a.csv")


@pytest.mark.parametrize("kind", ["gsm8k", "humaneval", "spec-bench"])
def test_a_kind_with_its_own_columns_refuses_a_column(kind: Kind) -> None:
    with pytest.raises(SettingsError, match=f"format {kind} has its own columns"):
        read(lines(GOOD), kind=kind, column="prompt")


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(SettingsError, match="no format of prompt files called 'xml'") as caught:
        read(lines(GOOD), kind="xml")
    assert "gsm8k, humaneval, spec-bench, jsonl, csv, parquet" in caught.value.remedy


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing.jsonl", "No such file"), ("", "is a folder"), ("x" * 300, "name too long"), ("a\0b", "null byte")],
    ids=["missing", "folder", "long name", "NUL"],
)
def test_a_path_without_a_file_is_an_error(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        read_suite(tmp_path / name)
    assert caught.value.remedy


def test_a_disk_that_fails_is_an_error() -> None:
    class Failing(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(SettingsError, match="own.jsonl: The file cannot be read: Input/output error"):
        load(Failing(lines(GOOD)), "own.jsonl")


# --- files, limits, large files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "row"), [("g.jsonl", GSM8K), ("h.jsonl.gz", HUMANEVAL), ("question.jsonl", SPEC_BENCH)]
)
def test_a_file_on_disk_is_read(tmp_path: Path, name: str, row: Any) -> None:
    path = tmp_path / name
    path.write_bytes(_gzip(lines(row)) if name.endswith("gz") else lines(row))
    assert read_suite(path) == read(lines(row), name)


def test_gzip_is_known_by_its_first_bytes_not_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "packed.csv").write_bytes(_gzip(b"prompt\n") + _gzip(b"p\n"))
    (tmp_path / "plain.jsonl.gz").write_bytes(lines(GOOD))
    assert texts(read_suite(tmp_path / "packed.csv")) == ["p"]
    assert texts(read_suite(tmp_path / "plain.jsonl.gz")) == ["good"]


def test_a_stream_is_read_from_its_start_and_stays_open() -> None:
    for data in (lines(GOOD), _gzip(lines(GOOD))):
        stream = io.BytesIO(data)
        stream.read()
        assert texts(load(stream, "a")) == texts(load(stream, "a")) == ["good"]
        assert not stream.closed


@pytest.mark.parametrize(
    ("limit", "expected"), [(1, ["a"]), (2, ["a", "b"]), (3, ["a", "b", "c"]), (9, ["a", "b", "c"])]
)
def test_a_limit_counts_good_prompts(limit: int, expected: list[str]) -> None:
    loaded = read(lines("null", {"prompt": "a"}, "null", *[{"prompt": p} for p in "bc"], "null"), limit=limit)
    assert texts(loaded) == expected
    assert len(loaded.bad) == {1: 1, 2: 2, 3: 2, 9: 3}[limit]


def test_a_limit_may_fall_between_turns() -> None:
    assert ids(read(lines(SPEC_BENCH, SPEC_BENCH), limit=1)) == ["81/1"]
    assert ids(read(lines(SPEC_BENCH, SPEC_BENCH), limit=3)) == ["81/1", "81/2", "81/1@2"]


@pytest.mark.parametrize("limit", [0, -5])
def test_a_limit_below_one_is_an_error(limit: int) -> None:
    with pytest.raises(SettingsError, match=f"at least 1, not {limit}"):
        read(lines(GOOD), limit=limit)


def test_more_prompts_than_may_be_kept_need_a_limit() -> None:
    data = b'{"prompt": "p"}\n' * (loaders.MAX_PROMPTS + 1)
    assert len(read(data[:-16]).suite.prompts) == loaders.MAX_PROMPTS
    with pytest.raises(SettingsError, match=r"own.jsonl: It has more than 10,000 prompts") as caught:
        read(data)
    assert "--limit" in caught.value.remedy
    assert len(read(data, limit=loaders.MAX_PROMPTS + 1).suite.prompts) == loaders.MAX_PROMPTS + 1


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 MB: 112 rows with a field of 900 kB that is not used."""
    path = tmp_path_factory.mktemp("large") / "large.jsonl"
    row = b'{"padding": "' + b"x" * 900_000 + b'", "prompt": "p"}\n'
    with path.open("wb") as file:
        for _ in range(112):
            file.write(row)
    assert path.stat().st_size > 100_000_000
    return path


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 MB of blank lines, of one line that never ends, and a row."""
    path = tmp_path_factory.mktemp("endless") / "endless.jsonl"
    with path.open("wb") as file:
        for filling in (b" " * 9_999 + b"\n", b"x" * 10_000):
            for _ in range(5_000):
                file.write(filling)
        file.write(b"\n" + lines(GOOD))
    assert path.stat().st_size > 100_000_000
    return path


def peak_of_reading(path: Path) -> tuple[Loaded, int]:
    tracemalloc.start()
    try:
        return read_suite(path), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_large_file_is_never_in_memory_as_a_whole(large: Path) -> None:
    loaded, peak_bytes = peak_of_reading(large)
    assert (texts(loaded), loaded.bad) == (["p"] * 112, ())
    assert peak_bytes < 16_000_000


def test_a_line_that_never_ends_is_not_in_memory_either(endless: Path) -> None:
    loaded, peak_bytes = peak_of_reading(endless)
    assert ids(loaded) == ["5002"]
    assert loaded.bad == (BadRow(5001, "the line is longer than 1,000,000 characters"),)
    assert peak_bytes < 16_000_000


def test_a_limit_stops_reading(large: Path) -> None:
    with large.open("rb") as stream:
        assert len(load(stream, large.name, limit=5).suite.prompts) == 5
        assert 5 * 900_000 < stream.tell() < 6 * 900_000
