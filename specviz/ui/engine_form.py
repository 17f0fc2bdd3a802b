"""The sidebar's choice of what runs models in this process."""

from __future__ import annotations

from typing import Any

import streamlit as st

from specviz.core.settings import ENGINES, MAX_TOKENS_MAX, Settings
from specviz.views import words


def show_engine(defaults: Settings) -> dict[str, Any]:
    """Draw it; returns field name → value."""
    with st.expander("Engine"):
        engine = st.selectbox(
            "Runs models in this process", ENGINES, index=ENGINES.index(defaults.engine), key="engine",
            persist_state="session",
        )  # fmt: skip
        st.caption(words.escape_markdown(words.ENGINES[engine]))
        context = st.number_input(
            "Context, tokens", 0, MAX_TOKENS_MAX, value=defaults.context, step=1024, key="context",
            persist_state="session",
            help="Prompt and output together. The engine llama takes the memory for it when it loads a model. 0 takes "
            "the model's own context, at most 8,192. The engine mlx ignores this.",
        )  # fmt: skip
    return {"engine": engine, "context": int(context)}
