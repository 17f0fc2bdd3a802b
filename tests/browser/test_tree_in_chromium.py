"""The token tree in Chromium: what it shows, hides, folds, and how a person finds the way in it.

Most of it in a page that holds the tree alone and is fed by hand, so that every state is reached at once and for sure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from specviz.record.state import RunState
from specviz.ui.parts import tree
from specviz.ui.parts.libraries import VIS_SCRIPT
from specviz.views import words
from specviz.views.tree import TreeView
from tests.browser.conftest import Tab
from tests.browser.located import box_of, text_of
from tests.ui.fakes import HOSTILE, SCENES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Locator, Page

VIEW = "[tree.network.getScale(), tree.network.getViewPosition()]"

#: Boxes of everything on the canvas that could be in another's way: [what, left, right] on the spine.
SPANS = """(() => {
  const column = __specviz.treeLayout.column;
  const spans = tree.rounds.filter((r) => tree.drawn.get([...r.ids]).length)
    .map((r) => ["round", (r.from - 0.5) * column, (r.to + 0.5) * column]);
  for (const chip of tree.drawn.get({ filter: (n) => String(n.id).startsWith("chip:") }))
    spans.push([chip.id, chip.x - 98, chip.x + 98]);
  return spans.sort((a, b) => a[1] - b[1]);
})()"""

THEMES = {
    "light": {"text": "#31333F", "background": "#ffffff", "border": "#d5d8df", "primary": "#0a7d6b"},
    "dark": {"text": "#fafafa", "background": "#0e1117", "border": "#3a3f4a", "primary": "#2fb8a0"},
}

#: Mounts the tree in a shadow root, as Streamlit does; `mount` again gives a fresh one, as a page switch does.
PAGE = """(html) => {
  globalThis.reports = [];
  globalThis.mount = () => {
    document.querySelector("#host")?.remove();
    const host = Object.assign(document.createElement("div"), { id: "host" });
    document.body.append(host);
    globalThis.root = host.attachShadow({ mode: "open" });
    root.innerHTML = html;
    __specviz.style(root, "tree");
  };
  globalThis.show = (data) => {
    const setStateValue = (name, value) => reports.push([name, value]);
    globalThis.end = __specviz.tree({ parentElement: root, data, setStateValue });
  };
  mount();
}"""


class Tree:
    """A page with nothing but a tree in it. It has the tab's methods for what stands in it."""

    def __init__(self, page: Page, scene: str, theme: str = "light") -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("pageerror", lambda e: self.faults.append(str(e)))
        page.on("console", lambda m: self.faults.append(m.text) if m.type == "error" else None)
        page.on("dialog", self._refuse)
        self.state, self.view, self.sent = RunState(), TreeView(), 0
        self._events = iter(SCENES[scene]().events)
        page.set_content("<style id=theme></style>")
        self.dress(theme)
        page.add_script_tag(content=VIS_SCRIPT + "\nglobalThis.loaded = true;", type="module")
        page.wait_for_function("globalThis.loaded")
        page.evaluate(PAGE, tree.HTML)

    def _refuse(self, dialog: Dialog) -> None:
        self.faults.append(dialog.message)
        dialog.dismiss()

    def dress(self, theme: str) -> None:
        sheet = "".join(f"--st-{name}-color:{value};" for name, value in THEMES[theme].items())
        sheet += "--st-font:sans-serif;--st-base-radius:8px;"
        self.page.evaluate("(css) => (document.querySelector('#theme').textContent = css)", ":root{" + sheet + "}")

    def feed(self, rounds: int | None = None, selected: int | None = None) -> None:
        """Let this many rounds of the scene happen, or the rest of it, and tell the page in one message."""
        until = None if rounds is None else len(self.state.rounds) + rounds
        for event in self._events:
            self.state.apply(event)
            if len(self.state.rounds) == until:
                break
        self.send(selected)

    def send(self, selected: int | None = None) -> None:
        delta = self.view.delta(self.state, "run", self.sent)
        self.sent = delta["to"]
        self.page.evaluate("(data) => show(data)", {**delta, "counts": dict(self.view.counts), "selected": selected})
        self.drawn()

    def remount(self) -> None:
        self.page.evaluate("mount()")
        self.sent = 0
        self.send()

    def drawn(self) -> None:
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def legend(self, name: str) -> Locator:
        return self.page.locator(".legend").get_by_role("button", name=name)

    def nodes(self) -> int:
        return int(self.tree("tree.nodes.length"))

    def tree(self, expression: str) -> Any:
        return self.page.locator(".network").evaluate(
            f"(box) => {{ const tree = box.__specviz; return {expression}; }}"
        )


