"""The command line: `python -m specviz generate | models | replay | doctor | …`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from typing import Any

from specviz import __version__
from specviz.cli.acceptance import add_acceptance
from specviz.cli.app import add_app
from specviz.cli.bench import add_bench, add_compare
from specviz.cli.distill import add_distill
from specviz.cli.doctor import add_doctor
from specviz.cli.generate import add_generate
from specviz.cli.models import add_models
from specviz.cli.predict import add_predict
from specviz.cli.replay import add_replay
from specviz.cli.terminal import print_error
from specviz.core.errors import OutputError, SpecvizError, of_system
from specviz.core.process import INTERRUPTED

log = logging.getLogger(__name__)

_INTRO = """\
See, measure and trust speculative decoding.

A small draft model proposes K tokens, the target model scores all of them in one call, and a rule keeps or replaces
each, so that the output is the target's own. Start with:

  python -m specviz generate --prompt "Explain why the sky is blue."
  python -m specviz generate --prompt "..." --draft model:smollm2-draft --temperature 0.8 --json
  python -m specviz doctor --target openai:MODEL --base-url http://127.0.0.1:8000/v1
  python -m specviz models list
  python -m specviz bench --draft ngram model:smollm2-draft --k 1 2 4 8 --per-domain 2
  python -m specviz acceptance --draft model:smollm2-draft
  python -m specviz distill --target smollm2-135m --out my-draft --minutes 60

The page with the token tree:  python -m specviz app
"""


def parser() -> argparse.ArgumentParser:
    """The command line and its help."""
    top = argparse.ArgumentParser(
        prog="specviz", description=_INTRO, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--version", action="version", version=f"specviz {__version__}")
    top.add_argument("--verbose", action="store_true", help="print more log lines on standard error")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    runs, models = (add_generate, add_replay, add_bench, add_predict, add_compare), (add_models, add_doctor)
    for add in (add_app, *runs, *models, add_distill, add_acceptance):
        add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0; 1 when the work failed; 2 for bad input; 130 after Ctrl-C.
    """
    try:
        try:
            return _command(argv)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OutputError as exc:
        if exc.unread:  # `| head` has what it wanted
            return 0
        print_error(exc.message, exc.remedy)
        return exc.exit_code


def _command(argv: Sequence[str] | None) -> int:
    options: Any = parser().parse_args(argv)
    logging.basicConfig(
        level=logging.INFO if options.verbose else logging.WARNING,
        format="%(name)s: %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("specviz").setLevel(logging.INFO)
    try:
        code: int = options.run(options)
        return code
    except OutputError:
        raise
    except SpecvizError as exc:
        print_error(exc.message, exc.remedy)
        return exc.exit_code
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED
    except OSError as exc:
        # It should have been caught where it happened, with its own sentence: say what the system said, and no more.
        if options.verbose:
            log.exception("not expected here")
        error = of_system(exc)
        print_error(error.message, error.remedy)
        return error.exit_code
