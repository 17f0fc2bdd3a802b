"""`specviz doctor` against toy servers on the loopback."""

import json
from pathlib import Path
from typing import Any

import pytest

from specviz.cli import main
from specviz.engines.toy import ToyScorer, ToyTokenizer
from tests.targets.completions.toyserver import ToyServer, serve

TOKENS = ToyTokenizer()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.chdir(tmp_path)  # no .env
    for name in ("TARGET_API_KEY", "CEREBRAS_API_KEY", "TARGET_BASE_URL", "TARGET_MODEL", "SPECVIZ_TARGET"):
        monkeypatch.delenv(name, raising=False)


def server(dialect: str = "vllm", **options: Any) -> ToyServer:
    return ToyServer(ToyScorer(TOKENS), dialect, TOKENS, **options)


def doctor(url: str, *more: str) -> int:
    return main(["doctor", "--target", "openai:toy", "--base-url", url, "--tokenizer", "toy", *more])


def test_what_a_server_can_do_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with serve(server()) as url:
        assert doctor(url) == 0
    out = capsys.readouterr().out
    assert f"openai:toy at {url}" in out and "vLLM 0.32.0" in out
    plan = [line.split() for line in out.splitlines() if line.endswith("EXACT")]
    assert plan == [["0", "scoring", "EXACT"], ["0.7", "prefixes", "EXACT"], ["1", "scoring", "EXACT"]]
    assert "It gives the log-probabilities of given tokens (echo), at the right positions." in out
    assert "before temperature" in out and "Calls made" in out


@pytest.mark.parametrize(
    ("dialect", "ways"),
    [
        ("llamacpp", ["prefixes", "prefixes", "prefixes"]),
        ("generates", ["generating", "generating", "generating"]),
    ],
)
def test_as_json(dialect: str, ways: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with serve(server(dialect)) as url:
        assert doctor(url, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert [plan["way"] for plan in data["plans"]] == ways and data["address"] == url
    assert [plan["temperature"] for plan in data["plans"]] == [0.0, 0.7, 1.0]
    assert data["ways"][-1] == "generating" and data["tokenizer_is_the_targets_own"] and data["notes"]


def test_a_way_that_cannot_be_had_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    with serve(server("generates")) as url:
        assert doctor(url, "--verification", "scoring") == 0
    out = capsys.readouterr().out
    assert "does not give log-probabilities of given tokens" in out
    assert [line.split() for line in out.splitlines() if line.endswith("none")][-3:] == [
        ["0", "none", "none"],
        ["0.7", "none", "none"],
        ["1", "none", "none"],
    ]


def test_a_key_is_sent_and_never_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serve(server(key="sk-planted-1234")) as url:
        assert doctor(url) == 1
        monkeypatch.setenv("TARGET_API_KEY", "sk-planted-1234")
        assert doctor(f"{url}?key=sk-planted-9999") == 0
        # What stands in the address is what the server is shown, and it wants another.
        assert doctor(url.replace("127.0.0.1", "user:sk-planted-5678@127.0.0.1")) == 1
    said = "".join(capsys.readouterr()) + caplog.text
    assert "401" in said and "sk-planted" not in said


def test_wrong_names_are_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 2
    assert main(["doctor", "--target", "toy"]) == 2
    assert main(["doctor", "--target", "openai:toy", "--tokenizer", "toy"]) == 2
    said = capsys.readouterr().err
    assert "needs the name of a model" in said and "not a remote target" in said and "has no address" in said


def test_nothing_there_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with serve(server()) as url:
        pass
    assert doctor(url) == 1
    assert "Nothing answers" in capsys.readouterr().err


def test_the_draft_lends_its_tokenizer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(server()) as url:
        monkeypatch.setenv("TARGET_BASE_URL", url)
        monkeypatch.setenv("TARGET_MODEL", "toy")
        assert main(["doctor", "--tokenizer", "toy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target"] == "openai:toy"


def test_another_model_than_was_asked_for_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """lmstudio-bug-tracker#619."""
    toy = server()
    real = toy.answer
    toy.answer = lambda path, body: (200, {**real(path, body)[1], "model": "gemma-3-1b"})  # type: ignore[method-assign]
    with serve(toy) as url:
        assert doctor(url) == 0
        out = capsys.readouterr().out
        assert "Answers as" in out and "asked for the model toy and answers as gemma-3-1b" in out
        generate = ["--prompt", " the", "--max-tokens", "3", "--no-baseline", "--temperature", "0"]
        asked = ["--target", "openai:toy", "--base-url", url, "--tokenizer", "toy", "--draft", "toy"]
        assert main(["generate", *asked, *generate, "--trace", "t.jsonl"]) == 0
    assert "EXACT: " in (err := capsys.readouterr().err) and "answers as gemma-3-1b" in err
    assert "answers as gemma-3-1b" in Path("t.jsonl").read_text()


@pytest.mark.parametrize(
    ("url", "key", "warned"),
    [
        ("http://far.invalid/v1", "sk-planted-1234", True),
        ("http://me:planted-5678@far.invalid/v1", "", True),
        ("http://far.invalid/v1", "", False),
        ("https://far.invalid/v1", "sk-planted-1234", False),
        ("http://127.0.0.1:1/v1", "sk-planted-1234", False),
    ],
)
def test_a_key_that_others_could_read_is_warned_of(
    url: str, key: str, warned: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARGET_BASE_URL", url)
    monkeypatch.setenv("TARGET_API_KEY", key)
    monkeypatch.setenv("NO_PROXY", "*")
    assert main(["doctor", "--target", "openai:toy", "--tokenizer", "toy"]) == 1
    said = capsys.readouterr().err
    assert ("warning: http://far.invalid/v1 is not an https address" in said) == warned and "planted" not in said
