"""Where speculation pays, from what was measured."""

from specviz.ui import planner

planner.show()
