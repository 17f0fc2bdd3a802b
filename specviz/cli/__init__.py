"""The jobs of specviz without a browser: `python -m specviz generate | models | replay`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

from specviz import __version__
from specviz.cli.generate import add_generate
from specviz.cli.models import add_models
from specviz.cli.replay import add_replay
from specviz.errors import SpecvizError

_INTRO = """\
See, measure and trust speculative decoding.

A small draft proposes K tokens, the target scores all of them in one call, and a rule keeps or replaces each, so
that the text is the target's own. Start with:

  python -m specviz generate --prompt "Explain why the sky is blue."
  python -m specviz generate --prompt "..." --draft model:smollm2-135m --temperature 0.8 --json
  python -m specviz models list

The page with the token tree:  streamlit run app.py
"""


def parser() -> argparse.ArgumentParser:
    """The command line, with help that teaches."""
    top = argparse.ArgumentParser(
        prog="specviz", description=_INTRO, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--version", action="version", version=f"specviz {__version__}")
    top.add_argument("--verbose", action="store_true", help="more log lines on standard error")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (add_generate, add_models, add_replay):
        add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0; 1 when the work failed; 2 for bad input; 130 after Ctrl-C.
    """
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
    except SpecvizError as exc:
        print(f"error: {exc.message}", file=sys.stderr)
        if exc.remedy:
            print(f"       {exc.remedy}", file=sys.stderr)
        return exc.exit_code
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of standard output has gone (`| head`); keep the interpreter from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
