"""`specviz acceptance`: measured drafts, from names."""

from pathlib import Path

import pytest

from specviz.cli import main
from specviz.cli.acceptance import measure
from specviz.core.acceptance import overall
from specviz.core.errors import PairingError
from specviz.core.wait import Wait
from tests.engines.tiny import write_tiny_model, write_tiny_tokenizer


def test_a_target_as_its_own_draft_is_always_accepted(tiny_folder: Path) -> None:
    found = measure(f"model:{tiny_folder}", f"local:{tiny_folder}", max_tokens=6, per_domain=1)
    assert overall(found) == {0.0: pytest.approx(1.0, abs=0.05), 0.8: pytest.approx(1.0, abs=1e-3)}
    assert len(found) == 22 and {f.texts for f in found if f.domain != "all"} == {1}


def test_the_toy_draft_is_measured_on_prompts_of_the_toy() -> None:
    found = measure("toy", "toy", temperatures=[0.8, 0.8, 1.0], max_tokens=30)
    assert [(f.domain, f.temperature) for f in found] == [("toy", 0.8), ("all", 0.8), ("toy", 1.0), ("all", 1.0)]
    assert 0.6 < overall(found)[0.8] < 0.85
    assert found == measure("toy", "toy", temperatures=[0.8, 1.0], max_tokens=30)
    assert measure("toy", "toy", wait=Wait(cancelled=lambda: True)) == []


def test_a_draft_of_another_vocabulary_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    other = write_tiny_model(tmp_path / "other")
    write_tiny_tokenizer(other, 280)
    with pytest.raises(PairingError):
        measure(f"model:{other}", f"local:{tiny_folder}", max_tokens=4, per_domain=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--draft", "ngram"], "has none"),
        (["--draft", "none"], "has none"),
        (["--draft", "ngram+toy"], "has none"),
        (["--draft", "toy", "--temperature", "-1"], "temperature must be"),
        (["--draft", "toy", "--temperature", "0", "nan"], "temperature must be"),
        (["--draft", "toy", "--max-tokens", "0"], "max tokens must be"),
        (["--draft", "toy", "--per-domain", "0"], "--per-domain must be"),
        (["--draft", "toy", "--target", "smollm2-135m"], "different vocabularies"),
        (["--draft", "model:nothing"], "There is no model"),
    ],
)
def test_what_acceptance_cannot_measure_is_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["acceptance", "--target", "toy", *arguments]) == 2
    out, err = capsys.readouterr()
    assert words in err and out == ""


@pytest.mark.smollm
def test_smollm_is_its_own_perfect_draft(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "Explain why the sky is blue."}\n{"prompt": "Write a poem about rain."}\n')
    found = measure("model:smollm2-135m", "smollm2-135m", max_tokens=8, prompts=prompts, temperatures=[0.8])
    assert overall(found)[0.8] == pytest.approx(1.0, abs=1e-3)
