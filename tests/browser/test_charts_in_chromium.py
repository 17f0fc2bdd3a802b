"""The charts in a real browser: their numbers are those of the trace, and they are redrawn in place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest

from tests.browser.conftest import Tab
from tests.browser.located import label_of, text_of

pytestmark = pytest.mark.browser

LOCAL = ["acceptance", "positions", "speed", "rounds", "speed_by_round", "latency"]
REMOTE = [*LOCAL, "billed"]

#: What Plotly holds of every chart, by name. Numbers, as Plotly may keep them in typed arrays, as plain lists.
DRAWN = """() => Object.fromEntries([...document.querySelectorAll('.chart')].map((box) => [
  box.dataset.chart,
  box.lastChild.data.map((t) => ({
    name: t.name, x: t.x && [...t.x], y: t.y && [...t.y], value: t.value, needle: t.gauge?.threshold?.value,
    customdata: t.customdata,
  })),
]))"""


def _drawn(tab: Tab) -> dict[str, dict[str, Any]]:
    """Chart → trace → what Plotly draws of it."""
    return {name: {t.get("name"): t for t in traces} for name, traces in tab.page.evaluate(DRAWN).items()}


def _wait_for_charts(tab: Tab, names: list[str]) -> None:
    """Until every chart is drawn and nothing waits to be drawn."""
    tab.page.wait_for_function(
        """(names) => names.every((n) => document.querySelector(`.chart[data-chart=${n}] .main-svg`))
          && document.querySelectorAll('.chart').length === names.length && !globalThis.__specviz.toDraw.size""",
        arg=names,
    )


def _finish(tab: Tab, prompt: str, names: list[str]) -> None:
    tab.run(prompt)
    banner = tab.page.get_by_text("Finished:").first
    banner.wait_for()
    counted = re.search(r"([\d,]+) rounds", text_of(banner))
    assert counted, "the banner says how many rounds there were"
    rounds = int(counted[1].replace(",", ""))
    # One chart of each place: they come in different messages.
    tab.page.wait_for_function(
        """(n) => ["rounds", "latency"].every((name) =>
          Number(document.querySelector(`.chart[data-chart=${name}]`)?.__figure?.data[0].x.at(-1)) === n)""",
        arg=rounds,
    )
    _wait_for_charts(tab, names)


def _trace(tab: Tab) -> dict[str, list[dict[str, Any]]]:
    """The events of the downloaded trace, by type."""
    with tab.page.expect_download() as download:
        tab.button("Download trace").click()
    events: dict[str, list[dict[str, Any]]] = {}
    for line in download.value.path().read_text().splitlines():
        event = json.loads(line)
        events.setdefault(event["type"], []).append(event)
    return events


@pytest.mark.parametrize(
    ("page", "prompt", "names"), [("toy_url", "Hello", LOCAL), ("scripted_url", "remote", REMOTE),
                                  ("scripted_url", "large", LOCAL)],
)  # fmt: skip
def test_the_numbers_in_the_charts_are_those_of_the_trace(
    open_tab: Callable[..., Tab], request: pytest.FixtureRequest, page: str, prompt: str, names: list[str]
) -> None:
    tab = open_tab(request.getfixturevalue(page))
    _finish(tab, prompt, names)
    charts, trace = _drawn(tab), _trace(tab)
    rounds, verdicts = trace["metrics"], trace["verify_result"]
    last = rounds[-60:]
    numbers = [m["round"] + 1 for m in last]

    (gauge,) = charts["acceptance"].values()
    statuses = [v["status"] for v in verdicts]
    kept, tested = statuses.count("accepted"), statuses.count("accepted") + statuses.count("rejected")
    assert gauge["value"] == pytest.approx(100 * kept / tested, abs=0.01)
    recent = rounds[-50:]
    share = sum(m["accepted"] for m in recent) / sum(m["tested"] for m in recent)
    assert gauge["needle"] == pytest.approx(100 * share, abs=0.01)

    (positions,) = charts["positions"].values()
    assert positions["x"] == list(range(1, len(positions["x"]) + 1))
    for i, (y, counts) in enumerate(zip(positions["y"], positions["customdata"], strict=True)):
        here = [v["status"] for v in verdicts if v["position"] == i]
        kept, reached = here.count("accepted"), here.count("accepted") + here.count("rejected")
        assert counts == [kept, reached]
        assert y == (pytest.approx(100 * kept / reached, abs=0.01) if reached else None)

    (done,), (started,) = trace["done"], trace["run_started"]
    (bars,) = charts["speed"].values()
    speeds = [done["baseline_tps"], done["tokens_per_second"]]
    speeds = [started["per_call_tps"], *speeds] if prompt == "remote" else speeds
    assert bars["x"] == pytest.approx(speeds, abs=0.001)

    for name, status in (("accepted", "accepted"), ("resampled", "rejected"), ("bonus", "bonus")):
        bars = charts["rounds"][name]
        assert bars["x"] == numbers
        assert bars["y"] == [sum(v["status"] == status for v in verdicts if v["round"] == m["round"]) for m in last]
    means = [done["total_tokens"] / len(rounds), *[m["tokens_per_round"] for m in last]]
    assert charts["rounds"]["mean so far"]["y"] == pytest.approx(means[1:], abs=1e-4)
    assert means[-1] == pytest.approx(means[0])

    later = [m for m in last if m["round"] > 0]
    assert charts["speed_by_round"]["so far"]["y"] == pytest.approx([m["effective_tps"] for m in later], abs=0.001)
    each = [1000 * m["emitted"] / m["split"]["wall_ms"] for m in later]
    assert charts["speed_by_round"]["each round"]["y"] == pytest.approx(each, abs=0.001)
    plain = charts["speed_by_round"]["streaming" if prompt == "remote" else "plain decoding"]
    assert plain["y"] == pytest.approx([started["baseline_tps"]] * 2, abs=0.001)

    for part, field in (("draft", "draft_ms"), ("rule", "rule_ms")):
        assert charts["latency"][part]["y"] == pytest.approx([m["split"][field] for m in rounds[-10:]], abs=0.001)
    stacks = zip(*(t["y"] for t in charts["latency"].values()), strict=True)
    assert [sum(s) for s in stacks] == pytest.approx([m["split"]["wall_ms"] for m in rounds[-10:]], abs=0.005)

    if prompt == "remote":
        prompts = [m["billed_prompt_tokens"] for m in last]
        outputs = [m["billed_completion_tokens"] for m in last]
        assert (charts["billed"]["prompt"]["y"], charts["billed"]["output"]["y"]) == (prompts, outputs)
        assert charts["billed"]["sum (right)"]["y"] == list(accumulate(map(sum, zip(prompts, outputs, strict=True))))


def test_charts_are_redrawn_in_place(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    _wait_for_charts(tab, LOCAL)
    tab.page.evaluate(
        """() => {
          const specviz = globalThis.__specviz, draw = specviz.charts;
          globalThis.polls = 0;
          specviz.charts = (component) => (globalThis.polls++, draw(component));
          globalThis.before = [...document.querySelectorAll('.chart, .chart-plot, .chart .main-svg')];
        }"""
    )
    rounds = tab.page.evaluate(DRAWN)["rounds"][0]["x"]
    tab.page.wait_for_function("() => globalThis.polls >= 12")
    _wait_for_charts(tab, LOCAL)
    assert tab.page.evaluate(DRAWN)["rounds"][0]["x"][-1] > rounds[-1]
    assert tab.page.evaluate(
        """() => {
          const now = [...document.querySelectorAll('.chart, .chart-plot, .chart .main-svg')];
          return now.length === globalThis.before.length && now.every((e, i) => e === globalThis.before[i]);
        }"""
    )
    tab.button("Stop").click()


def test_only_a_chart_that_changed_is_drawn_and_lost_messages_are_asked_for(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    """The renderer, called with messages of our own."""
    tab = open_tab(scripted_url)
    _finish(tab, "talk", LOCAL)
    heard = tab.page.evaluate(
        """async () => {
          const specviz = globalThis.__specviz, root = document.createElement('div'), react = Plotly.react;
          const drawn = [], asked = [];
          root.innerHTML = '<div class="charts" style="width: 600px"></div>';
          document.body.append(root);
          Plotly.react = (plot, ...more) => (drawn.push(plot.parentNode.dataset.chart), react(plot, ...more));
          const figure = (n) => ({ title: 't', note: 'n', words: 'w', bad: false, layout: { height: 90 },
            data: [{ type: 'bar', x: [1], y: [n] }] });
          const send = async (from, to, names) => {
            specviz.charts({ parentElement: root, setStateValue: (name, value) => asked.push([name, value.rev]),
              data: { run: 'r', from, to, shown: ['a', 'b'],
                      items: names.map((name) => ({ name, figure: figure(to) })) } });
            while (specviz.toDraw.size) await new Promise((done) => setTimeout(done, 1));
            return drawn.splice(0);
          };
          const steps = [await send(0, 1, ['a', 'b']), await send(1, 1, []), await send(1, 2, ['b']),
                         await send(0, 2, ['a', 'b']), await send(5, 6, ['a']), await send(2, 6, ['a'])];
          root.querySelector('.charts').__specviz.watch.disconnect();
          clearTimeout(root.querySelector('.charts').__specviz.askAgain);
          root.remove();
          Plotly.react = react;
          return { steps, asked };
        }"""
    )
    assert heard["steps"] == [["a", "b"], [], ["b"], [], [], ["a"]]
    assert heard["asked"] == [["need", 2]]


def test_charts_that_were_lost_come_back(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    _wait_for_charts(tab, LOCAL)
    tab.page.evaluate(
        """() => {
          for (const row of document.querySelectorAll('.charts')) row.__specviz.have = 0;
          for (const title of document.querySelectorAll('.chart-title')) title.textContent = '';
        }"""
    )
    tab.page.wait_for_function("() => [...document.querySelectorAll('.chart-title')].every((t) => t.textContent)")
    tab.button("Stop").click()


def test_a_chart_without_a_width_is_drawn_once_it_has_one(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url, width=1440)
    tab.run("endless")
    _wait_for_charts(tab, LOCAL)
    tab.page.evaluate("() => document.querySelectorAll('.charts').forEach((r) => (r.style.display = 'none'))")
    before = tab.page.evaluate(DRAWN)["rounds"][0]["x"][-1]
    tab.page.wait_for_function(
        "(n) => document.querySelector('[data-chart=rounds]').__figure.data[0].x.at(-1) > n + 5", arg=before
    )
    assert tab.page.evaluate(DRAWN)["rounds"][0]["x"][-1] == before, "nothing is drawn where nobody sees it"
    tab.button("Stop").click()
    tab.page.get_by_text("Stopped by you after").wait_for()
    tab.page.evaluate("() => document.querySelectorAll('.charts').forEach((r) => (r.style.display = ''))")
    tab.page.wait_for_function("""() => [...document.querySelectorAll('.chart')].every((box) =>
      box.lastChild.data && box.__drawn === box.clientWidth && box.clientWidth)""")
    _wait_for_charts(tab, LOCAL)
    assert tab.page.evaluate(DRAWN)["rounds"][0]["x"][-1] > before


def test_another_theme_recolours_what_is_drawn_although_nothing_is_polled(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    tab = open_tab(scripted_url, color_scheme="light")
    _finish(tab, "talk", LOCAL)
    colours = """() => [...document.querySelectorAll('.chart')].map((box) => [
      box.lastChild.layout.font.color, getComputedStyle(box).color])"""
    light = tab.page.evaluate(colours)
    assert all(drawn == text for drawn, text in light)
    tab.page.emulate_media(color_scheme="dark")
    tab.page.wait_for_function(
        f"(old) => ({colours})().every(([drawn, text]) => drawn === text && text !== old)", arg=light[0][1]
    )


@pytest.mark.parametrize(("prompt", "width"), [("large", 1440), ("remote", 1240), ("remote", 360)])
def test_every_text_of_a_chart_lies_within_it(
    open_tab: Callable[..., Tab], scripted_url: str, prompt: str, width: int
) -> None:
    tab = open_tab(scripted_url, width=width)
    _finish(tab, prompt, REMOTE if prompt == "remote" else LOCAL)
    cut = tab.page.evaluate(
        """() => [...document.querySelectorAll('.chart')].flatMap((box) => {
          const inner = box.getBoundingClientRect();
          return [...box.querySelectorAll('text, .chart-title, .chart-note')].filter((text) => {
            const r = text.getBoundingClientRect();
            return r.width && (r.left < inner.left - 1 || r.right > inner.right + 1 || r.bottom > inner.bottom + 1);
          }).map((text) => `${box.dataset.chart}: ${text.textContent}`);
        })"""
    )
    assert cut == []


def test_every_chart_says_its_numbers_to_who_does_not_see_it(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    _finish(tab, "remote", REMOTE)
    said = [label_of(box) for box in tab.page.locator(".chart-plot[role=img]").all()]
    assert len(said) == len(REMOTE) and all(s.endswith(".") for s in said)
    assert "Acceptance rate, %: 74 %, 26 of 35 tested: middling; 74 % in the last 12 rounds." in said
    assert any("streaming 80.0" in s and "slower" in s for s in said)
    assert "Billed tokens per round: 6,060 in total: 6,000 prompt + 60 output." in said


def test_a_hostile_name_in_a_chart_is_text(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    _finish(tab, "hostile", LOCAL)
    tab.page.locator("[data-chart=speed]").scroll_into_view_if_needed()
    tab.page.evaluate(
        "() => Plotly.Fx.hover(document.querySelector('[data-chart=speed]').lastChild, "
        "[{ curveNumber: 0, pointNumber: 1 }])"
    )
    label = tab.page.locator("[data-chart=speed] .hovertext")
    label.wait_for()
    assert '<img src=x onerror=alert(4)> <a href="j…' in text_of(label)
    assert tab.page.locator(".charts :is(img, a, script, iframe)").count() == 0
