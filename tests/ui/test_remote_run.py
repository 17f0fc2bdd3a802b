"""What the page shows of a run of a remote target."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.proto.Metric_pb2 import Metric as MetricProto

from tests.ui.fakes import SENT
from tests.ui.test_live_page import _buttons, _charts, _components, _page, _run, _said, _until_done


@pytest.fixture(scope="module")
def finished() -> Any:
    page = _page()
    page.slider(key="temperature").set_value(0.7)
    return _until_done(_run(page, "remote"))


def test_the_header_names_the_way_and_the_rule_in_force(finished: Any) -> None:
    header = next(m.value for m in finished.markdown if "badge" in m.value).replace("\\", "")
    assert "probabilistic (matched with the server's draws)" in header and "prefixes in one call" in header


def test_both_baselines_and_the_bill_have_a_card(finished: Any) -> None:
    cards = {m.label: m for m in finished.metric}
    assert cards["Speed-up"].delta == "slower than streaming" and cards["Speed-up"].color == MetricProto.MetricColor.RED
    assert cards["Against single calls"].delta == "faster than one call per token"
    assert (cards["Billed tokens"].value, cards["Billed tokens"].delta) == ("6,060", "6,000 prompt + 60 output")


def test_the_charts_have_both_baselines_and_the_call(finished: Any) -> None:
    charts = _charts(finished)
    (speed,), latency = charts["speed"]["data"], charts["latency"]["data"]
    assert speed["y"] == ["one call per token", "streaming", "speculative"] and speed["x"][:2] == [15.0, 80.0]
    assert "server call" in [bar["name"] for bar in latency]


def test_the_sent_prompt_is_shown_exactly(finished: Any) -> None:
    (expander,) = (e for e in finished.main.expander if e.label == "What was sent")
    assert expander.code[0].value == SENT.replace("\x00", "␀").replace("\n", "↵\n").rstrip("\n")
    assert "2 tokens" in expander.caption[0].value


def test_a_local_run_says_nothing_of_servers() -> None:
    page = _until_done(_run(_page(), "talk"))
    assert not {"Against single calls", "Billed tokens"} & {m.label for m in page.metric}
    assert "in one call" not in _said(page)
    assert "billed" not in _charts(page) and "server" not in json.dumps(_charts(page))


def test_after_a_failure_everything_stays_with_the_error_and_its_remedy_on_top() -> None:
    page = _until_done(_run(_page(), "remote fails"))
    (error,) = (e.value for e in page.error)
    assert "No connection to `http://127.0.0.1:1`" in error and "Is the server running?" in error
    assert "The text generated until then is below" in error
    assert _components(page)["specviz_text"]["items"] and _components(page)["specviz_tree"]["items"]
    assert {m.label for m in page.metric} >= {"Speed-up", "Billed tokens"}
    assert _charts(page)["billed"]["note"] == "1,515 in total: 1,500 prompt + 15 output"
    assert _components(page)["specviz_download"]["label"] == "Download trace"


def test_the_sent_prompt_is_shown_also_without_an_answer() -> None:
    page = _until_done(_run(_page(), "remote fails at once"))
    assert "Check the key" in page.error[0].value and not page.metric
    assert [e.label for e in page.main.expander] == ["What was sent"]


def test_a_wait_before_another_attempt_is_shown_while_the_run_goes_on() -> None:
    page = _run(_page(), "retrying")
    shown = [p.proto.text.replace("\\", "") for p in page.get("progress")]
    assert shown[0].startswith("Running: 0 of at most")
    assert shown[1] == "Waiting to ask again: 429 Too Many Requests: 2 of 8 s"
    assert _buttons(page)["Stop"]
