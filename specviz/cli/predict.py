"""`specviz predict`: rank drafts and K from one text per prompt."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from specviz.bench.forecast.confirm import Confirmed, confirm
from specviz.bench.forecast.forecast import Forecast, Prediction
from specviz.bench.forecast.predict import predict, refuse_remote
from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.plan import SweepPlan
from specviz.bench.sweep.results import only_writer, write
from specviz.cli.bench_report import number, within
from specviz.cli.plan_options import add_plan_options, add_sampling_options, plan_of, settings_of
from specviz.cli.suite_options import add_suite_options, suite_of
from specviz.cli.terminal import ProgressLine, columns, is_screen, print_warning, safe, stop_on_interrupt, write_json
from specviz.core.errors import DownloadError, SettingsError, StoppedError
from specviz.core.pair import Pair
from specviz.core.process import INTERRUPTED
from specviz.core.settings import Settings
from specviz.core.wait import Progress, Wait
from specviz.setup.builder import Builder
from specviz.setup.completions import warning
from specviz.setup.environment import environment

_HELP = """\
Rank drafts, and K for each, from one text per prompt. The target writes each text once, every draft follows it. Which
tokens would be kept follows from the probabilities of both models, without a run for each draft, K and rule. Times are
measured at a few places of the texts, also for plain decoding. The best two are then run, and both figures are shown.

  python -m specviz predict --draft ngram model:smollm2-draft ngram+model:smollm2-draft --k 1 2 4 8 --per-domain 1
  python -m specviz predict --draft ngram --k 4 8 --suite questions.csv --given --no-confirm --json

