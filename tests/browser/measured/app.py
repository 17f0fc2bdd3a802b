"""The Live page as it is, over runs that can be measured."""

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).parents[3]))

from specviz.ui import live  # noqa: E402
from tests.browser.measured import instrument  # noqa: E402

instrument.install()
live.show(instrument.CATALOG)
st.page_link("pages/1_Elsewhere.py", label="Go elsewhere")
