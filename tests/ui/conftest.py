from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st

from specviz.core.settings import ENVIRONMENT, SECRETS
from specviz.ui import session
from tests.ui.fakes import FakeHost


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No variable of this machine, no `.env`, no model host of another test, and no cookie."""
    for name in (*ENVIRONMENT, *SECRETS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    # Streamlit's tests have a made-up browser, whose cookies are no texts.
    monkeypatch.setattr(session, "_browser", lambda: "")
    FakeHost.keys.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECVIZ_TARGET", "toy")
    monkeypatch.setenv("DRAFT_MODEL", "toy")