Whole distributions are needed, so the target runs on this machine; for a server use `bench`.
"""


def add_predict(commands: Any) -> None:
    """Register the command."""
    p: argparse.ArgumentParser = commands.add_parser(
        "predict",
        help="rank drafts and K from one text per prompt",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--target", help="local:NAME or toy (default: local:smollm2-135m)")
    add_plan_options(p)
    add_suite_options(p)
    add_sampling_options(p)
    p.add_argument(
        "--given", action="store_true", help="follow the prompts' answers instead of texts that the target writes"
    )
    p.add_argument(
        "--confirm", action=argparse.BooleanOptionalAction,
        help="run the best two live (default: yes, but not with --json)",
    )  # fmt: skip
    p.add_argument("--out", type=Path, metavar="FILE", help="write everything as JSON too")
    p.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    p.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    variables = environment()
    plan = _plan(options, variables)
    prompts = suite_of(options).prompts
    confirming = not options.json if options.confirm is None else options.confirm
    if options.out:
        _refuse_unwritable(options.out)  # before any work
    with only_writer("specviz predict", options.out):
        return _run_saving(options, variables, plan, prompts, confirming)


def _run_saving(
    options: argparse.Namespace,
    variables: Mapping[str, str],
    plan: SweepPlan,
    prompts: Sequence[BenchPrompt],
    confirming: bool,
) -> int:
    found: Prediction | None = None
    confirmed: list[Confirmed] | None = None
    with stop_on_interrupt("Stopping. Press Ctrl-C again to end at once.") as stopping:
        try:
            found, confirmed = _predict(plan, prompts, options.given, confirming, variables, options, stopping.is_set)
        except (StoppedError, DownloadError):
            if not stopping.is_set():
                raise
    if found is None:
        return INTERRUPTED
    data = found.to_json() | ({} if confirmed is None else {"confirmed": [c.to_json() for c in confirmed]})
    if options.out:
        write(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n", options.out)
    if options.json:
        write_json(data)
    elif confirmed:
        print("\n" + confirmation(confirmed))
    return INTERRUPTED if confirming and confirmed is None else 0


def _refuse_unwritable(path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise SettingsError(
            f"Cannot write {path}: the folder does not exist or is not writable.", "Give another --out FILE."
        )


def _predict(
    plan: SweepPlan,
    prompts: Sequence[BenchPrompt],
    given: bool,
    confirming: bool,
    variables: Mapping[str, str],
    options: argparse.Namespace,
    stopping: Any,
) -> tuple[Prediction, list[Confirmed] | None]:
    """The prediction, which is printed at once, and its confirmation; None where that was stopped or is not wanted."""
    print_warning(warning(plan.settings, variables))
    line, builder = ProgressLine(), Builder(variables)

    def progress(step: Progress) -> None:
        # Where lines stay on the screen, one line per stage and none per text or run.
        many = step.unit in ("tokens", "runs") and not is_screen(sys.stderr)
        line(replace(step, what="Measuring" if step.unit == "runs" else "Predicting") if many else step)

    wait = Wait(progress, stopping)

    def open_pair(settings: Settings) -> Pair:
        return builder.build(settings, wait)

    try:
        found = predict(plan, prompts, open_pair, given=given, wait=wait)
        line.clear()
        if not options.json:
            print(table(found))
        if not confirming:
            return found, None
        try:
            return found, confirm(found, prompts, open_pair, wait=wait)
        except StoppedError:
            return found, None
    finally:
        line.clear()


def _plan(options: argparse.Namespace, variables: Mapping[str, str]) -> SweepPlan:
    if not options.draft:
        raise SettingsError("No draft is named.", "Give --draft NAME …, for example --draft ngram.")
    # First, because no other option makes a prediction possible for a server.
    refuse_remote(settings_of(options, options.draft[0], variables))
    plan = plan_of(options, variables)
    if set(plan.drafts) == {"none"}:
        raise SettingsError("Plain decoding alone needs no prediction.", "Name another draft than none.")
    return plan


_HEADS = (
    "DRAFT", "K", "T", "RULE", "ACCEPTED/TESTED", "ACCEPTED/ROUND", "TOKENS/ROUND", "95 %", "DRAFT MS", "VERIFY MS",
    "PREDICTED SPEED-UP",
)  # fmt: skip


def table(found: Prediction) -> str:
    """A line per draft, K, temperature and rule; then the ranking in sentences, and the time that it took."""
    plan = found.plan
    lines = [columns([_HEADS, *map(_cells, found.rows)]), ""]
    lines += [f"{safe(name)} was left out: {safe(why)}" for name, why in found.left_out.items()]
    for temperature in plan.temperatures:
        for rule in plan.rules:
            where = f"T = {temperature:g}" + (f", {rule}" if len(plan.rules) > 1 else "")
            lines.append(f"{where}: {safe(found.words(temperature, rule))}")
    texts = "given" if found.given else "written by the target"
    lines.append(
        f"From {found.texts:,} texts {texts}, {found.tokens:,} tokens, in {found.seconds:.0f} s: "
        f"{found.writing_s:.0f} s to write them, {found.timing_s:.0f} s to time the calls."
    )
    return "\n".join(lines)


def _cells(row: Forecast) -> tuple[str, ...]:
    plain = row.draft == "none"
    return (
        safe(row.name if plain else row.draft),
        "" if plain else str(row.k),
        f"{row.temperature:g}",
        "" if plain else row.rule,
        "" if plain else number(row.acceptance),
        "" if plain else number(row.accepted_per_round),
        number(row.tokens_per_round),
        "" if plain else within(row.tokens_per_round_interval),
        "" if plain else number(row.draft_ms, 1),
        number(row.verify_ms, 1),
        number(row.speedup, 2),
    )


def confirmation(confirmed: Sequence[Confirmed]) -> str:
    """Predicted and measured figures side by side."""
    heads = (
        "RUN LIVE", "K", "T", "TOKENS/ROUND PREDICTED", "MEASURED", "OFF BY", "SPEED-UP PREDICTED", "MEASURED", "95 %",
    )  # fmt: skip
    rows = []
    for c in confirmed:
        rows.append(
            (
                safe(c.predicted.draft),
                str(c.predicted.k),
                f"{c.predicted.temperature:g}",
                number(c.predicted.tokens_per_round),
                number(c.measured.tokens_per_round),
                "n/a" if c.off is None else f"{c.off:+.1%}",
                number(c.predicted.speedup, 2),
                number(c.measured.speedup, 2),
                within(c.measured.speedup_interval),
            )
        )
    failures = [
        f"{safe(c.predicted.name)}: {safe(c.measured.failure.message)}" for c in confirmed if c.measured.failure
    ]
    return "\n".join([columns([heads, *rows]), *failures])
