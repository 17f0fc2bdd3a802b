"""`specviz distill`: trains a draft on texts that the target writes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from specviz.cli.terminal import ProgressLine, is_screen, safe, stop_on_interrupt
from specviz.core.errors import DownloadError, SettingsError
from specviz.core.process import INTERRUPTED
from specviz.core.wait import Progress
from specviz.distill.pipeline import Outcome, distill
from specviz.distill.recipe import Recipe, prompt_file
from specviz.distill.student import BITS
from specviz.distill.subject import check_target_name
from specviz.distill.writing import Learned, News, Wrote

_HELP = """\
Train a draft for a target: the target writes texts, and a small Llama learns its distributions.

The texts with the target's probabilities, and the state of the training, are kept in FOLDER/.work. After Ctrl-C, a
crash or a power cut the same command continues from there. The first Ctrl-C makes a draft of what there is.

  python -m specviz distill --target smollm2-135m --out my-draft --minutes 60
  python -m specviz generate --draft model:my-draft --prompt "..."
"""


def add_distill(commands: Any) -> None:
    """Register the command."""
    p: argparse.ArgumentParser = commands.add_parser(
        "distill",
        help="train a draft for a target",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--target", required=True, metavar="NAME", help="a model on this machine, or toy")
    p.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the folder of the draft")
    p.add_argument(
        "--prompts", type=Path, metavar="FILE",
        help='one prompt a line, or JSON lines with a "prompt" (default: prompts of specviz)',
    )  # fmt: skip
    recipe = p.add_argument_group("recipe")
    recipe.add_argument(
        "--minutes", type=float, metavar="N", help="time for the whole run (default: 60); may be raised later"
    )
    recipe.add_argument(
        "--layers", type=_layers, metavar="LIST",
        help="layers of the target to start from, as 0,1,2,29 (default: the first 3 and the last)",
    )  # fmt: skip
    recipe.add_argument("--vocab", type=int, metavar="N", help="size of the draft's vocabulary (default: 8192)")
    recipe.add_argument("--bits", type=int, choices=BITS, help="bits of a weight (default: 6)")
    recipe.add_argument("--seed", type=int, help="seed of every random draw (default: 0)")
    recipe.add_argument("--max-tokens", type=int, metavar="N", help="length of a text (default: 160)")
    recipe.add_argument("--tokens", type=int, metavar="N", help="write texts with N tokens in all, whatever the time")
    recipe.add_argument("--steps", type=int, metavar="N", help="train for N steps, whatever the time")
    recipe.add_argument("--learning-rate", type=float, metavar="X", help="the highest learning rate")
    recipe.add_argument("--batch-tokens", type=int, metavar="N", help="tokens of a training step (default: 1024)")
    p.set_defaults(run=_run)


#: Fields of a recipe that have an option of their own.
_FIELDS = [field.name for field in fields(Recipe) if field.name not in ("target", "prompts", "prompts_sha256")]


def _layers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers with commas, as 0,1,2,29, not {text!r}") from None


def _run(options: argparse.Namespace) -> int:
    if str(options.out) in ("", "."):
        raise SettingsError("--out must name a folder for the draft alone.", "Try --out my-draft.")
    given = {name: value for name in _FIELDS if (value := getattr(options, name)) is not None}
    prompts, sha256 = prompt_file(options.prompts)
    recipe = Recipe(check_target_name(options.target), prompts=prompts, prompts_sha256=sha256, **given)
    with stop_on_interrupt("Making a draft of what there is. Press Ctrl-C again to end at once.") as stopping:
        printer = NewsPrinter(sys.stderr)
        try:
            outcome = distill(recipe, options.out, printer, stopping.is_set)
        except DownloadError:
            if stopping.is_set():
                return INTERRUPTED
            raise
        finally:
            printer.clear()
    if outcome is None:
        print("Stopped before there was a text to learn from. The same command continues the run.", file=sys.stderr)
        return INTERRUPTED
    print_outcome(outcome, sys.stdout)
    return 0 if outcome.complete else INTERRUPTED


class NewsPrinter:
    """Prints the progress of a distillation.

    On a terminal one line is rewritten; elsewhere there is a line every half minute. A checkpoint has its own line.
    """

    EVERY_S = 30.0

    def __init__(self, err: TextIO) -> None:
        self._err, self._line, self._printed_s, self._acceptance = err, ProgressLine(err), -self.EVERY_S, ""

    def __call__(self, news: News) -> None:
        """Print a report."""
        if isinstance(news, Progress):
            self._line(news)
            return
        if isinstance(news, Learned) and news.acceptance is not None:
            self._acceptance = acceptance_words(news.acceptance)
            self.clear()
            print(self._words(news), file=self._err, flush=True)
        elif is_screen(self._err):
            self._line(Progress(self._words(news)))
        elif time.monotonic() - self._printed_s >= self.EVERY_S:
            print(self._words(news), file=self._err, flush=True)
            self._printed_s = time.monotonic()

    def _words(self, news: Wrote | Learned) -> str:
        if isinstance(news, Wrote):
            return (
                f"writing   {news.texts:,} texts, {news.tokens:,} tokens, {news.tokens_per_s:,.0f} tokens/s, "
                f"{duration(news.left_s)} left in all"
            )
        loss = "" if news.loss is None else f", loss {news.loss:.3f}"
        return (
            f"training  step {news.step:,}, {news.tokens:,} tokens{loss}, acceptance {self._acceptance}, "
            f"{duration(news.left_s)} left"
        )

    def clear(self) -> None:
        """Erase the line before something else is printed."""
        self._line.clear()


def print_outcome(outcome: Outcome, out: TextIO) -> None:
    """The result in words."""
    print(f"held-out acceptance: {acceptance_words(outcome.before)} before training (few texts), ", end="", file=out)
    print(f"{acceptance_words(outcome.after)} now", file=out)
    print(f"wrote {safe(str(outcome.folder))}", file=out)
    if not outcome.complete:
        print("The run was stopped before its time: the same command continues it.", file=out)


def acceptance_words(acceptance: Mapping[float, float]) -> str:
    """As in "0.412 at T=0, 0.467 at T=0.8"."""
    return ", ".join(f"{rate:.3f} at T={t:g}" for t, rate in sorted(acceptance.items())) or "n/a"


def duration(seconds: float) -> str:
    """As in "1:05:09"."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