@pytest.fixture
def grow(browser: Browser) -> Iterator[Callable[..., Tree]]:
    """Makes trees: of the whole of a scene, or of so many rounds of it."""
    made: list[Tree] = []

    def one(scene: str, rounds: int | None = None, theme: str = "light") -> Tree:
        page = browser.new_page(viewport={"width": 860, "height": 520})
        page.set_default_timeout(30_000)
        made.append(Tree(page, scene, theme))
        made[-1].feed(rounds)
        return made[-1]

    yield one
    for each in made:
        each.page.close()
    assert [fault for each in made for fault in each.faults] == []


def click_node(tab: Tree, node: int | str) -> None:
    """Click what stands on the canvas under this id; it must be in view."""
    at = tab.tree(f"tree.network.canvasToDOM(tree.network.getPosition({node!r}))")
    box = box_of(tab.page.locator(".network canvas"))
    assert 0 < at["x"] < box["width"] and 0 < at["y"] < box["height"], f"{node} is out of view: {at}"
    tab.page.mouse.click(box["x"] + at["x"], box["y"] + at["y"])


def look_at(tab: Tree, x: float, y: float = 60, scale: float = 0.8) -> None:
    tab.tree(f"(tree.follow = false, tree.network.moveTo({{position: {{x: {x}, y: {y}}}, scale: {scale}}}), 0)")
    tab.page.locator(".network").evaluate("() => new Promise((done) => requestAnimationFrame(() => done(0)))")


def chosen(tab: Tree) -> int | None:
    found: int | None = tab.page.evaluate("__specviz.chosen.id")
    return found


def no_overlap(tab: Tree) -> None:
    spans = tab.tree(SPANS)
    for (one, _, end), (other, start, _) in pairwise(spans):
        assert end <= start, f"{one} reaches into {other}"


def test_every_node_is_as_the_server_knows_it_and_old_rounds_are_chips(grow: Callable[..., Tree]) -> None:
    tab = grow("large")
    want = [[n.id, n.parent, n.round, n.index, n.status] for n in tab.state.nodes]
    got = tab.tree("tree.nodes.get().map((n) => [n.id, n.parent, n.round, n.index, n.status])")
    assert sorted(got) == sorted(want)
    labels = dict(tab.tree("tree.nodes.get().map((n) => [n.id, n.label])"))
    assert labels == {n.id: words.label(n.token) for n in tab.state.nodes}
    assert tab.tree("[...tree.memory.folded].length") == 16, "360 rounds in blocks of 20, the newest 40 open"
    assert tab.tree("tree.drawn.length") < 300
    chip = tab.tree("tree.drawn.get('chip:0').label")
    assert chip.startswith("rounds 1–20\n60 tokens · ") and chip.endswith(" % accepted")
    no_overlap(tab)


def test_a_chip_opens_where_it_stands_and_folds_again(grow: Callable[..., Tree]) -> None:
    tab = grow("large")
    before = tab.tree("Object.fromEntries(tree.drawn.get().map((n) => [n.id, [n.x, n.y]]))")
    for block in (15, 7, 0):
        look_at(tab, tab.tree(f"tree.chips.get({block})"), 0)
        edge = f"tree.network.canvasToDOM({{x: tree.chips.get({block}) + 116, y: 0}}).x"
        right = tab.tree(edge)
        click_node(tab, f"chip:{block}")
        is_open = f"(box) => !box.__specviz.memory.folded.has({block})"
        tab.page.wait_for_function(is_open, arg=tab.page.locator(".network").element_handle())
        last = f"tree.rounds[{block * 20 + 19}]"
        now = tab.tree(f"tree.network.canvasToDOM({{x: ({last}.to + 0.5) * 78, y: 0}}).x")
        assert now == pytest.approx(right, abs=2), "the block grows out of the chip, leftwards"
        assert tab.tree(f"tree.drawn.get([...{last}.ids]).every((n) => n.x === tree.nodes.get(n.id).index * 78)"), (
            "at its own columns"
        )
        no_overlap(tab)
    loose = tab.tree("tree.edges.get().filter((e) => !tree.drawn.get(e.from) || !tree.drawn.get(e.to)).length")
    assert loose == 0, "what an edge comes from is drawn: a node, or the chip that it is folded into"
    assert tab.tree("tree.edges.length") == tab.tree("tree.drawn.length") - 1
    tab.button("Fold older rounds").click()
    after = tab.tree("Object.fromEntries(tree.drawn.get().map((n) => [n.id, [n.x, n.y]]))")
    assert after == before
    assert tab.button("Fold older rounds").is_disabled()


