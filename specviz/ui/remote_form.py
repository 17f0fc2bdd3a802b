"""The fields of a completions target: address, model, key, tokenizer, way to verify."""

from __future__ import annotations

from typing import Any

import streamlit as st

from specviz.core.address import without_secrets
from specviz.core.connection import connection
from specviz.core.errors import SettingsError, SpecvizError
from specviz.core.names import ANY_COMPLETIONS, completions_name, parse_target
from specviz.core.settings import VERIFICATIONS, Settings
from specviz.setup.catalog import CatalogEntry
from specviz.setup.environment import environment
from specviz.ui import page
from specviz.ui.key_field import show_key_field
from specviz.ui.session import Visit
from specviz.views import words

#: The entry of the list for a server that is not named yet.
A_SERVER = CatalogEntry(
    ANY_COMPLETIONS,
    "A server…",
    "Anything with a completions API: vLLM, SGLang, llama-server, mlx_lm.server, Cerebras and others.",
    False,
    "",
)

_NOT_HERE = (
    "A base URL holds no user, password or query: the key has its own field.",
    "User, password and query were removed from the address. Enter the key in its own field.",
)


def let_target_follow() -> None:
    """Change the target's name after the model's name was changed in its own field."""
    drawn, typed = st.session_state.get("model_drawn"), st.session_state.get("remote_model")
    if drawn and typed is not None and typed != drawn and st.session_state.get("target") == completions_name(drawn):
        st.session_state["target"] = completions_name(typed.strip())


def whole_name(target: str, model: str) -> str:
    """The target's name with its model, where one is known; `model` is the text of the model's field."""
    drawn = st.session_state.get("model_drawn")
    changed = drawn is not None and model != drawn
    parsed = parse_target(target)
    unnamed = not parsed.model or (changed and parsed.model == drawn)
    return completions_name(model.strip()) if parsed.place == "completions" and unnamed else target


def show_remote(visit: Visit, target: str, defaults: Settings) -> dict[str, Any]:
    """Draw the fields of a remote target; returns field name → value, not yet validated."""
    named = parse_target(target).model
    if named and st.session_state.get("remote_model") != named:
        st.session_state["remote_model"] = named
    st.session_state.setdefault("remote_model", defaults.remote_model)
    st.session_state.setdefault("base_url", _known_address(defaults))
    with st.container(border=True):
        base_url = st.text_input(
            "Base URL", key="base_url", persist_state="session", placeholder="http://127.0.0.1:8000/v1",
            on_change=take_secrets_out, help="The address of the completions API; it mostly ends in /v1.",
        )  # fmt: skip
        url = _checked(base_url)
        model = st.text_input(
            "Model", key="remote_model", persist_state="session", placeholder="as the server calls it",
            help="The model's name on the server, such as meta-llama/Llama-3.1-8B-Instruct.",
        )  # fmt: skip
        st.session_state["model_drawn"] = model
        if not model.strip():
            st.caption(":orange[No model is named. Enter the name that the server uses.]")
        show_key_field(visit, url, from_environment=_has_key(defaults, url))
        tokenizer = st.text_input(
            "Tokenizer", key="tokenizer", value=defaults.tokenizer, persist_state="session",
            placeholder="found automatically",
            help="The source of the target's tokenizer: a model of the list, a folder, or a Hugging Face repository. "
            "Empty: the draft's, or else that of the repository with the model's name.",
        )  # fmt: skip
        verification = st.selectbox(
            "Way to verify", VERIFICATIONS, index=VERIFICATIONS.index(defaults.verification), key="verification",
            persist_state="session",
        )  # fmt: skip
        st.caption(words.escape_markdown(words.VERIFICATIONS[verification]))
    return {"base_url": base_url, "remote_model": model, "tokenizer": tokenizer, "verification": verification}


def take_secrets_out() -> None:
    """Remove secrets from the base URL in the field, and so in the session state, before anything reads it.

    Called before every use of the address: what was typed right before a click arrives together with the click.
    """
    url = (st.session_state.get("base_url") or "").strip()
    if _has_secrets(url):
        st.session_state["base_url"] = _cleaned(url)
        st.session_state["address_refused"] = True


def refuse_secrets() -> None:
    """Refuse a base URL that contained a user, password or query when it was typed.

    Raises:
        SettingsError: it did.
    """
    if st.session_state.get("address_refused"):
        raise SettingsError(*_NOT_HERE)


def _has_secrets(url: str) -> bool:
    # Looked for in the text and not in its parsed parts: a mistyped address may not parse.
    return "@" in url or "?" in url or "#" in url


def _cleaned(url: str) -> str:
    try:
        return without_secrets(url)
    except SettingsError:
        return ""


def _checked(url: str) -> str:
    """The address without secrets; empty, with an error under the field, where it is not valid."""
    complaint = SettingsError(*_NOT_HERE) if st.session_state.pop("address_refused", False) else None
    shown = ""
    try:
        shown = without_secrets(url)
    except SettingsError as error:
        complaint = complaint or error
    if complaint is not None:
        page.show_error(words.complaint(complaint))
    return shown


def _known_address(defaults: Settings) -> str:
    """The first value of the field, from the environment; a key to Cerebras implies its address."""
    try:
        return connection(defaults, environment()).shown
    except SpecvizError:
        return defaults.base_url


def _has_key(defaults: Settings, url: str) -> bool:
    """Whether the environment has a key for an address."""
    if not url:
        return False
    try:
        settings = Settings(target=defaults.target, base_url=url)
        return bool(connection(settings, environment()).key)
    except SpecvizError:
        return False
