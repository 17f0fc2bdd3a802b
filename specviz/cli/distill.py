"""`specviz distill`: a draft of one's own, trained on what the target writes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from specviz.cli.terminal import INTERRUPTED, ProgressLine, safe, stop_on_interrupt
from specviz.core.errors import DownloadError, SettingsError
from specviz.core.ports import Progress
from specviz.distill.pipeline import Learned, News, Outcome, distill
from specviz.distill.recipe import Recipe, prompt_file
from specviz.distill.student import BITS
from specviz.distill.subject import check_target_name
from specviz.distill.writing import Wrote

_HELP = """\
Make a draft for a target: the target writes texts, and a small Llama learns its distributions.

The texts, with the target's probabilities, and the state of the training are kept in FOLDER/.work. The same command
goes on from there after Ctrl-C, a crash or a power cut. The first Ctrl-C makes a draft of what there is.

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
    p.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="where the draft goes")
    p.add_argument(
        "--prompts",
        type=Path,
        metavar="FILE",
        help='one prompt a line, or JSON lines with a "prompt" (default: own ones)',
    )
    p.add_argument("--minutes", type=float, metavar="N", help="for all of it (default: 60); may be raised later")
    p.add_argument(
        "--layers",
        type=_layers,
        metavar="LIST",
        help="of the target, to begin with, as 0,1,2,29 (default: 3 first, 1 last)",
    )
    p.add_argument("--vocab", type=int, metavar="N", help="tokens that the draft has (default: 8192)")
    p.add_argument("--bits", type=int, choices=BITS, help="of its weights (default: 6)")
    p.add_argument("--seed", type=int, help="of every random draw (default: 0)")
    p.add_argument("--max-tokens", type=int, dest="max_tokens", metavar="N", help="of one text (default: 160)")
    p.add_argument("--tokens", type=int, metavar="N", help="write texts of so many tokens, whatever the time")
    p.add_argument("--steps", type=int, metavar="N", help="train for so many steps, whatever the time")
    p.add_argument("--learning-rate", type=float, dest="learning_rate", metavar="X", help="the highest one")
    p.add_argument("--batch-tokens", type=int, dest="batch_tokens", metavar="N", help="of one step (default: 1024)")
    p.set_defaults(run=_run)


_FIELDS = (
    "minutes",
    "layers",
    "vocab",
    "bits",
    "seed",
    "max_tokens",
    "tokens",
    "steps",
    "learning_rate",
    "batch_tokens",
)


def _layers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers with commas between, as 0,1,2,29, not {text!r}") from None


def _run(options: argparse.Namespace) -> int:
    if str(options.out) in ("", "."):
        raise SettingsError("--out must name a folder of its own.", "Try --out my-draft.")
    given: dict[str, Any] = {name: getattr(options, name) for name in _FIELDS if getattr(options, name) is not None}
    given["prompts"], given["prompts_sha256"] = prompt_file(options.prompts)
    recipe = Recipe(target=check_target_name(options.target), **given)
    with stop_on_interrupt("Finishing with what there is. Ctrl-C once more ends at once.") as stopping:
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
        print("Stopped before there was anything to learn from. The same command goes on.", file=sys.stderr)
        return INTERRUPTED
    print_outcome(outcome, sys.stdout)
    return 0 if outcome.complete else INTERRUPTED


class NewsPrinter:
    """Prints how far a distillation is: one line that is rewritten on a terminal, a line now and then elsewhere."""

    EVERY_S = 30.0

    def __init__(self, err: TextIO) -> None:
        self._err, self._line, self._told_s, self._acceptance = err, ProgressLine(err), -self.EVERY_S, ""

    def __call__(self, news: News) -> None:
        """Show news."""
        if isinstance(news, Progress):
            self._line(news)
            return
        if isinstance(news, Learned) and news.acceptance is not None:
            self._acceptance = acceptance_words(news.acceptance)
            self.clear()
            print(self._words(news), file=self._err, flush=True)
        elif self._err.isatty():
            self._line(Progress(self._words(news)))
        elif time.monotonic() - self._told_s >= self.EVERY_S:
            print(self._words(news), file=self._err, flush=True)
            self._told_s = time.monotonic()

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
        """Take the line away before something else is printed."""
        self._line.clear()


def print_outcome(outcome: Outcome, out: TextIO) -> None:
    """What came of it, in words."""
    print(f"held-out acceptance: {acceptance_words(outcome.before)} before training (few texts), ", end="", file=out)
    print(f"{acceptance_words(outcome.after)} now", file=out)
    print(f"wrote {safe(str(outcome.folder))}", file=out)
    if not outcome.complete:
        print("It was stopped before its time: the same command goes on with it.", file=out)


def acceptance_words(acceptance: Mapping[float, float]) -> str:
    """As in "0.412 at T=0, 0.467 at T=0.8"."""
    return ", ".join(f"{rate:.3f} at T={t:g}" for t, rate in sorted(acceptance.items())) or "n/a"


def duration(seconds: float) -> str:
    """As in "1:05:09"."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
