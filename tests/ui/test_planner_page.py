"""The Planner page by its model."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import pytest
from streamlit.elements.lib import policies
from streamlit.testing.v1 import AppTest

from specviz.bench.sweep.results import dumps
from specviz.core.settings import Settings
from specviz.host.run import Run
from tests.bench.planning.test_sources import _bench, _prediction
from tests.ui.fakes import NAME, FakeRun
from tests.ui.test_live_page import PATIENCE_S, ROOT, _components, _said, _visit

PAGE = str(ROOT / "pages" / "2_Planner.py")
CHARTS = {"rtt_map", "draft_map", "speed_curve", "marginal"}


def _planner() -> AppTest:
    page = AppTest.from_file(PAGE, default_timeout=PATIENCE_S).run()
    assert not page.exception
    return page


def _after(page: AppTest, scene: str) -> AppTest:
    """The page for a visitor whose last run was this one, to its end."""
    run = FakeRun(Settings(target="toy", draft="toy"), scene)
    while not run.done and run.drain():
        pass
    _visit(page).run = cast(Run, run)
    page.run()
    assert not page.exception
    return page


def _verdict(page: AppTest) -> str:
    return str(next(e.value for e in [*page.success, *page.warning, *page.info])).replace("\\", "")


def _cards(page: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in page.metric}


def _figures(page: AppTest) -> dict[str, dict[str, Any]]:
    """Name → the chart as it was sent."""
    sent = [json.loads(c.proto.json) for c in page.get("bidi_component") if c.proto.component_name == "specviz_charts"]
    return {item["name"]: item["figure"] for message in sent for item in message["items"]}


def _slide(page: AppTest, key: str, value: float) -> AppTest:
    page.slider(key=f"planner_{key}").set_value(value).run()
    assert not page.exception
    return page


def test_an_empty_page_begins_by_hand_and_says_how_to_get_a_measurement() -> None:
    page = _planner()
    assert _verdict(page).startswith("**Speculate with K = 2: 1.48 × plain decoding.**")
    assert "Assumptions, not measurements" in _said(page)
    assert "run a prompt on the Live page" in page.info[0].value
    assert page.radio(key="planner_source").value == "hand"
    assert _cards(page)["Best K"] == "2" and _figures(page).keys() == CHARTS
    assert "specviz_plotly" in _components(page) and "specviz_vis" not in _components(page)


def test_the_first_values_are_those_that_were_measured() -> None:
    page = _planner()
    assert page.slider(key="planner_plain").value == 89
    passes = [cast(float, page.slider(key=f"planner_{key}").value) * 89 for key in ("of_5", "of_17")]
    assert passes == pytest.approx([127, 180], abs=0.5)


def test_a_slider_changes_the_verdict_and_all_charts_at_once() -> None:
    page = _planner()
    before = _figures(page)
    page = _slide(page, "rtt_hand", 150.0)
    assert _verdict(page).startswith("**Do not speculate here: at best 0.")
    assert page.warning and not page.success
    assert float(_cards(page)["Speed-up"].split()[0]) < 1
    after = _figures(page)
    assert {name for name in CHARTS if after[name] != before[name]} == CHARTS
    page.radio(key="planner_against").set_value("one call per token").run()
    assert _verdict(page).startswith("**Speculate with K = ") and "× one call per token" in _verdict(page)
    page = _slide(page, "draft_hand", 100.0)
    page = _slide(page, "alpha", 0.05)
    assert _verdict(page).startswith("**Do not speculate here")


def test_a_slider_follows_an_end_that_moves_below_its_value() -> None:
    """The slowest draft of the slider is as slow as the target; verifying more is never cheaper."""
    page = _slide(_planner(), "draft_hand", 50.0)
    page = _slide(page, "plain", 200.0)
    assert (page.slider(key="planner_draft_hand").value, page.slider(key="planner_draft_hand").max) == (50, 200)
    page = _slide(page, "plain", 20.0)
    assert (page.slider(key="planner_draft_hand").value, page.slider(key="planner_draft_hand").max) == (20, 20)
    page = _slide(page, "of_5", 4.0)
    assert page.slider(key="planner_of_17").value == 4
    page = _slide(_slide(page, "of_17", 9.0), "of_5", 1.0)
    assert page.slider(key="planner_of_17").value == 9


def test_streamlit_warns_of_no_first_value_beside_one_in_the_state(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(policies, "_shown_default_value_warning", False)
    monkeypatch.setattr(policies._LOGGER, "propagate", True)
    page = _after(_planner(), "talk")
    page.radio(key="planner_source").set_value("hand").run()
    _slide(_slide(page, "draft_hand", 50.0), "plain", 20.0)
    assert "default value" not in caplog.text


def test_a_draft_that_is_never_accepted_does_not_pay_at_any_speed() -> None:
    page = _slide(_slide(_planner(), "alpha", 0.0), "draft_hand", 0.0)
    assert _verdict(page).startswith("**Do not speculate here: at best ")
    assert "Neither another round trip nor a faster draft changes that." in _verdict(page)


def test_charts_that_did_not_change_are_not_sent_as_new() -> None:
    page = _planner()

    def revisions() -> list[int]:
        sent = (json.loads(c.proto.json or "{}") for c in page.get("bidi_component"))
        return [message["to"] for message in sent if "shown" in message]

    before = revisions()
    page.run()
    assert revisions() == before == [1, 1]
    _slide(page, "rtt_hand", 20.0)
    assert revisions() == [2, 2]


def test_a_run_of_the_live_page_is_the_source_as_soon_as_there_is_one() -> None:
    page = _after(_planner(), "talk")
    assert page.radio(key="planner_source").value == "run"
    said = _said(page).replace("\\", "")
    assert "toy → toy, K = 4: 40 rounds" in said and "Assumptions" not in said and not page.info
    assert _cards(page)["Best K"] == "4", "what was measured"
    assert "Leviathan" in said and "accepted at position 1" in said
    lines = {t.get("name"): t for t in _figures(page)["speed_curve"]["data"]}
    assert lines["measured acceptance"]["x"] == [1, 2, 3, 4] and lines["extrapolated"]["line"]["dash"] == "dash"
    run = _visit(page).run.state
    assert float(_cards(page)["Speed-up"].split()[0]) == pytest.approx(run.done.speedup, rel=0.03)
    assert float(_cards(page)["Tokens per round"]) == pytest.approx(run.latest.tokens_per_round, abs=0.01)


def test_a_choice_of_source_stays_when_another_run_comes() -> None:
    page = _after(_planner(), "talk")
    page.radio(key="planner_source").set_value("hand").run()
    page = _after(page, "large")
    assert page.radio(key="planner_source").value == "hand" and "Assumptions" in _said(page)


def test_a_run_behind_a_simulated_network_begins_at_its_round_trip() -> None:
    page = _after(_planner(), "far")
    (slider,) = [s for s in page.main.slider if s.label == "Round trip, ms"]
    assert slider.value == 150
    assert float(_cards(page)["Speed-up"].split()[0]) == pytest.approx(_visit(page).run.state.done.speedup, rel=0.06)


def test_a_servers_calls_contain_the_network_and_its_bill_is_computed() -> None:
    page = _after(_planner(), "remote")
    assert "is added to them" in _said(page) and "streaming" in _verdict(page)
    assert page.selectbox[0].value == "prefixes"
    assert "with speculation: n/a" in _said(page)
    page.number_input(key="planner_prompt_price").set_value(0.5)
    page.number_input(key="planner_output_price").set_value(1.5).run()
    assert "n/a" not in _said(page) and "the price of streaming" in _said(page)


@pytest.mark.parametrize(("scene", "why"), [("fails at once", "not begun|no measured baseline|No draft token")])
def test_a_run_that_measured_nothing_is_no_source_and_says_why(scene: str, why: str) -> None:
    page = _after(_planner(), scene)
    assert page.radio(key="planner_source").value == "hand"
    page.radio(key="planner_source").set_value("run").run()
    assert re.search(why, _said(page)) and "There are no measurements yet" in page.info[0].value
    assert not page.metric and not page.exception


def test_a_hostile_name_is_text() -> None:
    page = _after(_planner(), "hostile")
    said = _said(page)
    assert r"\<img src\=x onerror" in said and not re.search(r"(?<!\\)<(img|a|script)", said)
    assert "\u202e" not in said and len(said) < 5000
    assert not re.search(r"<(img|a|script)", json.dumps(_figures(page)))


def test_a_run_that_goes_on_is_kept_alive_and_its_numbers_so_far_are_shown() -> None:
    page = _planner()
    run = FakeRun(Settings(target="toy", draft="toy"), "endless")
    _visit(page).run = cast(Run, run)
    for _ in range(20):
        page.run()
    rounds = len(run.state.rounds)
    assert rounds > 2 and "The run is still going" in _said(page)
    assert page.radio(key="planner_source").value == "run"
    page.run()
    assert len(run.state.rounds) > rounds
    run.stop()
    page.run()
    assert "The run is still going" not in _said(page)


def _upload(page: AppTest, data: bytes) -> AppTest:
    page.file_uploader(key="planner_file").upload("saved.json", data, "application/json").run()
    assert not page.exception
    return page


def test_what_the_benchmark_page_has_saved_is_a_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "one.json").write_text(dumps(_bench()))
    (tmp_path / "benchmarks" / "bad.json").write_text("{}")
    page = _from_file()
    assert "There are no measurements yet" in page.info[0].value
    page.selectbox(key="planner_saved").set_value("one.json").run()
    assert not page.exception and not page.error and page.selectbox(key="planner_row").options
    page.selectbox(key="planner_saved").set_value("bad.json").run()
    assert not page.exception and page.error


def _from_file() -> AppTest:
    page = _planner()
    page.radio(key="planner_source").set_value("file").run()
    assert "There are no measurements yet" in page.info[0].value
    return page


def test_a_saved_benchmark_is_a_source_and_one_of_its_drafts_is_chosen() -> None:
    made = _bench(temperatures=(0.0, 0.8))
    page = _upload(_from_file(), dumps(made).encode())
    assert _cards(page)["Best K"] == "3" and "T = 0 → toy" in _said(page).replace("\\", "")
    page.selectbox(key="planner_row").set_value(1).run()
    assert "T = 0.8 → toy" in _said(page).replace("\\", "") and page.success


def test_a_saved_prediction_is_a_source() -> None:
    page = _upload(_from_file(), json.dumps(_prediction()).encode())
    assert "predicted: ngram" in _said(page).replace("\\", "") and page.success


@pytest.mark.parametrize("data", [b"", b"no JSON <b>", b'{"schema": "specviz.predict/1"}', b'{"schema": "<script>"}'])
def test_a_file_of_another_kind_is_an_error_and_the_page_stays(data: bytes) -> None:
    page = _upload(_from_file(), data)
    assert page.error and not re.search(r"(?<!\\)<(b|script)>", page.error[0].value)
    page.radio(key="planner_source").set_value("hand").run()
    assert page.success and not page.error


def test_a_hostile_name_in_a_file_is_text() -> None:
    made = _prediction()
    made["rows"] = [{**made["rows"][2], "draft": NAME}]
    page = _upload(_from_file(), json.dumps(made).encode())
    said = _said(page)
    assert page.success and "onerror" in said and not re.search(r"(?<!\\)<(img|a)", said)
    assert all("\u202e" not in option for option in page.selectbox(key="planner_row").options)


def test_the_page_is_in_the_menu_and_its_values_stay_while_another_page_is_open(toy: None) -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE_S).run()
    assert "Planner" in {link.proto.label for link in page.get("page_link")}
    page.switch_page("pages/2_Planner.py").run()
    page.radio(key="planner_against").set_value("one call per token")
    page = _slide(page, "rtt_hand", 150.0)
    page.switch_page("app.py").run()
    assert not page.exception and not page.metric
    page.switch_page("pages/2_Planner.py").run()
    assert page.slider(key="planner_rtt_hand").value == 150
    assert "× one call per token" in _verdict(page)
