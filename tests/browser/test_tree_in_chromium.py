"""The token tree in Chromium: what it shows, hides, folds, and how a person finds the way in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specviz.views import words
from specviz.views.tree import NODE_FACTS, TreeView
from tests.ui.fakes import HOSTILE, SCENES

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


def run(open_tab: Callable, url: str, scene: str, more_than: int, **context: Any) -> Any:
    tab = open_tab(url, **context)
    tab.run(scene)
    tab.wait_for_nodes(more_than)
    return tab


def finished(open_tab: Callable, url: str, scene: str, **context: Any) -> Any:
    tab = run(open_tab, url, scene, len(SCENES[scene]().state().nodes) - 1, **context)
    tab.page.get_by_text("Finished:").wait_for()
    return tab


def holds(tab: Any, condition: str, timeout_s: float = 30) -> None:
    """Wait until something is true of the tree."""
    box = tab.page.locator(".network").element_handle()
    tab.page.wait_for_function(
        f"(box) => {{ const tree = box.__specviz; return {condition}; }}", arg=box, timeout=1000 * timeout_s
    )


def click_node(tab: Any, node: int | str) -> None:
    """Click what stands on the canvas under this id; it must be in view."""
    at = tab.tree(f"tree.network.canvasToDOM(tree.network.getPosition({node!r}))")
    box = tab.page.locator(".network canvas").bounding_box()
    assert 0 < at["x"] < box["width"] and 0 < at["y"] < box["height"], f"{node} is out of view: {at}"
    tab.page.mouse.click(box["x"] + at["x"], box["y"] + at["y"])


def look_at(tab: Any, x: float, y: float = 60, scale: float = 0.8) -> None:
    tab.tree(f"(tree.follow = false, tree.network.moveTo({{position: {{x: {x}, y: {y}}}, scale: {scale}}}), 0)")
    tab.page.locator(".network").evaluate("() => new Promise((done) => requestAnimationFrame(() => done(0)))")


def chosen(tab: Any) -> int | None:
    return tab.page.evaluate("__specviz.chosen.id")


def no_overlap(tab: Any) -> None:
    spans = tab.tree(SPANS)
    for (one, _, end), (other, start, _) in zip(spans, spans[1:], strict=False):
        assert end <= start, f"{one} reaches into {other}"


def test_every_node_is_as_the_server_knows_it_and_old_rounds_are_chips(open_tab: Callable, scripted_url: str) -> None:
    tab = finished(open_tab, scripted_url, "large")
    state = SCENES["large"]().state()
    rows = [dict(zip(NODE_FACTS, row, strict=True)) for row in TreeView().delta(state, "r", 0)["items"]]
    want = [[n["id"], n["parent"], n["round"], n["index"], n["lane"], n["status"]] for n in rows]
    got = tab.tree("tree.nodes.get().map((n) => [n.id, n.parent, n.round, n.index, n.lane, n.status])")
    assert sorted(got) == sorted(want)
    labels = dict(tab.tree("tree.nodes.get().map((n) => [n.id, n.label])"))
    assert labels == {n.id: words.label(n.token) for n in state.nodes}
    assert tab.tree("[...tree.memory.folded].length") == 16, "360 rounds in blocks of 20, the newest 40 open"
    assert tab.tree("tree.drawn.length") < 300
    chip = tab.tree("tree.drawn.get('chip:0').label")
    assert chip.startswith("rounds 1–20\n60 tokens · ") and chip.endswith(" % accepted")
    no_overlap(tab)


def test_a_chip_opens_where_it_stands_and_folds_again(open_tab: Callable, scripted_url: str) -> None:
    tab = finished(open_tab, scripted_url, "large")
    before = tab.tree("Object.fromEntries(tree.drawn.get().map((n) => [n.id, [n.x, n.y]]))")
    for block in (15, 7, 0):
        look_at(tab, tab.tree(f"tree.chips.get({block})"), 0)
        edge = f"tree.network.canvasToDOM({{x: tree.chips.get({block}) + 116, y: 0}}).x"
        right = tab.tree(edge)
        click_node(tab, f"chip:{block}")
        holds(tab, f"!tree.memory.folded.has({block})")
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


def test_nothing_folds_under_a_person_who_has_moved_away(open_tab: Callable, scripted_url: str) -> None:
    tab = run(open_tab, scripted_url, "endless", 20)
    box = tab.page.locator(".network canvas").bounding_box()
    x, y = box["x"] + 200, box["y"] + box["height"] - 30
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x + 60, y - 20, steps=4)
    tab.page.mouse.up()
    view = tab.tree(VIEW)
    holds(tab, "tree.rounds.length > 64", timeout_s=120)
    assert tab.tree(VIEW) == view
    assert tab.tree("tree.memory.folded.size") == 0
    tab.button("Follow").click()
    holds(tab, "tree.memory.folded.size === 1")
    no_overlap(tab)


def test_the_legend_is_a_filter(open_tab: Callable, scripted_url: str) -> None:
    tab = finished(open_tab, scripted_url, "talk")
    entry = tab.page.locator(".legend").get_by_role("button", name="rejected")
    count = entry.locator(".count").text_content()
    shown = "tree.drawn.get().filter((n) => tree.nodes.get(n.id).status === 'rejected').length"
    assert tab.tree(shown) == int(count) > 0
    entry.click()
    assert entry.get_attribute("aria-pressed") == "false"
    assert "line-through" in entry.locator(".name").evaluate("(e) => getComputedStyle(e).textDecorationLine")
    assert tab.tree(shown) == 0
    assert tab.tree("tree.edges.get().filter((e) => tree.nodes.get(e.id).status === 'rejected').length") == 0
    assert entry.locator(".count").text_content() == count
    tab.page.locator(".legend").get_by_role("button", name="accepted").click()
    assert tab.tree("tree.drawn.length") < tab.nodes() - int(count)
    tab.page.locator(".legend").get_by_role("button", name="all", exact=True).click()
    assert tab.tree("tree.drawn.length") == tab.nodes()
    assert tab.tree("tree.edges.length") == tab.nodes() - 1
    assert not tab.page.locator(".legend").get_by_role("button", name="all", exact=True).is_visible()


def test_what_is_put_on_the_canvas_is_in_the_next_drawing(open_tab: Callable, scripted_url: str) -> None:
    """vis-network leaves out what it has measured nowhere near the view."""
    tab = finished(open_tab, scripted_url, "talk")
    measured = "tree.drawn.get().every((n) => Math.abs(tree.network.getBoundingBox(n.id).left - n.x) < 60)"
    assert tab.tree(f"(tree.tools.legend.entries[0].entry.click(), tree.tools.legend.all.click(), {measured})")


def test_new_tokens_of_a_hidden_status_stay_hidden(open_tab: Callable, scripted_url: str) -> None:
    tab = run(open_tab, scripted_url, "endless", 10)
    tab.page.locator(".legend").get_by_role("button", name="ignored").click()
    tab.wait_for_nodes(tab.nodes() + 60)
    assert tab.tree("tree.nodes.get().filter((n) => n.status === 'ignored').length") > 0
    assert tab.tree("tree.drawn.get().filter((n) => tree.nodes.get(n.id)?.status === 'ignored').length") == 0


def test_one_can_go_to_a_round_by_number_and_from_there_to_its_neighbours(
    open_tab: Callable, scripted_url: str
) -> None:
    tab = finished(open_tab, scripted_url, "large")
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


def test_follow_says_whether_it_is_on(open_tab: Callable, scripted_url: str) -> None:
    tab = run(open_tab, scripted_url, "endless", 20)
    follow = tab.button("Follow")
    assert follow.get_attribute("aria-pressed") == "true"
    tab.button("Whole tree").click()
    assert follow.get_attribute("aria-pressed") == "false"
    view = tab.tree(VIEW)
    tab.wait_for_nodes(tab.nodes() + 20)
    assert tab.tree(VIEW) == view
    follow.click()
    assert follow.get_attribute("aria-pressed") == "true" and tab.tree("tree.follow") is True
    x = tab.tree("tree.network.getViewPosition().x")
    tab.wait_for_nodes(tab.nodes() + 20)
    assert tab.tree("tree.network.getViewPosition().x") > x
    follow.click()
    assert follow.get_attribute("aria-pressed") == "false"


def test_the_whole_tree_is_in_view_on_demand(open_tab: Callable, scripted_url: str) -> None:
    tab = finished(open_tab, scripted_url, "large")
    tab.button("Whole tree").click()
    ends = tab.tree(
        "[tree.network.canvasToDOM({x: tree.chips.get(0) - 98, y: 0}).x,"
        " tree.network.canvasToDOM({x: tree.endX, y: 0}).x, tree.box.clientWidth]"
    )
    assert 0 <= ends[0] < 0.1 * ends[2] and 0.9 * ends[2] < ends[1] <= ends[2]


def test_a_node_is_chosen_by_click_and_by_the_text(open_tab: Callable, scripted_url: str) -> None:
    tab = finished(open_tab, scripted_url, "talk")
    node = tab.tree("tree.nodes.get().filter((n) => n.status === 'rejected').at(-1).id")
    view = tab.tree(VIEW)
    click_node(tab, node)
    assert chosen(tab) == node and tab.tree("tree.network.getSelectedNodes()") == [node]
    assert tab.tree(VIEW) == view and tab.tree("tree.follow") is True, "it is in view: nothing moves"
    tab.page.locator(".text .token").nth(3).click()
    holds(tab, "__specviz.chosen.id !== null && tree.network.getSelectedNodes()[0] === __specviz.chosen.id")
    first = chosen(tab)
    assert first != node
    assert tab.tree("tree.follow") is False, "the tree has gone where the text was clicked"
    at = tab.tree(f"tree.network.canvasToDOM(tree.network.getPosition({first}))")
    assert 0 < at["x"] < tab.tree("tree.box.clientWidth")
    box = tab.page.locator(".network canvas").bounding_box()
    tab.page.mouse.click(box["x"] + 20, box["y"] + box["height"] - 8)
    assert chosen(tab) is None and tab.tree("tree.network.getSelectedNodes()") == []


def test_a_choice_elsewhere_opens_the_rounds_that_hide_it(open_tab: Callable, scripted_url: str) -> None:
    tab = finished(open_tab, scripted_url, "large")
    tab.page.locator(".text .token").nth(30).click()
    holds(tab, "!tree.memory.folded.has(0)")
    holds(tab, "tree.network.getSelectedNodes()[0] === __specviz.chosen.id")
    no_overlap(tab)


ALTERNATIVES = [
    {"token": token, "p": 0.5 / (i + 1), "q": None if i == 2 else 0.1, "residual": 0.0}
    for i, token in enumerate(["·the", *(words.label(t) for t in HOSTILE if isinstance(t, str))])
]


def test_alternatives_are_drawn_on_demand_and_are_no_nodes(open_tab: Callable, scripted_url: str) -> None:
    tab = finished(open_tab, scripted_url, "talk")
    node = tab.tree("tree.nodes.get().filter((n) => n.status === 'accepted').at(-1).id")
    ghosts = "tree.drawn.get({ filter: (n) => String(n.id).startsWith('alt:') })"
    tell = "(detail) => document.dispatchEvent(new CustomEvent('specviz-detail', { detail }))"
    detail = {"run": tab.tree("tree.run"), "id": node, "candidates": ALTERNATIVES}
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


def test_the_tree_can_be_walked_by_keyboard(open_tab: Callable, scripted_url: str) -> None:
    tab = finished(open_tab, scripted_url, "large")
    nodes = {n["id"]: n for n in tab.tree("tree.nodes.get().map(({title, ...n}) => n)")}
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


def test_the_focused_tree_has_a_ring_and_is_one_tab_stop(open_tab: Callable, scripted_url: str) -> None:
    tab = finished(open_tab, scripted_url, "talk")
    tab.button("Follow").focus()
    tab.page.keyboard.press("Tab")
    box = tab.page.locator(".network:focus")
    assert box.count() == 1
    assert box.evaluate("(b) => getComputedStyle(b).outlineStyle") == "solid"
    tab.page.keyboard.press("Tab")
    assert tab.page.locator(".legend button:focus").count() == 1


#: What a page switch does: the component is made anew, with nothing, and gets everything sent again.
REMOUNT = """(() => {
  const { node, round } = __specviz.treeLayout;
  const data = {
    run: tree.run, from: 0, to: tree.have, counts: tree.counts, selected: null,
    items: tree.nodes.get().map((n) => node.map((name) => n[name])),
    rounds: tree.rounds.map((r) => round.map((name) => r[name])),
  };
  const host = document.createElement("div");
  host.style.width = tree.box.clientWidth + 2 + "px";
  for (const name of ["tools", "network", "legend", "hint"]) {
    const part = document.createElement("div");
    part.className = name;
    if (name === "network") part.style.height = tree.box.clientHeight + "px";
    host.append(part);
  }
  document.body.append(host);
  const end = __specviz.tree({ parentElement: host, data, setStateValue: () => {} });
  const again = host.querySelector(".network").__specviz;
  const { x, y } = again.network.getViewPosition();
  const said = {
    view: [again.network.getScale(), { x: Math.round(x), y: Math.round(y) }], follow: again.follow,
    drawn: again.drawn.getIds().map(String).sort(), nodes: again.nodes.length,
    pressed: [...host.querySelectorAll(".entry")].map((entry) => entry.ariaPressed),
  };
  host.remove();
  end();
  return said;
})()"""


def test_a_new_mount_finds_everything_as_it_was_left(open_tab: Callable, scripted_url: str) -> None:
    tab = finished(open_tab, scripted_url, "large")
    tab.page.locator(".legend").get_by_role("button", name="ignored").click()
    look_at(tab, tab.tree("tree.chips.get(9)"), 0)
    click_node(tab, "chip:9")
    holds(tab, "!tree.memory.folded.has(9)")
    tab.page.mouse.wheel(0, -200)
    look_at(tab, tab.tree("tree.rounds[190].from * 78"), 40, 0.7)
    drawn = tab.tree("tree.drawn.getIds().map(String).sort()")
    scale, at = tab.tree(VIEW)
    said = tab.tree(REMOUNT)
    assert said["drawn"] == drawn and said["nodes"] == tab.nodes()
    assert said["view"] == [scale, {"x": round(at["x"]), "y": round(at["y"])}]
    assert said["follow"] is False
    assert said["pressed"][4] == "false"


def test_a_page_run_leaves_the_view_alone(open_tab: Callable, scripted_url: str) -> None:
    tab = run(open_tab, scripted_url, "endless", 60)
    tab.button("Whole tree").click()
    view = tab.tree(VIEW)
    tab.page.get_by_role("slider", name="Drafted per round, K").press("ArrowRight")
    tab.wait_for_nodes(tab.nodes() + 40)
    assert tab.tree(VIEW) == view


def test_hostile_labels_stay_within_their_columns(open_tab: Callable, scripted_url: str) -> None:
    tab = finished(open_tab, scripted_url, "hostile")
    widest = tab.tree(
        "Math.max(...tree.drawn.get().filter((n) => typeof n.id === 'number')"
        ".map((n) => tree.pen.measureText(n.label).width))"
    )
    assert 0 < widest <= 78
    labels = tab.tree("tree.drawn.get().map((n) => n.label)")
    assert not set("".join(labels)) & set("\x00\x1b\u202e\u202c")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_outline_stands_out_from_the_page(open_tab: Callable, scripted_url: str, scheme: str) -> None:
    tab = finished(open_tab, scripted_url, "talk", color_scheme=scheme)
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
