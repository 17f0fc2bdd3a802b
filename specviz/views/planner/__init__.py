"""The Planner page's charts and sentences: functions of the measurement and of the costs that were chosen."""

from specviz.views.planner.curves import speed_curve
from specviz.views.planner.maps import draft_ceiling, draft_speed_map, rtt_ceiling, rtt_map
from specviz.views.planner.marginal import marginal_bars

__all__ = ["draft_ceiling", "draft_speed_map", "marginal_bars", "rtt_ceiling", "rtt_map", "speed_curve"]
