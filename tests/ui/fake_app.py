"""The Live page over scripted runs, for tests and for looking at states that are hard to come by."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from specviz.ui import live  # noqa: E402
from tests.ui.fakes import FakeCatalog  # noqa: E402

live.show(FakeCatalog())
