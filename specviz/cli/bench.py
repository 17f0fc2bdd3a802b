"""`specviz bench`: measure drafts at several K against plain decoding; `specviz compare`: two such measurements."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specviz.bench.sweep.compare import compare
from specviz.bench.sweep.export import to_csv, to_parquet
from specviz.bench.sweep.plan import PLAIN
from specviz.bench.sweep.results import Bench, dumps, only_writer, read, write
from specviz.bench.sweep.rows import rows_of
from specviz.bench.sweep.sweep import Sweep, new_bench, seconds_left
from specviz.cli import bench_report as report
from specviz.cli.plan_options import add_plan_options, add_sampling_options, plan_of
from specviz.cli.suite_options import add_suite_options, suite_of
from specviz.cli.terminal import ProgressLine, is_screen, print_warning, safe, stop_on_interrupt, write_json
from specviz.core.errors import SettingsError
from specviz.core.process import INTERRUPTED
from specviz.core.settings import VERIFICATIONS
from specviz.core.wait import Progress, Wait
from specviz.setup.builder import Builder
from specviz.setup.completions import warning
from specviz.setup.environment import environment, secrets
from specviz.views.benchmark.table import duration

_HELP = """\
Measure drafts at several K on a suite of prompts, and plain decoding on the same prompts. Cells and prompts take turns
in random order, so that a machine that slows down affects all cells alike. Every speed-up has a 95 % interval, by
bootstrap over the prompts. "Do not speculate here" is a possible answer.

  python -m specviz bench --draft ngram model:smollm2-draft none --k 1 2 4 8 --suite builtin --per-domain 2
  python -m specviz bench --draft ngram --k 4 --suite question.jsonl --limit 20 --out run.json --csv run.csv
  python -m specviz bench --resume run.json

Everything is saved as JSON while it is measured. Ctrl-C keeps what was measured, and --resume continues.
"""
_COMPARE_HELP = """\
Compare two saved benchmarks: the cells that both have, whether they differ by more than chance, and what else differs.

  python -m specviz compare before.json after.json
"""
_SAVE_EVERY_S = 5.0


def add_bench(commands: Any) -> None:
    """Register the command."""
    p: argparse.ArgumentParser = commands.add_parser(
        "bench",
        help="measure drafts and K against plain decoding",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--target", help="local:NAME, openai:MODEL or toy (default: local:smollm2-135m)")
    p.add_argument("--base-url", dest="base_url", metavar="URL", help="of a remote target's API")
    p.add_argument("--tokenizer", metavar="NAME", help="where a remote target's tokenizer comes from")
    p.add_argument("--verification", choices=VERIFICATIONS, help="how a remote target verifies (default: auto)")
    add_plan_options(p)
    add_suite_options(p)
    p.add_argument("--repeats", type=int, default=1, metavar="N", help="of each cell on each prompt (default: 1)")
    p.add_argument(
        "--warm-up", type=int, default=8, dest="warm_up", metavar="N", help="tokens before a cell counts (default: 8)"
    )
    add_sampling_options(p)
    p.add_argument("--simulated-rtt-ms", type=float, dest="simulated_rtt_ms", metavar="MS", help="a simulated network")
    p.add_argument("--simulated-jitter-ms", type=float, dest="simulated_jitter_ms", metavar="MS", help="and its jitter")
    p.add_argument("--out", type=Path, metavar="FILE", help="the JSON file (default: bench-DATE-TIME.json)")
    p.add_argument(
        "--resume", type=Path, metavar="FILE", help="continue a saved benchmark; the other options are not needed"
    )
    p.add_argument("--csv", type=Path, metavar="FILE", help="write the rows as CSV too")
    p.add_argument("--parquet", type=Path, metavar="FILE", help="write the rows as Parquet too")
    p.add_argument("--json", action="store_true", help="print plan and rows as one JSON object on standard output")
    p.set_defaults(run=_run)


def add_compare(commands: Any) -> None:
    """Register the command."""
    p: argparse.ArgumentParser = commands.add_parser(
        "compare",
        help="compare two saved benchmarks",
        description=_COMPARE_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("before", type=Path, metavar="BEFORE.json")
    p.add_argument("after", type=Path, metavar="AFTER.json")
    p.set_defaults(run=_compare)


def _run(options: argparse.Namespace) -> int:
    variables = environment()
    if options.base_url is not None:
        # It may contain a password, and settings never do.
        variables["TARGET_BASE_URL"] = options.base_url
    bench = read(options.resume) if options.resume else _new(options, variables)
    path: Path = options.out or options.resume or Path(time.strftime("bench-%Y%m%d-%H%M%S.json"))
    # Before any work: a file that cannot be written, or that another process writes, does not waste a run.
    with only_writer("specviz bench", path, options.csv, options.parquet):
        if options.resume:
            bench = read(options.resume)  # it may have grown until now
        return _run_saving(options, variables, bench, path)


def _run_saving(options: argparse.Namespace, variables: Mapping[str, str], bench: Bench, path: Path) -> int:
    _save(bench, path)
    with stop_on_interrupt("Stopping. Press Ctrl-C again to end at once.") as stopping:
        _measure(bench, path, variables, stopping.is_set)
        stopped = stopping.is_set()
    rows = rows_of(bench)
    if options.csv:
        write(to_csv(rows), options.csv)
    if options.parquet:
        write(to_parquet(rows), options.parquet)
    if options.json:
        write_json({"file": str(path), "complete": not bench.missing, **report.summary(bench)})
    else:
        print(safe(report.text(bench)))
    print(f"Saved as {safe(str(path))}.", file=sys.stderr)
    if stopped:
        print(f"Stopped: --resume {safe(str(path))} continues.", file=sys.stderr)
        return INTERRUPTED
    return 1 if bench.failures and not any(t.rounds for t in bench.trials) else 0


def _new(options: argparse.Namespace, variables: Mapping[str, str]) -> Bench:
    if not options.draft:
        raise SettingsError("No draft is named.", "Give --draft NAME …, for example --draft ngram none.")
    plan = plan_of(options, variables, options.repeats, options.warm_up)
    suite = suite_of(options)
    if plan.drafts == (PLAIN,):
        print("Only plain decoding is measured: none is the only draft.", file=sys.stderr)
    return new_bench(plan, suite.prompts)


def _measure(bench: Bench, path: Path, variables: Mapping[str, str], stopping: Any) -> None:
    line = ProgressLine()
    print_warning(warning(bench.plan.settings, variables))
    builder = Builder(variables)

    def tell(progress: Progress) -> None:
        what = progress.what
        if progress.unit == "runs" and not is_screen(sys.stderr):
            what = "Measuring"  # one line per stage, not per run
        elif progress.unit == "runs" and (left := seconds_left(bench)) is not None:
            what += f", {duration(left)} left"
        line(Progress(what, progress.done, progress.total, progress.unit))

    wait = Wait(tell, stopping)
    saved_at = time.monotonic()
    try:
        for _ in Sweep(bench, lambda s: builder.build(s, wait), wait, secrets=secrets(variables)).run():
            if time.monotonic() - saved_at > _SAVE_EVERY_S:
                _save(bench, path)
                saved_at = time.monotonic()
    finally:
        line.clear()
        _save(bench, path)


def _save(bench: Bench, path: Path) -> None:
    text = dumps(bench, {"rows": [row.to_json() for row in rows_of(bench)]})
    write(secrets(environment()).strike_json(text), path)


def _compare(options: argparse.Namespace) -> int:
    found = compare(read(options.before), read(options.after))
    print(safe(report.comparison(found)))
    return 0
