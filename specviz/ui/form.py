"""The sidebar: the settings of the next run. A run keeps the settings that it started with.

Every widget has a key and persists for the session, so a wrong value, a run or another page loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from specviz.core.errors import SettingsError
from specviz.core.names import ANY_COMPLETIONS, default_draft, draft_name, parse_draft, parse_target, target_name
from specviz.core.settings import K_MAX, MAX_TOKENS_MAX, RULES, TEMPERATURE_MAX, Settings
from specviz.ui import page
from specviz.ui.catalog import Catalog
from specviz.ui.engine_form import show_engine
from specviz.ui.latency_lab import as_possible, show_latency_lab
from specviz.ui.remote_form import A_SERVER, let_target_follow, show_remote, whole_name
from specviz.ui.session import Visit
from specviz.ui.sliders import fine_slider
from specviz.views import words

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from specviz.host.trial import Tried
    from specviz.setup.catalog import CatalogEntry

_STEPS = (0.05, 0.01, 0.001)
#: The largest whole number that a browser holds exactly.
WHOLE_MAX = 2**53 - 1


def settings_form(
    catalog: Catalog, visit: Visit, defaults: Settings
) -> tuple[dict[str, Any], dict[Tried, DeltaGenerator]]:
    """Draw the sidebar.

    Args:
        catalog: what can be chosen.
        visit: whose keys a remote target may need.
        defaults: first values of the widgets, from the environment and `.env`.

    Returns:
        Field name → value, not yet validated, so that a bad value is an error on Run; and the containers below target
        and draft for their lights and tests.
    """
    with st.sidebar:
        page.heading("Settings")
        let_target_follow()
        target = _model(
            "Target", _targets(catalog), defaults.target, _target_name, "The model whose output you want."
        )  # fmt: skip
        remote: dict[str, Any] = {}
        network: dict[str, Any] = {}
        if parse_target(target).place == "completions":
            remote = show_remote(visit, target, defaults)
            target = whole_name(target, remote["remote_model"])
        below_target = st.container(gap="small")
        _let_draft_follow(target, defaults)
        draft = _model(
            "Draft", catalog.drafts(target), defaults.draft, draft_name, "Proposes the tokens that the target verifies."
        )
        below_draft = st.container(gap="small")
        k = _slider("Drafted per round, K", "k", defaults.k, 1, K_MAX, help="Tokens that the draft proposes per round.")
        temperature = fine_slider(
            "Temperature", "temperature", defaults.temperature, 0.0, TEMPERATURE_MAX, _STEPS,
            help="0 always takes the most probable token.",
        )  # fmt: skip
        max_tokens = st.number_input(
            "Max tokens", 1, MAX_TOKENS_MAX, value=defaults.max_tokens, step=16, key="max_tokens",
            persist_state="session", help="The output budget, never exceeded. A full context ends a run before.",
        )  # fmt: skip
        rule = st.selectbox(
            "Acceptance rule", RULES, index=RULES.index(defaults.rule), key="rule", persist_state="session"
        )
        tau = defaults.tau
        if rule == "threshold":
            tau = fine_slider(
                "Threshold τ", "tau", defaults.tau, 0.05, 1.0, _STEPS,
                help="A draft token is accepted if the target gives it at least this probability.",
            )  # fmt: skip
        st.caption(words.escape_markdown(words.rule_in_words(rule, temperature, tau)))
        with st.expander("More sampling and prompt settings"):
            min_confidence = fine_slider(
                "End a draft early", "min_confidence", defaults.min_confidence or 0.0, 0.0, 0.95, _STEPS,
                help="A draft model ends its block before a token whose chance of being kept, by its own estimate, is "
                "below this. Such tokens are mostly rejected, and verifying them costs time. 0 always drafts K "
                "tokens. The output stays as exact as it is. n-gram lookup alone has no estimate and ignores this.",
            )  # fmt: skip
            top_k = st.number_input(
                "Top-k", min_value=0, value=defaults.top_k, key="top_k", persist_state="session", help="0 is off."
            )
            top_p = st.number_input(
                "Top-p", min(0.01, defaults.top_p), 1.0, step=0.05, value=defaults.top_p, format="%.4g", key="top_p",
                persist_state="session", help="1 is off.",
            )  # fmt: skip
            seed = st.number_input(
                "Seed", min_value=0, max_value=WHOLE_MAX, value=defaults.seed, key="seed", persist_state="session",
                help="The same seed and settings give the same output. 0 is a seed like any other.",
            )  # fmt: skip
            system = st.text_area(
                "System prompt", value=defaults.system, key="system", persist_state="session", height=80,
                placeholder="The chat template's own default",
            )  # fmt: skip
            raw = st.toggle(
                "Raw prompt", value=defaults.raw, key="raw", persist_state="session",
                help="Send the prompt without the model's chat template. Special tokens in it are read as such.",
            )  # fmt: skip
        if parse_target(target).place != "completions":
            network = show_latency_lab(defaults, k, draft)
        engine = show_engine(defaults)
    return {
        "target": target, "draft": draft, "k": k, "temperature": temperature, "max_tokens": max_tokens, "rule": rule,
        "tau": tau, "top_k": top_k, "top_p": top_p, "seed": seed, "system": system or "", "raw": raw,
        "min_confidence": min_confidence, **engine, **remote, **network,
    }, {"target": below_target, "draft": below_draft}  # fmt: skip


def refuse_what_no_widget_holds(defaults: Settings) -> None:
    """Refuse first values that no widget can hold.

    Raises:
        SettingsError: a whole number is beyond what a browser holds exactly.
    """
    for what, value in (("seed", defaults.seed), ("top-k", defaults.top_k)):
        if value > WHOLE_MAX:
            raise SettingsError(f"On this page the {what} is at most {WHOLE_MAX}, not {value}.")


def as_typed(catalog: Catalog, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The present values of the fields: a click on Run may bring one that was typed after the form was drawn."""
    now = {name: st.session_state.get(name, value) for name, value in fields.items()}
    target = _meant(now["target"] or fields["target"], _targets(catalog), _target_name)
    target = whole_name(target, now.get("remote_model") or "")
    draft = _meant(now["draft"] or fields["draft"], catalog.drafts(target), draft_name)
    draft = _following(draft, fields["target"], target)
    return now | {"target": target, "draft": draft, "system": now["system"] or ""} | as_possible(now, target)