def test_two_clicks_on_a_chip_open_it_and_do_not_go_to_the_end(grow: Callable[..., Tree]) -> None:
    tab = grow("large")
    look_at(tab, tab.tree("tree.chips.get(7)"), 0)
    at = tab.tree("tree.network.canvasToDOM(tree.network.getPosition('chip:7'))")
    box = box_of(tab.page.locator(".network canvas"))
    tab.page.mouse.dblclick(box["x"] + at["x"], box["y"] + at["y"])
    tab.page.locator(".network").evaluate(
        "(box) => new Promise((done) => { const { network } = box.__specviz;"
        " network.once('afterDrawing', () => done(0)); network.redraw(); })"
    )
    assert not tab.tree("tree.memory.folded.has(7)")
    assert not tab.tree("tree.follow")


def test_nothing_folds_under_a_person_who_has_moved_away(grow: Callable[..., Tree]) -> None:
    tab = grow("endless", rounds=30)
    box = box_of(tab.page.locator(".network canvas"))
    x, y = box["x"] + 200, box["y"] + box["height"] - 30
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x + 60, y - 20, steps=4)
    tab.page.mouse.up()
    view = tab.tree(VIEW)
    for _ in range(12):
        tab.feed(4)
    assert tab.tree(VIEW) == view
    assert tab.tree("tree.memory.folded.size") == 0
    tab.button("Follow").click()
    assert tab.tree("[...tree.memory.folded]") == [0]
    tab.feed(10)
    assert tab.tree("[...tree.memory.folded]") == [0, 1], "and goes on"
    no_overlap(tab)


def test_the_legend_is_a_filter(grow: Callable[..., Tree]) -> None:
    tab = grow("talk")
    entry = tab.page.locator(".legend").get_by_role("button", name="rejected")
    count = text_of(entry.locator(".count"))
    shown = "tree.drawn.get().filter((n) => tree.nodes.get(n.id).status === 'rejected').length"
    assert tab.tree(shown) == int(count) > 0
    entry.click()
    assert entry.get_attribute("aria-pressed") == "false"
    assert "line-through" in entry.locator(".name").evaluate("(e) => getComputedStyle(e).textDecorationLine")
    assert tab.tree(shown) == 0
    assert tab.tree("tree.edges.get().filter((e) => tree.nodes.get(e.id).status === 'rejected').length") == 0
    assert text_of(entry.locator(".count")) == count
    tab.page.locator(".legend").get_by_role("button", name="accepted").click()
    assert tab.tree("tree.drawn.length") < tab.nodes() - int(count)
    tab.page.locator(".legend").get_by_role("button", name="all", exact=True).click()
    assert tab.tree("tree.drawn.length") == tab.nodes()
    assert tab.tree("tree.edges.length") == tab.nodes() - 1
    assert not tab.page.locator(".legend").get_by_role("button", name="all", exact=True).is_visible()


def test_what_is_put_on_the_canvas_is_in_the_next_drawing(grow: Callable[..., Tree]) -> None:
    """vis-network leaves out what it has measured nowhere near the view."""
    tab = grow("talk")
    measured = "tree.drawn.get().every((n) => Math.abs(tree.network.getBoundingBox(n.id).left - n.x) < 60)"
    assert tab.tree(f"(tree.tools.legend.entries[0].entry.click(), tree.tools.legend.all.click(), {measured})")


def test_new_tokens_of_a_hidden_status_stay_hidden(grow: Callable[..., Tree]) -> None:
    tab = grow("endless", rounds=3)
    tab.page.locator(".legend").get_by_role("button", name="ignored").click()
    tab.feed(12)
    assert tab.tree("tree.nodes.get().filter((n) => n.status === 'ignored').length") > 0
    assert tab.tree("tree.drawn.get().filter((n) => tree.nodes.get(n.id)?.status === 'ignored').length") == 0


