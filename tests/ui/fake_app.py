"""The Live page over scripted runs, for tests and for states that are hard to reach."""

import sys
from pathlib import Path
from typing import cast

sys.path.insert(0, str(Path(__file__).parents[2]))

from specviz.ui import live  # noqa: E402
from specviz.ui.catalog import Catalog  # noqa: E402
from tests.ui.fakes import FakeCatalog  # noqa: E402

live.show(cast(Catalog, FakeCatalog()))
