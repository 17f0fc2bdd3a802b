"""specviz in the browser: `streamlit run app.py`."""

from specviz.ui import live

live.show()