def test_one_can_go_to_a_round_by_number_and_from_there_to_its_neighbours(grow: Callable[..., Tree]) -> None:
    tab = grow("large")
    field = tab.page.get_by_role("spinbutton", name="Round")
    assert field.input_value() == "360" and tab.page.get_by_text("of 360").is_visible()
    middle = "(tree.network.getViewPosition().x / 78)"
    for number in (12, 250):
        field.fill(str(number))
        field.press("Enter")
        band = tab.tree(f"tree.rounds[{number - 1}]")
        assert band["from"] - 1 <= tab.tree(middle) <= band["to"] + 1
        assert tab.tree("tree.memory.round") == number - 1
        assert not tab.tree(f"tree.memory.folded.has({(number - 1) // 20})"), "its block is open"
        no_overlap(tab)
    assert tab.button("Follow").get_attribute("aria-pressed") == "false"
    tab.button("Next round").click()
    assert field.input_value() == "251"
    tab.button("Previous round").click()
    tab.button("Previous round").click()
    assert field.input_value() == "249" and tab.tree("tree.memory.round") == 248
    field.fill("9999")
    field.press("Enter")
    assert field.input_value() == "360" and tab.button("Next round").is_disabled()


def test_follow_says_whether_it_is_on(grow: Callable[..., Tree]) -> None:
    tab = grow("endless", rounds=10)
    follow = tab.button("Follow")
    assert follow.get_attribute("aria-pressed") == "true"
    tab.button("Whole tree").click()
    assert follow.get_attribute("aria-pressed") == "false"
    view = tab.tree(VIEW)
    tab.feed(4)
    assert tab.tree(VIEW) == view
    follow.click()
    assert follow.get_attribute("aria-pressed") == "true" and tab.tree("tree.follow") is True
    x = tab.tree("tree.network.getViewPosition().x")
    tab.feed(4)
    assert tab.tree("tree.network.getViewPosition().x") > x
    follow.click()
    assert follow.get_attribute("aria-pressed") == "false"


def test_the_whole_tree_is_in_view_on_demand(grow: Callable[..., Tree]) -> None:
    tab = grow("large")
    tab.button("Whole tree").click()
    ends = tab.tree(
        "[tree.network.canvasToDOM({x: tree.chips.get(0) - 98, y: 0}).x,"
        " tree.network.canvasToDOM({x: tree.endX, y: 0}).x, tree.box.clientWidth]"
    )
    assert 0 <= ends[0] < 0.1 * ends[2] and 0.9 * ends[2] < ends[1] <= ends[2]


def test_a_node_is_chosen_by_click(grow: Callable[..., Tree]) -> None:
    tab = grow("talk")
    node = tab.tree("tree.nodes.get().filter((n) => n.status === 'rejected').at(-1).id")
    view = tab.tree(VIEW)
    click_node(tab, node)
    assert chosen(tab) == node and tab.tree("tree.network.getSelectedNodes()") == [node]
    name, report = tab.page.evaluate("reports.at(-1)")
    assert (name, report["run"], report["id"]) == ("selected", "run", node)
    assert tab.tree(VIEW) == view and tab.tree("tree.follow") is True, "it is in view: nothing moves"
    box = box_of(tab.page.locator(".network canvas"))
    tab.page.mouse.click(box["x"] + 20, box["y"] + box["height"] - 8)
    assert chosen(tab) is None and tab.tree("tree.network.getSelectedNodes()") == []


def test_a_choice_made_elsewhere_is_gone_to_and_opens_what_hides_it(grow: Callable[..., Tree]) -> None:
    tab = grow("large")
    choose = "(id) => __specviz.choose({ setStateValue: () => {} }, 'run', id)"
    view = tab.tree(VIEW)
    in_view = tab.tree("tree.nodes.get().filter((n) => n.lane === 0).at(-2).id")
    tab.page.evaluate(choose, in_view)
    assert tab.tree("tree.network.getSelectedNodes()") == [in_view]
    assert tab.tree(VIEW) == view and tab.tree("tree.follow") is True
    tab.page.evaluate(choose, 30)
    assert tab.tree("tree.network.getSelectedNodes()") == [30] and tab.tree("tree.follow") is False
    at = tab.tree("tree.network.canvasToDOM(tree.network.getPosition(30))")
    assert 0 < at["x"] < tab.tree("tree.box.clientWidth")
    assert not tab.tree("tree.memory.folded.has(0)")
    no_overlap(tab)


