"""The latency lab in the sidebar, by the page's model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from specviz.record.trace import parse
from tests.ui.test_live_page import (
    ROOT,
    _page,
    _run,
    _said,
    _type,
    _until_done,
    _visit,
)

RTT, JITTER = "simulated_rtt_ms", "simulated_jitter_ms"


def _lab(page: AppTest) -> Any:
    return next(e for e in page.sidebar.expander if e.label == "Latency lab")


def _lab_says(page: AppTest) -> str:
    return "\n".join(c.value for c in _lab(page).caption).replace("\\", "")


def _network(page: AppTest) -> tuple[float, float]:
    settings = _visit(page).run.settings
    return settings.simulated_rtt_ms, settings.simulated_jitter_ms


def _header(page: AppTest) -> str:
    return next(m.value for m in page.markdown if "badge" in m.value).replace("\\", "")


def test_it_is_off_and_says_what_it_would_do() -> None:
    page = _page()
    assert page.slider(key=RTT).value == page.slider(key=JITTER).value == 0
    assert (page.slider(key=RTT).max, page.slider(key=JITTER).max) == (500, 200)
    assert page.slider(key=JITTER).disabled
    assert "Simulates" in _lab_says(page) and "stay the same" in _lab_says(page)
    assert "What to expect" not in _lab_says(page)
    page = _until_done(_run(page, "talk"))
    assert _network(page) == (0, 0) and "simulated network" not in _header(page)


def test_a_round_trip_says_what_to_expect_and_goes_into_the_run() -> None:
    page = _page()
    page.slider(key="k").set_value(5)
    page.slider(key=RTT).set_value(150.0).run()
    assert not page.slider(key=JITTER).disabled
    assert "the up to 5 tokens drafted in a round share one round trip" in _lab_says(page)
    assert not any(c.isdigit() for c in _lab_says(page).replace("up to 5", "")), "no figure that was not measured"
    page.slider(key=JITTER).set_value(30.0).run()
    page = _until_done(_run(page, "talk"))
    assert _network(page) == (150, 30)
    assert json.loads(next(_visit(page).run.trace_lines()))["settings"]["simulated_jitter_ms"] == 30


def test_without_a_draft_it_says_that_every_token_waits() -> None:
    page = _page()
    _type(page, "draft", "none")
    page.run()
    page.slider(key=RTT).set_value(20.0).run()
    assert "without a draft every token needs a call" in _lab_says(page)


def test_more_jitter_than_round_trip_is_cut_and_said() -> None:
    page = _page()
    page.slider(key=RTT).set_value(100.0).run()
    page.slider(key=JITTER).set_value(80.0).run()
    assert "is used" not in _lab_says(page)
    page.slider(key=RTT).set_value(40.0).run()
    assert "Jitter is at most the round trip: ± 40 ms is used." in _lab_says(page)
    assert page.slider(key=JITTER).value == 80, "it comes back with the round trip"
    assert _network(_until_done(_run(page, "talk"))) == (40, 40)
    page.slider(key=RTT).set_value(0.0).run()
    assert _network(_until_done(_run(page, "talk"))) == (0, 0)


def test_a_value_typed_right_before_the_click_on_run_is_used() -> None:
    page = _page()
    page.slider(key=RTT).set_value(60.0)
    assert _network(_run(page, "talk")) == (60, 0)


def test_a_server_has_a_network_of_its_own() -> None:
    page = _page()
    page.slider(key=RTT).set_value(150.0).run()
    _type(page, "target", "openai:some-model")
    page.run()
    assert not any(e.label == "Latency lab" for e in page.sidebar.expander)
    page.text_input(key="base_url").set_value("http://127.0.0.1:1/v1").run()
    page = _run(page, "remote")
    assert not page.error and _network(page) == (0, 0)


def test_a_server_chosen_in_the_same_moment_as_run_is_not_refused() -> None:
    page = _page()
    page.slider(key=RTT).set_value(150.0).run()
    _type(page, "target", "openai:some-model")
    page = _run(page, "remote")
    assert not page.error and _network(page) == (0, 0)


def test_the_environment_sets_the_first_values_also_beyond_the_sliders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECVIZ_SIMULATED_RTT_MS", "1500")
    monkeypatch.setenv("SPECVIZ_SIMULATED_JITTER_MS", "12.5")
    page = _page()
    assert not page.error
    assert (page.slider(key=RTT).value, page.slider(key=RTT).max) == (1500, 1500)
    assert (page.slider(key=JITTER).value, page.slider(key=JITTER).step) == (12.5, 0.1)
    assert _network(_run(page, "talk")) == (1500, 12.5)


def test_a_network_before_a_server_in_the_environment_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECVIZ_TARGET", "openai:some-model")
    monkeypatch.setenv("SPECVIZ_SIMULATED_RTT_MS", "50")
    (error,) = (e.value.replace("\\", "") for e in _page().error)
    assert error.startswith("**SPECVIZ_SIMULATED_RTT_MS: ") and "has a real one" in error


def test_a_real_run_behind_the_network_says_so_everywhere(toy: None) -> None:
    page = _page(str(ROOT / "app.py"))
    page.number_input(key="max_tokens").set_value(16)
    page.slider(key=RTT).set_value(20.0).run()
    page.slider(key=JITTER).set_value(10.0).run()
    page = _until_done(_run(page, "Hello"))
    assert page.success
    assert ":orange-badge[simulated network: 20 ms ± 10 ms]" in _header(page)
    cards = {m.label: m for m in page.metric}
    assert cards["Speed-up"].delta.endswith("er than plain decoding without the network")
    assert cards["Against single calls"].value != "n/a" and "Billed tokens" not in cards
    run = _visit(page).run
    assert "network (simulated)" in "".join(c.proto.json for c in page.get("bidi_component"))
    for metrics in run.state.rounds:
        assert metrics.split.network_ms is not None and metrics.split.network_ms >= 10
    recording = parse(run.trace_lines())
    started = run.state.started
    assert started and (started.simulated_rtt_ms, started.simulated_jitter_ms) == (20, 10)
    assert recording.header["settings"][RTT] == 20 and recording.events[0] == started
    assert "simulated network" in _said(page)
