"""`specviz acceptance`: how much of a target's own text a draft would have had accepted."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from specviz.cli.terminal import INTERRUPTED, ProgressLine, columns, safe, stop_on_interrupt, write_json
from specviz.core.errors import DownloadError
from specviz.core.settings import draft_name
from specviz.distill.evaluate import AcceptanceFigure
from specviz.distill.measure import measure

_HELP = """\
Measure a draft on held-out prompts: the target answers each, and at every token of its answer acceptance is the
probability that rejection sampling keeps the draft's token there, the sum of min(p, q); at temperature 0, whether both
have the same best token. Length is the number of tokens to expect accepted of a block of 4. Nothing is timed.

  python -m specviz acceptance --draft model:my-draft
  python -m specviz acceptance --draft model:my-draft --temperature 0.8 --prompts my-prompts.txt
"""


def add_acceptance(commands: Any) -> None:
    """Register the command."""
    p: argparse.ArgumentParser = commands.add_parser(
        "acceptance",
        help="measure a draft on held-out prompts",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--draft", required=True, type=draft_name, metavar="NAME", help="model:NAME or toy")
    p.add_argument("--target", metavar="NAME", help="a model on this machine, or toy (default: smollm2-135m)")
    p.add_argument(
        "--temperature", type=float, nargs="+", default=[0.0, 0.8], metavar="T", help="0 to 2 (default: 0 0.8)"
    )
    p.add_argument(
        "--max-tokens", type=int, default=128, dest="max_tokens", metavar="N", help="of one answer (default: 128)"
    )
    p.add_argument(
        "--prompts", type=Path, metavar="FILE", help="one prompt a line, or JSON lines (default: 80 own ones)"
    )
    p.add_argument("--per-domain", type=int, dest="per_domain", metavar="N", help="only so many prompts of each domain")
    p.add_argument("--seed", type=int, default=0, help="of the answers (default: 0)")
    p.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    p.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    progress = ProgressLine()
    with stop_on_interrupt("Stopping after this text. Ctrl-C once more ends at once.") as stopping:
        try:
            figures = measure(
                options.draft,
                options.target or "smollm2-135m",
                temperatures=options.temperature,
                max_tokens=options.max_tokens,
                prompts=options.prompts,
                per_domain=options.per_domain,
                seed=options.seed,
                on_progress=progress,
                cancelled=stopping.is_set,
            )
        except DownloadError:
            if stopping.is_set():
                return INTERRUPTED
            raise
        finally:
            progress.clear()
        stopped = stopping.is_set()
    if options.json:
        write_json(
            {
                "draft": options.draft,
                "target": options.target or "smollm2-135m",
                "max_tokens": options.max_tokens,
                "seed": options.seed,
                "complete": not stopped,
                "acceptance": [asdict(f) for f in figures],
            }
        )
    elif figures:
        print(table(figures))
    if stopped:
        print("Stopped: the figures are of the texts that were done.", file=sys.stderr)
    return INTERRUPTED if stopped else 0


def table(figures: list[AcceptanceFigure]) -> str:
    """A line per temperature and domain."""
    rows = [("DOMAIN", "T", "ACCEPTANCE", "LENGTH", "TOKENS", "TEXTS")]
    for f in figures:
        length = "n/a" if f.length is None else f"{f.length:.2f}"
        rows.append(
            (safe(f.domain), f"{f.temperature:g}", f"{f.acceptance:.3f}", length, f"{f.tokens:,}", f"{f.texts:,}")
        )
    return columns(rows)