def test_what_was_chosen_before_the_page_was_loaded_is_marked_and_moves_nothing(grow: Callable[..., Tree]) -> None:
    tab = grow("endless", rounds=10)
    tab.feed(1, selected=2)
    assert chosen(tab) == 2 and tab.tree("tree.network.getSelectedNodes()") == [2]
    assert tab.tree("tree.follow") is True


ALTERNATIVES = [
    {"token": token, "p": 0.5 / (i + 1), "q": None if i == 2 else 0.1, "residual": 0.0}
    for i, token in enumerate(["·the", *(words.label(t) for t in HOSTILE if isinstance(t, str))])
]


def test_alternatives_are_drawn_on_demand_and_are_no_nodes(grow: Callable[..., Tree]) -> None:
    tab = grow("talk")
    node = tab.tree("tree.nodes.get().filter((n) => n.status === 'accepted').at(-1).id")
    ghosts = "tree.drawn.get({ filter: (n) => String(n.id).startsWith('alt:') })"
    tell = "(detail) => document.dispatchEvent(new CustomEvent('specviz-detail', { detail }))"
    detail = {"run": tab.tree("tree.run"), "id": node, "alternatives": ALTERNATIVES}
    click_node(tab, node)
    tab.page.evaluate(tell, detail)
    assert tab.tree(ghosts) == []
    toggle = tab.button("Alternatives")
    toggle.click()
    tab.page.evaluate(tell, detail)
    drawn = tab.tree(ghosts)
    assert toggle.get_attribute("aria-pressed") == "true" and len(drawn) == 10
    assert drawn[0]["label"] == "·the  0.50" and all(ghost["y"] < 0 for ghost in drawn)
    top = min(tab.tree(f"{ghosts}.map((n) => tree.network.canvasToDOM({{x: n.x, y: n.y - 14}}).y)"))
    assert top >= 0, "all of them are in view"
    assert tab.nodes() == len(SCENES["talk"]().state().nodes)
    click_node(tab, "alt:0")
    assert chosen(tab) == node, "an alternative is not a token that could be chosen"
    tab.page.evaluate(tell, {**detail, "id": node - 1})
    assert tab.tree(ghosts) == [], "those of another token"
    tab.page.evaluate(tell, detail)
    toggle.click()
    assert tab.tree(ghosts) == [] and tab.tree("tree.edges.get('alt:0')") is None


def test_the_tree_can_be_walked_by_keyboard(grow: Callable[..., Tree]) -> None:
    tab = grow("large")
    nodes: dict[int | None, dict[str, Any]] = {
        n["id"]: n for n in tab.tree("tree.nodes.get().map(({title, ...n}) => n)")
    }
    box = tab.page.locator(".network")
    assert box.get_attribute("role") == "application" and "arrow" in box.get_attribute("aria-label").lower()
    box.focus()
    press = tab.page.keyboard.press

    def now() -> dict[str, Any]:
        return nodes[chosen(tab)]

    press("End")
    assert now()["index"] == max(n["index"] for n in nodes.values() if n["lane"] == 0)
    press("ArrowLeft")
    press("ArrowLeft")
    assert now()["index"] == max(n["index"] for n in nodes.values() if n["lane"] == 0) - 2 and now()["lane"] == 0
    press("Home")
    assert (now()["index"], now()["lane"]) == (0, 0)
    assert not tab.tree("tree.memory.folded.has(0)") and tab.tree("tree.follow") is False
    at = tab.tree(f"tree.network.canvasToDOM(tree.network.getPosition({chosen(tab)}))")
    assert 0 < at["x"] < tab.tree("tree.box.clientWidth")
    dropped = min((n for n in nodes.values() if n["status"] == "rejected"), key=lambda n: n["index"])
    for _ in range(dropped["index"]):
        press("ArrowRight")
    assert now()["lane"] == 0
    press("ArrowDown")
    assert now()["id"] == dropped["id"]
    press("ArrowRight")
    assert (now()["status"], now()["round"]) == ("ignored", dropped["round"])
    press("ArrowLeft")
    press("ArrowLeft")
    assert (now()["index"], now()["lane"]) == (dropped["index"] - 1, 0), "back on the spine"
    scale = tab.tree("tree.network.getScale()")
    press("+")
    assert tab.tree("tree.network.getScale()") > scale
    press("f")
    assert tab.tree("tree.follow") is True
    press("Escape")
    assert chosen(tab) is None


