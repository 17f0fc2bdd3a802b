"""A run's life beside the page: stopped, left, found again, and many at once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import pytest

from tests.browser.measured.recipe import Recipe
from tests.browser.measuring import WHOLE, Measured, figure, median

pytestmark = pytest.mark.browser

STOPPED = (
    "[...document.querySelectorAll('[data-testid=stAlert]')].some((e) => e.textContent.includes('Stopped by you'))"
)
SPEED_RUNS = 3
#: Open at once.
TABS = 8 if WHOLE else 4
whole_only = pytest.mark.skipif(not WHOLE, reason="speeds are measured with SPECVIZ_MEASURE=whole")


def test_stop_ends_a_run_with_its_round(measured_tab: Measured) -> None:
    m = measured_tab
    after_round, after_click = [], []
    for seed in range(3):
        # A round takes about a third of a second.
        m.start(Recipe("fed", rate=8, tokens=1_000, seed=seed))
        m.until_polls(8)
        m.js("(addEventListener('pointerdown', () => (m.clicked = Date.now()), { capture: true, once: true }), 0)")
        m.tab.button("Stop").click()
        seen, clicked = m.js(f"m.when(() => {STOPPED}).then((at) => [at, m.clicked])")
        ended = 1000 * m.server.ask("ended", m.run)
        after_round.append(seen - ended)
        after_click.append(seen - clicked)
    values = f"{median(after_round):.0f} ms, longest {max(after_round):.0f} ms"
    figure("from the end of the round in flight to “Stopped”", values, "≤ 500 ms")
    figure("from the click on Stop to “Stopped”", f"{median(after_click):.0f} ms")
    assert all(wait > 0 for wait in after_round)


def test_another_page_and_back_while_it_runs_and_when_it_has_ended(measured_tab: Measured) -> None:
    m = measured_tab
    recipe = Recipe("fed", rate=60, tokens=100_000)
    m.start(recipe)
    m.until_polls(10)
    chosen = _choose(m, 30)
    m.js("(m.hooked.follow = false, m.hooked.network.moveTo({ position: { x: 900, y: 60 }, scale: 0.7 }), 0)")
    m.until_polls(2)
    view = m.js("m.view()")
    for when in ("during the run", "after its end"):
        _go_and_come_back(m)
        if when == "during the run":
            m.until_polls(5)
            m.tab.button("Stop").click()
        m.page.get_by_text("Stopped by you after").wait_for()
        m.until_equal()
        assert m.page.get_by_label("Prompt", exact=True).input_value() == str(recipe)
        found, now = m.js("[__specviz.chosen.id, m.view()]")
        figure(
            f"another page and back, {when}", f"nodes and text equal; choice {chosen} → {found}, view {view} → {now}"
        )
        assert (found, now) == (chosen, view)


def test_a_reload_shows_everything_again(measured_tab: Measured) -> None:
    m = measured_tab
    m.start(Recipe("fed", rate=60, tokens=100_000))
    m.until_polls(10)
    chosen = _choose(m, 20)
    m.until_polls(3)
    m.page.reload()
    m.tab.button("Run").wait_for()
    _until_drawn(m)
    m.until_polls(5)
    m.tab.button("Stop").click()
    m.page.get_by_text("Stopped by you after").wait_for()
    m.until_equal()
    found = m.js("__specviz.chosen.id")
    figure("reload during a run", f"nodes and text equal; choice {chosen} → {found}", "everything still there")
    assert found == chosen


def _choose(m: Measured, nth: int) -> int:
    m.page.locator(".text .token").nth(nth).click()
    return int(m.until(lambda: m.js("__specviz.chosen.id")))


def _go_and_come_back(m: Measured) -> None:
    m.page.get_by_role("link", name="Go elsewhere").click()
    m.page.get_by_text("Nothing runs here.").wait_for()
    m.page.get_by_role("link", name="Go back").click()
    m.tab.button("Run").wait_for()
    _until_drawn(m)


def _until_drawn(m: Measured) -> None:
    state = "m.find('.network')?.__specviz"
    m.until(lambda: m.js(f"{state} !== undefined && m.hooked === {state} && m.hooked.nodes.length > 0"))


def test_no_thread_is_left_over_after_50_runs(measured_tab: Measured) -> None:
    m = measured_tab
    before = _threads(m)
    for seed in range(10):
        m.start(Recipe("model", tokens=6, seed=seed))
        m.until(lambda: m.server.ask("finished", m.run))
        m.page.locator("button:enabled", has_text="Run").first.wait_for()
    for seed in range(40):
        m.server.ask("headless", str(Recipe("model", tokens=6, seed=seed)))
    left = _threads(m) - before
    figure("threads left over after 50 runs", f"{sum(left.values())} {dict(left) or ''}", "0")
    assert not [name for name in left if "specviz" in name]
    # Streamlit's own, which serve whatever page is open.
    assert sum(left.values()) <= 2, left


def _threads(m: Measured) -> Counter[str]:
    """Names of threads, once those that belong to one run or to one of our questions are gone."""
    m.until(lambda: not _of_runs(m))
    names = m.server.ask("threads")
    return Counter(name for name in names if "process_request" not in name)


def _of_runs(m: Measured) -> list[str]:
    return [name for name in m.server.ask("threads") if name.startswith(("fed-", "watch-"))]


def _speed(m: Measured, recipe: Recipe) -> dict[str, list[float]]:
    """Tokens per second with nobody looking, with the page drawing, and with the page receiving only."""
    speeds: dict[str, list[float]] = {"headless": [], "page": [], "undrawn": []}
    m.server.ask("headless", str(recipe))
    for _ in range(SPEED_RUNS):
        speeds["headless"].append(m.server.ask("headless", str(recipe))["tokens_per_second"])
        for how in ("page", "undrawn"):
            m.js(f"m.mute({str(how == 'undrawn').lower()})")
            speeds[how].append(_watched_speed(m, recipe))
    return speeds


def _watched_speed(m: Measured, recipe: Recipe) -> float:
    m.start(recipe)
    # Seldom: looking costs what is measured.
    m.until(lambda: m.server.ask("finished", m.run), timeout_s=180, every_ms=1_000)
    m.page.locator("button:enabled", has_text="Run").first.wait_for()
    found = m.server.ask("outcome", m.run)
    assert found["error"] is None
    assert found["tokens_per_second"]
    return float(found["tokens_per_second"])


def _tell(what: str, speeds: dict[str, list[float]]) -> None:
    alone = median(speeds["headless"])
    assert all(len(found) >= SPEED_RUNS for found in speeds.values())
    for how, wanted in (("page", "≥ 0.95"), ("undrawn", "")):
        with_page = median(speeds[how])
        shown = "with the page open" if how == "page" else "with the page open and nothing drawn"
        figure(
            f"decoding speed {shown}, {what}",
            f"{with_page:.1f} against {alone:.1f} tokens/s headless: {with_page / alone:.2f}", wanted,
        )  # fmt: skip


@whole_only
def test_decoding_speed_of_a_target_on_a_gpu(open_measured: Callable[..., Measured]) -> None:
    m = open_measured()
    _tell("20 ms a round elsewhere", _speed(m, Recipe("model", tokens=192, seed=4)))


@whole_only
@pytest.mark.smollm
def test_decoding_speed_of_smollm2_on_these_cores(open_measured: Callable[..., Measured]) -> None:
    m = open_measured()
    recipe = Recipe(
        "model", tokens=64, target="local:smollm2-135m", draft="ngram", prompt="Write a short story about a river."
    )
    _tell("SmolLM2 and n-grams", _speed(m, recipe))


def test_a_closed_tab_and_many_at_once(open_measured: Callable[..., Measured], measured_tab: Measured) -> None:
    gone = open_measured()
    left = gone.start(Recipe("fed", rate=20, tokens=100_000))
    gone.until_polls(3)
    gone.page.close()
    closed_at = time.time()
    tabs = [open_measured() for _ in range(TABS - 1)] + [measured_tab]
    recipes = [Recipe("model", tokens=96, temperature=1.0, seed=i, prompt=f"Hello {i}") for i in range(TABS)]
    for tab, recipe in zip(tabs, recipes, strict=True):
        tab.start(recipe)
    wanted = []
    for tab in tabs:
        tab.page.get_by_text("Finished:").wait_for(timeout=60_000)
        tab.until_equal()
        wanted.append(tab.server.ask("outcome", tab.run)["text"])
    alone = [tabs[0].server.ask("headless", str(recipe))["text"] for recipe in recipes]
    assert wanted == alone, "each tab has its own text, as a run by itself gives it"
    assert len(set(wanted)) == TABS
    figure(f"{TABS} tabs at once on one model", "all finished, none mixed")
    ended = measured_tab.until(lambda: measured_tab.server.ask("finished", left), timeout_s=40)
    figure("tab closed: run ended after", f"{ended - closed_at:.1f} s", "≤ 20 s")
