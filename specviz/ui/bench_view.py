"""A benchmark, during and after the measurement: progress, verdict, table, charts, downloads."""

from __future__ import annotations

import streamlit as st

from specviz.bench.sweep.alarms import alarms
from specviz.bench.sweep.export import to_csv, to_parquet
from specviz.bench.sweep.job import BenchJob
from specviz.bench.sweep.recommendation import verdict
from specviz.bench.sweep.results import Bench, dumps
from specviz.bench.sweep.rows import BenchRow, rows_of
from specviz.bench.sweep.sweep import seconds_left
from specviz.ui import page
from specviz.ui.parts.charts import show_row
from specviz.ui.parts.status import show_status
from specviz.ui.session import Visit
from specviz.views import words
from specviz.views.benchmark.charts import charts_of
from specviz.views.benchmark.table import duration, records

POLL_S = 1.0
#: Two charts beside each other where there is room.
_STYLE = """<style>
.st-key-bench_results .charts { grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); }
</style>"""


def show_bench(visit: Visit) -> None:
    """Draw the benchmark on the page, and draw it again while it is measured."""
    job = visit.bench if visit.opened is None else None
    live = job is not None and job.live

    st.html(_STYLE)
    page.heading("Results")

    @st.fragment(run_every=POLL_S if live else None)
    def fragment() -> None:
        if live and job is not None and not job.live:
            st.rerun()  # the whole page once more: buttons and downloads change at the end
        bench = job.snapshot() if job is not None else visit.opened
        assert bench is not None
        show_status(_announcement(job, bench) if job is not None else "")
        # Each part whose number of elements may change is in a container that always exists: one more element above
        # table and charts would mount them again.
        with st.container():
            if job is not None:
                _progress(job, bench)
        _results(bench, job.id if job is not None else f"opened {bench.started_at}")

    with st.container():
        fragment()
    if not live and (found := visit.opened or (job.bench if job else None)) is not None and found.trials:
        _downloads(found)


def _progress(job: BenchJob, bench: Bench) -> None:
    if job.error is not None:
        page.show_error(words.complaint(job.error))
    if job.unsaved:
        st.warning(words.escape_markdown(f"Not saved: {job.unsaved}"), icon=":material/warning:")
    total = max(1, bench.total)
    share = min(1.0, max(0.0, 1 - bench.missing / total))
    if not job.live:
        left = f"{bench.missing:,} of {bench.total:,} runs are still to be measured." if bench.missing else ""
        done = f"Measured: {len(bench.trials):,} runs in {duration(bench.seconds)}."
        (st.warning if bench.missing else st.success)(f"{done} {left}", icon=":material/flag:")
        return
    if job.phase == "queued":
        ahead = job.queue_position
        st.progress(0.0, "Waiting: " + (f"{ahead} runs are ahead." if ahead else "it starts in a moment."))
        return
    waiting = job.progress
    what = words.escape_markdown(waiting.what if waiting else "Starting")
    if job.paused:
        what = (
            "Paused: Resume goes on" if not waiting or waiting.what == "Paused" else f"Pausing after this run: {what}"
        )
    st.progress(share, f"{what} · {len(bench.trials):,} of {bench.total:,} runs · {duration(seconds_left(bench))} left")


def _announcement(job: BenchJob, bench: Bench) -> str:
    """What a screen reader reads out: that it began, pauses, and how it ended; the page has the details."""
    if job.live:
        return "Paused." if job.paused else f"Measuring {bench.total:,} runs."
    if job.error is not None:
        return f"The benchmark ended with an error. {len(bench.trials):,} runs are measured."
    left = f" {bench.missing:,} are still to be measured." if bench.missing else ""
    return f"The benchmark has ended: {len(bench.trials):,} runs are measured.{left}"


def _rows(bench: Bench, name: str) -> list[BenchRow]:
    """Computed once per finished run: intervals take time from models on the same cores."""
    key = (name, len(bench.trials), len(bench.failures))
    known = st.session_state.get("bench_rows")
    if known is None or known[0] != key:
        known = st.session_state["bench_rows"] = (key, rows_of(bench))
    rows: list[BenchRow] = known[1]
    return rows


def _results(bench: Bench, name: str) -> None:
    rows = _rows(bench, name)
    with st.container():
        temperature, rule = _chosen(bench)
        if bench.trials:
            _say(rows, temperature, bench.missing)
        _complaints(bench)
    page.heading("Table")
    st.dataframe(
        records(rows, bench.plan.repeats * len(bench.prompts)), hide_index=True, key="bench_table",
        column_config={"Draft": st.column_config.TextColumn(width="medium")},
    )  # fmt: skip
    page.heading("Charts")
    with st.container(key="bench_results"):
        show_row("bench_charts", "Charts of the benchmark", charts_of(rows, temperature, rule))


def _chosen(bench: Bench) -> tuple[float, str]:
    """The temperature and rule of verdict and charts, where the plan has several."""
    temperatures, rules = bench.plan.temperatures, bench.plan.rules
    temperature, rule = temperatures[0], rules[0]
    if len(temperatures) > 1 or len(rules) > 1:
        with st.container(horizontal=True):
            if len(temperatures) > 1:
                temperature = st.segmented_control(
                    "Temperature", temperatures, default=temperature, key="bench_shown_temperature", required=True
                )  # fmt: skip
            if len(rules) > 1:
                rule = st.segmented_control("Rule", rules, default=rule, key="bench_shown_rule", required=True)
    return temperature, rule


def _say(rows: list[BenchRow], temperature: float, missing: int) -> None:
    found = verdict(rows, temperature)
    text = f"**{words.escape_markdown(found.words)}**" + (" Preliminary: not all runs are measured." if missing else "")
    match found.speculate:
        case True:
            st.success(text, icon=":material/speed:")
        case False:
            st.error(text, icon=":material/block:")
        case None:
            st.info(text, icon=":material/help:")


def _complaints(bench: Bench) -> None:
    cells = bench.plan.cells()
    for failure in bench.failures:
        st.warning(
            words.escape_markdown(f"{cells[failure.cell].name} was not measured: {failure.message} {failure.remedy}"),
            icon=":material/warning:",
        )
    for alarm in alarms(bench):
        st.warning(words.escape_markdown(alarm), icon=":material/warning:")
    if bench.left_out:
        listed = "; ".join(f"{bench.prompts[i].id}: {why}" for i, why in bench.left_out.items())
        st.warning(words.escape_markdown(f"Prompts that were left out: {listed}"), icon=":material/warning:")


def _downloads(bench: Bench) -> None:
    rows = rows_of(bench)
    page.heading("Downloads")
    stem = f"specviz-bench-{round(bench.started_at)}"
    files: tuple[tuple[str, str, str, str | bytes], ...] = (
        ("JSON", "json", "application/json", dumps(bench, {"rows": [row.to_json() for row in rows]})),
        ("CSV", "csv", "text/csv", to_csv(rows)),
        ("Parquet", "parquet", "application/vnd.apache.parquet", to_parquet(rows)),
    )
    with st.container(horizontal=True, gap="xsmall"):
        for label, ending, mime, data in files:
            # Streamlit's own button is enough here: this part of the page does not poll.
            st.download_button(
                label, data, f"{stem}.{ending}", mime, on_click="ignore", icon=":material/download:",
                key=f"bench_download_{ending}",
            )  # fmt: skip
