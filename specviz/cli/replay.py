"""`specviz replay`: a recorded run, round by round."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from specviz.cli.generate import print_summary
from specviz.cli.terminal import painted, print_error, safe, write_json
from specviz.core.events import Metrics
from specviz.record import report, trace
from specviz.record.state import Node, RunState

_HELP = """\
Play a recorded run: each line is a round, each token has the colour and the mark of its status
(+ accepted, - rejected, ~ resampled, * bonus, . ignored).
"""

_MARKS = {"accepted": "+", "rejected": "-", "resampled": "~", "bonus": "*", "ignored": ".", "pending": "?"}


def add_replay(commands: Any) -> None:
    """Register the command."""
    p: argparse.ArgumentParser = commands.add_parser(
        "replay",
        help="play a recorded run",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("file", type=Path, metavar="FILE", help="a trace saved by `generate --trace` or by the page")
    p.add_argument(
        "--pace", type=_pace, default=0.0, metavar="X", help="play at X times the recorded speed; 0: at once"
    )
    p.add_argument("--json", action="store_true", help="print the same JSON object as generate --json")
    p.set_defaults(run=_run)


def _pace(text: str) -> float:
    value = float(text)
    if not (value == 0 or 0.01 <= value <= 1000):
        raise argparse.ArgumentTypeError(f"must be 0 or from 0.01 to 1000, not {text}")
    return value


def _run(options: argparse.Namespace) -> int:
    recording = trace.read(options.file)
    state, shown = RunState(), 0
    for event in recording.events:
        state.apply(event)
        if isinstance(event, Metrics) and not options.json:
            if options.pace > 0:
                time.sleep(event.split.wall_ms / 1000 / options.pace)
            print(f"{event.round:>4}  {_round(state.nodes[shown:])}", flush=True)
            shown = len(state.nodes)
    if not recording.complete:
        print("The recording is incomplete: it has no end of the run.", file=sys.stderr)
    if options.json:
        write_json(report.summary(state))
    else:
        print_summary(state)
        if state.error:
            print_error(state.error.message, state.error.remedy)
    return 0


def _round(nodes: list[Node]) -> str:
    return " ".join(painted(_MARKS[n.status] + safe(repr(n.token)[1:-1]), n.status, sys.stdout) for n in nodes)