def _targets(catalog: Catalog) -> list[CatalogEntry]:
    """The targets of the catalog, and an entry for any server."""
    known = catalog.targets()
    return known if any(choice.name == ANY_COMPLETIONS for choice in known) else [*known, A_SERVER]


def _let_draft_follow(target: str, defaults: Settings) -> None:
    """Change the draft to the default of a new target, unless the user has chosen a draft."""
    before = st.session_state.get("draft_stands_for", defaults.target)
    st.session_state["draft_stands_for"] = target
    if "draft" in st.session_state:
        draft = st.session_state["draft"]
        if (following := _following(draft, before, target)) != draft:
            st.session_state["draft"] = following


def _following(draft: str, before: str, target: str) -> str:
    """The draft after a change of target: the default of the old target becomes that of the new one."""
    return default_draft(target) if target != before and draft == default_draft(before) else draft


def _meant(typed: str, choices: Sequence[CatalogEntry], bare: Callable[[str], str]) -> str:
    """The model that a text means: a title in any case, or a name; `bare` completes a name without a prefix."""
    text = typed.strip()
    by_title = {c.title.casefold(): c.name for c in choices}
    return by_title.get(text.casefold()) or bare(text)


def _target_name(text: str) -> str:
    return ANY_COMPLETIONS if parse_target(text).kind == "openai" and ":" not in text else target_name(text)


def _slider(label: str, key: str, value: int, low: int, high: int, help: str) -> int:
    """A whole-number slider; a default outside its range, from the environment, widens it."""
    low, high = min(low, value), max(high, value)
    return int(st.slider(label, low, high, value=value, key=key, persist_state="session", help=help))


def _model(label: str, choices: Sequence[CatalogEntry], default: str, bare: Callable[[str], str], help: str) -> str:
    """A list of models by title, which takes any other name too; shows below what the choice means."""
    by_name = {c.name: c for c in choices}
    default = _meant(default, choices, bare)
    names = list(by_name) if default in by_name else [default, *by_name]
    key = label.lower()
    if st.session_state.get(key) not in (None, *names):
        names.append(st.session_state[key])
    # Streamlit logs a warning about an index beside a value that the page has put into the state.
    index = 0 if key in st.session_state else names.index(default)
    chosen = st.selectbox(
        label, names, index=index, key=key, persist_state="session", accept_new_options=True, help=help,
        # Labels never change: the browser sends the label back, and an unknown one would be a new name.
        format_func=lambda name: by_name[name].title if name in by_name else name,
    )  # fmt: skip
    name = _meant(str(chosen or default), choices, bare)
    about = by_name.get(name) or (by_name.get(ANY_COMPLETIONS) if parse_target(name).place == "completions" else None)
    st.caption(_about(about) if about else "Not in the list: it is looked up when you press Run.")
    return name


def _is_a_model(name: str) -> bool:
    return parse_target(name).kind == "local" or parse_draft(name).kind == "model"


def _about(choice: CatalogEntry) -> str:
    here = "On this machine." if choice.available and _is_a_model(choice.name) else ""
    hurdle = f":orange[{words.escape_markdown(choice.reason)}]" if choice.reason else ""
    return "  \n".join(line for line in (words.escape_markdown(choice.detail), hurdle or here) if line)
