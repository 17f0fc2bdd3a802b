"""specviz in the browser: `streamlit run app.py`."""

from specviz import catalog
from specviz.ui import live

live.show(catalog)
