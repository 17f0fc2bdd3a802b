"""Saved benchmarks: open one, go on with it, compare it with the one on the page."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from specviz.bench.sweep.compare import Change, Comparison, compare
from specviz.bench.sweep.results import Bench, loads, read
from specviz.core.errors import SpecvizError
from specviz.ui import page, session
from specviz.ui.bench_controls import new_path, start
from specviz.ui.catalog import Catalog
from specviz.ui.session import Visit
from specviz.views import words

_MOST = 50


def show_saved(catalog: Catalog, visit: Visit) -> None:
    """Draw the list, and the comparison with the benchmark on the page."""
    files = saved_files(catalog.benchmark_folder())
    page.heading("Saved benchmarks")
    with st.expander("Saved benchmarks: open, go on, compare", expanded=visit.opened is not None):
        st.caption("This page saves results on this machine after each run; `specviz bench` writes the same files.")
        name = st.selectbox(
            "Saved", list(files), index=None, key="bench_saved", placeholder="choose one, or upload a file",
            format_func=lambda n: title_of(files[n]) if n in files else n,
        )  # fmt: skip
        uploaded = st.file_uploader("A benchmark file", ["json"], key="bench_upload")
        try:
            chosen, title = _chosen(files, name, uploaded)
        except SpecvizError as error:
            page.show_error(words.complaint(error))
            return
        if chosen is None:
            return
        path = files.get(name or "") if uploaded is None else None
        with st.container(horizontal=True, gap="xsmall"):
            st.button("Open", on_click=_open, args=(chosen,), icon=":material/folder_open:")
            live = visit.bench is not None and visit.bench.live
            st.button(
                "Go on", on_click=_go_on, args=(catalog, chosen, path), icon=":material/resume:",
                disabled=live or not (chosen.missing or chosen.failures),
                help="Measures the missing runs, and repeats the failed ones.",
            )  # fmt: skip
            if visit.opened is not None and visit.bench is not None:
                st.button("Back to the newest", on_click=_close)
        if chosen.missing:
            st.caption(f"{chosen.missing:,} of its {chosen.total:,} runs are still to be measured.")
        shown = visit.opened or (visit.bench.snapshot() if visit.bench else None)
        if shown is not None and shown.trials and shown != chosen:
            _comparison(compare(chosen, shown), title)
    if refusal := visit.refusal({"bench": "saved"}, of="saved"):
        page.show_error(refusal)


def saved_files(folder: Path) -> dict[str, Path]:
    """The saved files by name, the newest first."""
    try:
        paths = sorted(folder.glob("*.json"), key=lambda p: p.stat().st_mtime, reverse=True)
    except OSError:
        return {}
    return {path.name: path for path in paths[:_MOST]}


@st.cache_data(show_spinner=False, max_entries=_MOST)
def _about(path: str) -> str:
    """The constant part of its label: the browser sends the label back, and a changed one would be no choice."""
    try:
        bench = read(Path(path))
    except SpecvizError:
        return "cannot be read"
    plan = bench.plan
    drafts = words.cut(", ".join(plan.drafts), 60)
    return f"{plan.settings.target}: {drafts}; K {', '.join(map(str, plan.ks))}; {len(bench.prompts)} prompts"


def title_of(path: Path) -> str:
    """Its label in a list."""
    try:
        return words.visible(f"{path.stem} · {_about(str(path))}")
    except OSError:
        return path.stem


def _chosen(files: dict[str, Path], name: str | None, uploaded: object) -> tuple[Bench | None, str]:
    if uploaded is not None:
        name = str(uploaded.name)  # type: ignore[attr-defined]
        return loads(uploaded.getvalue(), name), name  # type: ignore[attr-defined]
    return (read(files[name]), name) if name in files else (None, "")


def _open(bench: Bench) -> None:
    session.visit().opened = bench


def _close() -> None:
    session.visit().opened = None


def _go_on(catalog: Catalog, bench: Bench, path: Path | None) -> None:
    visit = session.visit()
    with visit.refusing(lambda: {"bench": "saved"}, of="saved"):
        start(catalog, bench, path or new_path(catalog.benchmark_folder()))


def _comparison(found: Comparison, title: str) -> None:
    page.heading(f"Before: {title}; then: the benchmark above", 3, seen=True)
    for difference in found.differences:
        st.caption(words.escape_markdown(f"Not the same: {difference}"))
    if not found.pairings:
        st.info("The two have no cell in common.")
        return
    st.dataframe(
        [
            {
                "Cell": words.visible(p.cell.name),
                **_columns("Speed-up", p.speedup),
                **_columns("Tokens/round", p.tokens_per_round),
                **_columns("Acceptance", p.acceptance),
            }
            for p in found.pairings
        ],
        hide_index=True,
        key="bench_compared",
    )  # fmt: skip


def _columns(name: str, change: Change) -> dict[str, str]:
    beyond = words.NOT_KNOWN if change.beyond_chance is None else "yes" if change.beyond_chance else "no"
    return {
        name: words.number(change.before, 3),
        f"{name}, then": words.number(change.after, 3),
        f"{name} beyond chance": beyond,
    }
