"""`specviz.run`, and every example of docs/python.md as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import specviz
from specviz.core.errors import RunError, SettingsError
from specviz.core.events import Done, Event, Metrics, RunStarted
from specviz.core.rounds import Round
from specviz.core.wait import Progress
from specviz.record import trace
from specviz.targets.local import LocalTarget

ROOT = Path(__file__).parent.parent
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)


def toy(**settings: Any) -> specviz.Generation:
    return specviz.run("the model drafts", target="toy", draft="toy", **({"k": 3, "max_tokens": 20} | settings))


@pytest.mark.smollm
@pytest.mark.parametrize("code", EXAMPLES, ids=["one_run", "events", "which_k"])
def test_each_example_runs(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code, "docs/python.md", "exec"), names)
    assert capsys.readouterr().out.strip()
    run = names.get("run") or names["runs"][4]  # type: ignore[index]
    assert isinstance(run, specviz.Generation)
    assert len(run.state.text) == 24
    assert run.guarantee == "EXACT"


def test_iterating_decodes_step_by_step() -> None:
    run = toy(baseline=False)
    assert run.events == []
    first = next(iter(run))
    assert isinstance(first, RunStarted)
    assert run.events == [first]
    rest: list[Event] = list(run)
    assert isinstance(rest[-1], Done)
    assert run.events == [first, *rest]
    assert list(run) == []
    assert run.text == rest[-1].generated_text
    assert run.speedup is None


def test_the_tables_have_every_token_and_every_round() -> None:
    run = toy()
    tokens, rounds = run.tokens(), run.rounds()
    assert "".join(tokens[tokens["emitted"]].sort_values("index")["token"]) == run.text
    assert len(tokens) == len(run.state.nodes) > 20
    assert list(rounds["round"]) == list(range(len(run.state.rounds)))
    assert rounds["emitted"].sum() == 20
    assert (rounds["wall_ms"] > 0).all()
    tested = tokens[tokens["status"].isin(["accepted", "rejected"])]
    assert tested["p"].notna().all()
    assert len(tested) == rounds["tested"].sum()


def test_a_run_without_tokens_has_the_same_columns() -> None:
    run = toy()
    run.finish()
    empty = toy()
    empty._stream = iter(())
    assert list(empty.tokens().columns) == list(run.tokens().columns)


def test_the_saved_recording_is_read_as_the_same_run(tmp_path: Path) -> None:
    run = toy(temperature=1.0, seed=5)
    recording = trace.read(run.save(tmp_path / "new" / "run.jsonl"))
    assert recording.complete
    assert list(recording.events) == run.events


def test_equal_settings_give_equal_runs_and_one_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specviz.core.baseline._as_fast", lambda now, kept: True)  # on any machine
    waits: list[Progress] = []
    texts = {toy(temperature=1.3, seed=0, on_progress=waits.append).text for _ in range(2)}
    assert len(texts) == 1
    assert [w.done for w in waits if w.what == "Measuring plain decoding"].count(0) == 1


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(SettingsError, match="temprature"):
        toy(temprature=1.0)


def test_a_failed_run_raises_when_its_result_is_used_and_keeps_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    verify, calls = LocalTarget.verify, 0

    def failing(self: LocalTarget, round: Round) -> object:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise RunError("The target broke.", "Mend it.")
        return verify(self, round)

    monkeypatch.setattr(LocalTarget, "verify", failing)
    run = toy(baseline=False)
    with pytest.raises(RunError, match="The target broke"):
        run.tokens()
    assert sum(isinstance(e, Metrics) for e in run.events) == len(run.state.rounds) == 2


def test_the_names_are_loaded_when_they_are_used() -> None:
    code = "import sys, specviz; assert not [m for m in sys.modules if m.startswith('specviz.')]; specviz.run"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    with pytest.raises(AttributeError, match="nothing"):
        _ = specviz.nothing
