"""What the page shows about a simulated network."""

import pytest

from specviz.core.settings import Settings
from specviz.record.state import RunState
from specviz.views import figures, summary, words
from tests.views.scripted import Story


def _card(state: RunState, name: str) -> summary.Figure:
    return next(f for f in summary.numbers(state, Settings()) if f.name == name)


def _near() -> RunState:
    return Story(20.0).round(["a"], 1, "b").round(["a"], 1, "b").state()


def _far(per_call_tps: float | None = 4.0, jitter_ms: float = 20.0) -> RunState:
    story = Story(20.0, per_call_tps=per_call_tps, network=(80.0, jitter_ms))
    return story.round(["a"], 1, "b").round(["a"], 1, "b").state()


def test_a_run_behind_a_simulated_network_has_a_factor_for_each_baseline_and_no_bill() -> None:
    card = _card(_far(), "Speed-up")
    assert (card.value, card.note, card.tone) == ("0.77 ×", "slower than plain decoding without the network", "bad")
    assert "A streaming server has the same rate" in card.help
    card = _card(_far(), "Against single calls")
    assert (card.value, card.note, card.tone) == ("3.85 ×", "faster than one call per token", "good")
    assert "through the simulated network" in card.help and "to the server" not in card.help
    assert _card(_far(None), "Against single calls").value == "n/a"
    assert "Billed tokens" not in [f.name for f in summary.numbers(_far(), Settings())]
    assert "stream" not in _card(_near(), "Speed-up").help


def test_a_simulated_network_is_named_before_and_in_the_run() -> None:
    asked = Settings(target="toy", simulated_rtt_ms=150, simulated_jitter_ms=12.5)
    assert summary.network(asked, RunState()) == "simulated network: 150 ms ± 12.5 ms"
    assert summary.network(asked, _far()) == "simulated network: 80 ms ± 20 ms", "what stood there counts"
    assert summary.network(Settings(), _far(jitter_ms=0.0)) == "simulated network: 80 ms"
    assert summary.network(Settings(), _near()) == ""


def test_a_simulated_network_is_called_so_and_stands_beside_both_baselines() -> None:
    state = Story(20.0, per_call_tps=4.0, network=(80.0, 0.0)).round(["a"], 1, "b").round(["a"], 1, "b").state()
    latency = figures.latency_bars(state)
    bars = {bar["name"]: bar["y"] for bar in latency.data}
    assert bars["network (simulated)"] == [80.0, 80.0] and "network" not in bars
    assert [sum(column) for column in zip(*bars.values(), strict=True)] == [130.0, 130.0]
    assert "network (simulated) 80.0 ms" in latency.words
    speed = figures.speed_bars(state).data[0]
    assert speed["x"] == [4.0, 20.0, pytest.approx(15.385)]
    assert speed["y"] == ["one call per token", "plain decoding<br>without the network", "speculative"]


@pytest.mark.parametrize(
    ("network", "told"),
    [((0, 0), ""), ((80.0, 0.0), "80 ms"), ((80, 20.0), "80 ms ± 20 ms"), ((0.5, 0.25), "0.5 ms ± 0.25 ms")],
)
def test_a_network_in_words(network: tuple[float, float], told: str) -> None:
    assert words.network(*network) == told
