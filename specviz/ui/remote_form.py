"""What a remote target needs to be known about it: address, model, key, tokenizer, way to verify."""

from __future__ import annotations

from typing import Any

import streamlit as st

from specviz.core.connection import connection
from specviz.core.errors import SettingsError, SpecvizError
from specviz.core.settings import VERIFICATIONS, Settings, without_secrets
from specviz.setup.catalog import CatalogEntry
from specviz.setup.environment import environment
from specviz.ui import page
from specviz.ui.key_field import show_key_field
from specviz.ui.session import Visit
from specviz.views import words

REMOTE = "openai:"
#: How the page offers a server that nobody has named yet.
A_SERVER = CatalogEntry(
    REMOTE, "A server…", "Anything with a completions API: vLLM, SGLang, llama-server, mlx_lm.server, Cerebras and "
    "others.", False, "",
)  # fmt: skip

_NOT_HERE = (
    "A base URL holds no user, password or query: the key has its own field.",
    "What was behind the address has been taken out. Put the key into its field.",
)


def is_remote(target: str) -> bool:
    """Whether a target's name means a server."""
    return target.startswith(REMOTE)


def let_target_follow() -> None:
    """A model's name that was changed in its own field changes the target's name with it."""
    drawn, typed = st.session_state.get("model_drawn"), st.session_state.get("remote_model")
    if drawn and typed is not None and typed != drawn and st.session_state.get("target") == REMOTE + drawn:
        st.session_state["target"] = REMOTE + typed.strip()


def whole_name(target: str, model: str) -> str:
    """The target with its model, where one is known: `model` is what stands in the field for it."""
    drawn = st.session_state.get("model_drawn")
    changed = drawn is not None and model != drawn
    named = target.removeprefix(REMOTE)
    return REMOTE + model.strip() if is_remote(target) and (not named or (changed and named == drawn)) else target


def show_remote(visit: Visit, target: str, defaults: Settings) -> dict[str, Any]:
    """Draw the fields of a remote target; returns field name → value, not yet validated."""
    named = target.removeprefix(REMOTE)
    if named and st.session_state.get("remote_model") != named:
        st.session_state["remote_model"] = named
    st.session_state.setdefault("remote_model", defaults.remote_model)
    st.session_state.setdefault("base_url", _known_address(defaults))
    with st.container(border=True):
        base_url = st.text_input(
            "Base URL", key="base_url", persist_state="session", placeholder="http://127.0.0.1:8000/v1",
            on_change=take_secrets_out, help="Where the completions API begins, mostly ending in /v1.",
        )  # fmt: skip
        url = _checked(base_url)
        model = st.text_input(
            "Model", key="remote_model", persist_state="session", placeholder="as the server calls it",
            help="What the server knows the model by, such as meta-llama/Llama-3.1-8B-Instruct.",
        )  # fmt: skip
        st.session_state["model_drawn"] = model
        if not model.strip():
            st.caption(":orange[Which model? Name it as the server does.]")
        show_key_field(visit, url, from_environment=_has_key(defaults, url))
        tokenizer = st.text_input(
            "Tokenizer", key="tokenizer", value=defaults.tokenizer, persist_state="session",
            placeholder="found by itself",
            help="Where the target's tokenizer comes from: a model of the list, a folder, or a Hugging Face "
            "repository. Empty takes the draft's, else the repository of the model's own name.",
        )  # fmt: skip
        verification = st.selectbox(
            "Way to verify", VERIFICATIONS, index=VERIFICATIONS.index(defaults.verification), key="verification",
            persist_state="session",
        )  # fmt: skip
        st.caption(words.escape_markdown(words.VERIFICATIONS[verification]))
    return {"base_url": base_url, "remote_model": model, "tokenizer": tokenizer, "verification": verification}


def take_secrets_out() -> None:
    """What may be secret in a base URL leaves the field, and with it the session state, before anything reads it.

    Whoever needs the address asks this first: what was typed right before a click comes together with the click.
    """
    url = (st.session_state.get("base_url") or "").strip()
    if _has_secrets(url):
        st.session_state["base_url"] = _cleaned(url)
        st.session_state["address_refused"] = True


def refuse_secrets() -> None:
    """Refuse a base URL that held what belongs into the key's field when it was typed.

    Raises:
        SettingsError: it did.
    """
    if st.session_state.get("address_refused"):
        raise SettingsError(*_NOT_HERE)


def _has_secrets(url: str) -> bool:
    # A sign that a mistyped address may hold just as well, so it is looked for in the text, not in its parts.
    return "@" in url or "?" in url or "#" in url


def _cleaned(url: str) -> str:
    try:
        return without_secrets(url)
    except SettingsError:
        return ""


def _checked(url: str) -> str:
    """The address as it is used, with a complaint under the field where it cannot be; empty then."""
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
    """The first value of the field: from the environment, where a key to Cerebras means its address."""
    try:
        return connection(defaults, environment()).shown
    except SpecvizError:
        return defaults.base_url


def _has_key(defaults: Settings, url: str) -> bool:
    """Whether the environment has a key for an address."""
    if not url:
        return False
    try:
        asked = Settings(target=defaults.target, base_url=url)
        return bool(connection(asked, environment()).key)
    except SpecvizError:
        return False
