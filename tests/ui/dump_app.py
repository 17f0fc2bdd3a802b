"""The Live page, which writes every text in its session state to a file after each page run."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from streamlit.runtime.scriptrunner import get_script_run_ctx  # noqa: E402

from specviz.ui import live  # noqa: E402
from tests.ui.reachable import texts  # noqa: E402


def dump() -> None:
    context = get_script_run_ctx()
    assert context is not None
    with Path(os.environ["SPECVIZ_DUMP"]).open("a", encoding="utf-8") as file:
        file.write(texts(context.session_state._state) + "\n")


try:
    live.show()
finally:
    dump()
