"""What specviz finds out about a real llama-server, and says of it."""

from __future__ import annotations

import json

import pytest

from specviz.cli import main
from tests.llama_server import MODEL, LlamaServer
from tests.targets.completions.live.runs import SKY, Runs

pytestmark = pytest.mark.smollm


def test_doctor_says_what_it_can_do(server: LlamaServer, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["doctor", "--target", f"openai:{MODEL}", "--tokenizer", MODEL, "--base-url", server.url]
    assert main([*options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["engine"] == "llamacpp" and found["max_context"] == 2048
    assert found["ids_in"] and found["ids_out"] and found["batch"] and found["same_tokens"] and not found["scores"]
    assert found["top"] == 20 and found["after_temperature"] is False and found["takes_top_k"] is True
    assert found["ways"] == ["prefixes", "generating"]
    assert [(plan["way"], plan["guarantee"]) for plan in found["plans"]] == [("prefixes", "EXACT")] * 3


def test_another_model_than_it_has_is_told(server: LlamaServer, live: Runs) -> None:
    """It answers whatever model it is asked for, with the one that it has."""
    ran = live.run(SKY, target="openai:another-model", draft="ngram", max_tokens=4)
    assert f"another-model and answers as {MODEL}" in ran.ended.guarantee.reason


def test_the_command_line_with_both_baselines(server: LlamaServer, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--target", f"openai:{MODEL}", "--base-url", server.url, "--draft", "smollm2-draft"]
    assert main(["generate", "--prompt", SKY, *options, "--max-tokens", "8", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["way"] == "prefixes" and len(data["token_ids"]) == 8
    assert data["baseline"] == "streaming" and data["baseline_tokens_per_second"] > 0
    assert data["per_call_tokens_per_second"] > 0 and data["billed_completion_tokens"] >= 8