def test_the_focused_tree_has_a_ring_and_is_one_tab_stop(grow: Callable[..., Tree]) -> None:
    tab = grow("talk")
    tab.button("Follow").focus()
    tab.page.keyboard.press("Tab")
    box = tab.page.locator(".network:focus")
    assert box.count() == 1
    assert box.evaluate("(b) => getComputedStyle(b).outlineStyle") == "solid"
    tab.page.keyboard.press("Tab")
    assert tab.page.locator(".legend button:focus").count() == 1


def test_a_new_mount_finds_everything_as_it_was_left(grow: Callable[..., Tree]) -> None:
    tab = grow("large")
    tab.page.locator(".legend").get_by_role("button", name="ignored").click()
    look_at(tab, tab.tree("tree.chips.get(9)"), 0)
    click_node(tab, "chip:9")
    assert not tab.tree("tree.memory.folded.has(9)")
    look_at(tab, tab.tree("tree.rounds[190].from * 78"), 40, 0.7)
    tab.button("Alternatives").click()
    what = "[tree.drawn.getIds().map(String).sort(), tree.nodes.length, tree.follow, tree.memory.alternatives]"
    before, (scale, at) = tab.tree(what), tab.tree(VIEW)
    tab.remount()
    assert tab.tree(what) == before
    now = tab.tree(VIEW)
    assert now[0] == pytest.approx(scale) and now[1] == pytest.approx(at, abs=1)
    assert tab.legend("ignored").get_attribute("aria-pressed") == "false"
    assert tab.button("Alternatives").get_attribute("aria-pressed") == "true"
    tab.button("Follow").click()
    tab.remount()
    assert tab.tree("tree.follow") is True and tab.tree("tree.network.getViewPosition().x") > 0.9 * tab.tree(
        "tree.endX"
    )


def test_a_new_theme_paints_everything_anew(grow: Callable[..., Tree]) -> None:
    tab = grow("talk")
    tab.dress("dark")
    box = tab.page.locator(".network").element_handle()
    tab.page.wait_for_function("(box) => box.__specviz.colours.background === '#0e1117'", arg=box)
    assert tab.tree("tree.drawn.get().filter((n) => n.color.background === '#ffffff').length") == 0


def test_text_and_tree_choose_the_same_token_and_a_page_run_leaves_the_view_alone(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    """In the page itself."""
    tab = open_tab(scripted_url)
    tab.run("endless")
    tab.wait_for_nodes(60)
    tab.page.locator(".text .token").nth(3).click()
    box = tab.page.locator(".network").element_handle()
    tab.page.wait_for_function(
        "(box) => __specviz.chosen.id !== null && box.__specviz.network.getSelectedNodes()[0] === __specviz.chosen.id",
        arg=box,
    )
    tab.button("Whole tree").click()
    view = tab.tree(VIEW)
    tab.page.get_by_role("slider", name="Drafted per round, K").press("ArrowRight")
    tab.wait_for_nodes(tab.nodes() + 40)
    assert tab.tree(VIEW) == view


def test_hostile_labels_stay_within_their_columns(grow: Callable[..., Tree]) -> None:
    tab = grow("hostile")
    widest = tab.tree(
        "Math.max(...tree.drawn.get().filter((n) => typeof n.id === 'number')"
        ".map((n) => tree.pen.measureText(n.label).width))"
    )
    assert 0 < widest <= 78
    labels = tab.tree("tree.drawn.get().map((n) => n.label)")
    assert not set("".join(labels)) & set("\x00\x1b\u202e\u202c")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_outline_stands_out_from_the_page(grow: Callable[..., Tree], scheme: str) -> None:
    tab = grow("talk", theme=scheme)
    page = tab.tree("tree.colours.background")
    borders = dict(tab.tree("tree.drawn.get().map((n) => [tree.nodes.get(n.id).status, n.color.border])"))
    assert set(borders) == {"accepted", "resampled", "bonus", "rejected", "ignored"}
    for status, border in borders.items():
        assert contrast(border, page) >= 3, f"{status}: {border} on {page}"


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two #rrggbb, as the WCAG defines it."""

    def luminance(colour: str) -> float:
        parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
