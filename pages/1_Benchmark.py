"""Which draft, which K: measured against plain decoding."""

from specviz import catalog
from specviz.ui import benchmark

benchmark.show(catalog)
