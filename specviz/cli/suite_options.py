"""Which prompts: the options that `bench` and `predict` share."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from specviz.bench.suites.loaders import KINDS, Loaded, read_suite, refuse_bad
from specviz.bench.suites.suite import Suite, builtin
from specviz.cli.terminal import safe
from specviz.core.errors import SettingsError

BUILTIN = "builtin"
_LISTED = 20


def add_suite_options(parser: argparse.ArgumentParser) -> None:
    """Add them to a command."""
    parser.add_argument(
        "--suite",
        default=BUILTIN,
        metavar="FILE",
        help="prompts: builtin, or a file: GSM8K, HumanEval, Spec-Bench, or any JSON lines, CSV or Parquet with a "
        "column of prompts (default: builtin, 8 domains of 8 prompts)",
    )
    parser.add_argument("--format", choices=KINDS, help="of the file (default: detected)")
    parser.add_argument("--column", metavar="NAME", help="the column with the prompts (default: detected)")
    parser.add_argument("--encoding", metavar="NAME", help="of the file (default: UTF-8, or what its first bytes say)")
    parser.add_argument("--skip-bad", action="store_true", help="list rows that cannot be used, and skip them")
    parser.add_argument("--per-domain", type=int, metavar="N", help="only the first N prompts of each domain")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N prompts")


def suite_of(options: argparse.Namespace) -> Suite:
    """The prompts that the options ask for. Rows that are skipped are listed on standard error.

    Raises:
        SettingsError: no such file, one without prompts, or one with bad rows without --skip-bad.
    """
    if options.suite == BUILTIN:
        _refuse_file_options(options)
        return builtin().first(options.per_domain, options.limit)
    # Which prompts are the first of their domain is known only at the end of the file.
    limit = options.limit if options.per_domain is None else None
    loaded = read_suite(
        Path(options.suite), kind=options.format, column=options.column, encoding=options.encoding, limit=limit
    )
    if options.skip_bad:
        _list_bad(loaded)
    else:
        refuse_bad(loaded)
    return loaded.suite.first(options.per_domain, options.limit)


def _refuse_file_options(options: argparse.Namespace) -> None:
    given = [name for name in ("format", "column", "encoding") if getattr(options, name) is not None]
    if given:
        raise SettingsError(f"--{given[0]} describes a file, and the suite is the built-in one.", "Give --suite FILE.")


def _list_bad(loaded: Loaded) -> None:
    for row in loaded.bad[:_LISTED]:
        print(f"skipped {loaded.unit} {row.line:,}: {safe(row.why)}", file=sys.stderr)
    more = len(loaded.bad) - _LISTED
    if more > 0:
        print(f"skipped {more:,} more rows", file=sys.stderr)
