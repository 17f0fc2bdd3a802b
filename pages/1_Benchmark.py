"""Which draft, which K: measured against plain decoding."""

from specviz.ui import benchmark

benchmark.show()
