"""The sidebar of the Benchmark page: target, drafts, K, temperatures, rules, prompts."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from specviz.bench.suites.loaders import KINDS, Loaded, load
from specviz.bench.suites.suite import Suite, builtin
from specviz.bench.sweep.plan import PLAIN, SweepPlan
from specviz.bench.sweep.sweep import baselines_of
from specviz.core.errors import SettingsError, SpecvizError
from specviz.core.names import ANY_COMPLETIONS, draft_name
from specviz.core.settings import RTT_MAX_MS, RULES, Settings
from specviz.setup.environment import environment
from specviz.ui import page
from specviz.ui.catalog import Catalog
from specviz.views import words

KS = (1, 2, 3, 4, 6, 8, 12, 16)
TEMPERATURES = (0.0, 0.3, 0.7, 1.0)
_BUILTIN, _FILE = "Built-in", "My own file"
_BAD_ROWS_SHOWN = 20
_SUITE_HELP = (
    "GSM8K, HumanEval (also .gz), Spec-Bench's question.jsonl, or any JSONL, CSV or Parquet with a column of prompts. "
    "It stays on this machine."
)


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """The benchmark that the form describes.

    Attributes:
        plan, suite: None where something is wrong; `complaint` says what, as Markdown.
    """

    plan: SweepPlan | None
    suite: Suite | None
    complaint: str = ""


def bench_form(catalog: Catalog) -> BenchRequest:
    """Draw the sidebar."""
    with st.sidebar:
        page.heading("What to measure")
        try:
            defaults = Settings.resolve(environment=environment())
        except SpecvizError:
            defaults = Settings()  # the Live page shows the error for each variable
        try:
            plan = _plan(catalog, defaults)
            suite, complaint = _suite()
        except SpecvizError as error:
            return BenchRequest(None, None, words.complaint(error))
    return BenchRequest(replace(plan, suite=suite.name) if suite else plan, suite, complaint)


def _plan(catalog: Catalog, defaults: Settings) -> SweepPlan:
    targets = {c.name: c.title for c in catalog.targets() if c.name != ANY_COMPLETIONS}
    names = list(dict.fromkeys([defaults.target, *targets]))
    target = st.selectbox(
        "Target", names, key="bench_target", persist_state="session", format_func=lambda n: targets.get(n, n),
        accept_new_options=True, help="The model whose output you want. A server: openai:MODEL, with its address in "
        "TARGET_BASE_URL.",
    )  # fmt: skip
    target = str(target or defaults.target)
    drafts = _drafts(catalog, target, defaults)
    ks = _several("Drafted per round, K", "bench_ks", KS, (1, 2, 4, 8))
    temperatures = _several("Temperatures", "bench_temperatures", TEMPERATURES, (0.0,))
    rules = _several("Acceptance rules", "bench_rules", RULES, ("probabilistic",))
    max_tokens = st.slider("Max tokens", 16, 256, 48, 16, key="bench_max_tokens", persist_state="session")
    with st.expander("Repeats, seed, network"):
        repeats = st.number_input(
            "Repeats", 1, 20, 1, key="bench_repeats", persist_state="session", help="Runs of each cell on each prompt."
        )
        warm_up = st.number_input(
            "Warm-up tokens", 0, 64, 8, key="bench_warm_up", persist_state="session",
            help="Tokens that each cell decodes before its first measured run.",
        )  # fmt: skip
        seed = st.number_input("Seed", 0, 2**31 - 1, defaults.seed, key="bench_seed", persist_state="session")
        rtt = st.number_input(
            "Simulated round trip, ms", 0, int(RTT_MAX_MS), 0, key="bench_rtt", persist_state="session",
            help="Simulates a network in front of a target on this machine, as the latency lab of the Live page does.",
        )  # fmt: skip
    settings = Settings(
        target=target, draft=PLAIN, max_tokens=int(max_tokens), seed=int(seed), simulated_rtt_ms=float(rtt),
        base_url=defaults.base_url, remote_model=defaults.remote_model, tokenizer=defaults.tokenizer,
        verification=defaults.verification, top_k=defaults.top_k, top_p=defaults.top_p, tau=defaults.tau,
        system=defaults.system,
    )  # fmt: skip
    return SweepPlan(
        settings, tuple(drafts), tuple(sorted(ks)), tuple(sorted(temperatures)), tuple(rules),
        baselines=baselines_of(settings), repeats=int(repeats), warm_up=int(warm_up),
    )  # fmt: skip


def _drafts(catalog: Catalog, target: str, defaults: Settings) -> list[str]:
    choices = {c.name: c for c in catalog.drafts(target) if c.name != PLAIN}
    fitting = [name for name, c in choices.items() if c.available]
    chosen = st.multiselect(
        "Drafts", list(choices), default=fitting[:2], key=f"bench_drafts_{target}", persist_state="session",
        accept_new_options=True, format_func=lambda n: choices[n].title if n in choices else n,
        help="Plain decoding is always measured too.",
    )  # fmt: skip
    for name in chosen:
        if name in choices and choices[name].reason:
            st.caption(f":orange[{words.escape_markdown(f'{choices[name].title}: {choices[name].reason}')}]")
    if not chosen:
        raise SettingsError("No draft is chosen.", "Choose at least one to compare with plain decoding.")
    return [draft_name(name) for name in chosen]


def _several(label: str, key: str, choices: Sequence[Any], default: Sequence[Any]) -> list[Any]:
    chosen = st.multiselect(label, choices, default=list(default), key=key, persist_state="session")
    if not chosen:
        raise SettingsError(f"{label}: nothing is chosen.", "Choose at least one.")
    return list(chosen)


def _suite() -> tuple[Suite | None, str]:
    """The chosen prompts, or an error where there are none."""
    source = st.radio("Prompts", (_BUILTIN, _FILE), key="bench_source", persist_state="session", horizontal=True)
    if source == _BUILTIN:
        suite = builtin()
        domains = st.multiselect(
            "Domains", suite.domains, default=list(suite.domains), key="bench_domains", persist_state="session"
        )
        kept = Suite(suite.name, tuple(p for p in suite.prompts if p.domain in domains))
    else:
        uploaded = _uploaded()
        if uploaded is None:
            return None, "Choose a file of prompts at the left."
        kept = uploaded
    per_domain = st.slider(
        "Prompts per domain", 1, 8, 2, key="bench_per_domain", persist_state="session",
        help="More prompts make the intervals narrower.",
    )  # fmt: skip
    chosen = kept.first(per_domain=int(per_domain))
    return (chosen, "") if chosen.prompts else (None, "No prompt is left: choose at least one domain.")


def _uploaded() -> Suite | None:
    file = st.file_uploader(
        "File of prompts", ["jsonl", "json", "csv", "tsv", "gz", "parquet"], key="bench_file", help=_SUITE_HELP
    )
    detected = "detected"
    kind = st.selectbox("Format", (detected, *KINDS), key="bench_kind", persist_state="session")
    column = st.text_input("Column of the prompts", key="bench_column", persist_state="session", placeholder=detected)
    encoding = st.text_input("Encoding", key="bench_encoding", persist_state="session", placeholder="UTF-8")
    if file is None:
        return None
    loaded = _read(
        file.file_id, file.name, file.getvalue(), None if kind == detected else kind, column or None, encoding or None
    )
    if loaded.bad:
        with st.expander(f":orange[{len(loaded.bad):,} rows cannot be used]"):
            for row in loaded.bad[:_BAD_ROWS_SHOWN]:
                st.caption(f"{loaded.unit.capitalize()} {row.line}: {words.escape_markdown(row.why)}")
        if not st.checkbox("Leave them out", key="bench_skip_bad", persist_state="session"):
            raise SettingsError(
                f"{len(loaded.bad):,} rows of the file cannot be used.", "Correct them, or tick “Leave them out”."
            )
    return loaded.suite


@st.cache_data(show_spinner="Reading the prompts", max_entries=4)
def _read(file_id: str, name: str, _data: bytes, kind: Any, column: str | None, encoding: str | None) -> Loaded:
    """Prompts of an uploaded file; `file_id` identifies the upload for the cache."""
    return load(io.BytesIO(_data), name, kind=kind, column=column, encoding=encoding, limit=None)


def show_complaint(request: BenchRequest) -> None:
    """Show what is wrong with the form, if anything is."""
    if request.complaint:
        page.show_error(request.complaint)
