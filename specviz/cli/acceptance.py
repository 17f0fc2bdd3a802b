"""`specviz acceptance`: how much of a target's own text a draft would have had accepted."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from specviz.bench.forecast.acceptance import acceptance_along
from specviz.cli.engine_options import add_engine_options
from specviz.cli.terminal import ProgressLine, columns, safe, stop_on_interrupt, write_json
from specviz.core.acceptance import AcceptanceFigure, Rates, figures
from specviz.core.errors import DownloadError, PromptError, SettingsError
from specviz.core.names import TOY, draft_name, parse_draft
from specviz.core.ports import Followable
from specviz.core.process import INTERRUPTED
from specviz.core.settings import EngineWish, Sampling, Settings
from specviz.core.wait import Progress, Wait
from specviz.distill.prompts import Prompt, first_of_each, held_out
from specviz.distill.sources import ToyPrompts, read_prompts
from specviz.distill.subject import Subject, open_subject, target_name
from specviz.distill.teacher import TextRequest
from specviz.setup.builder import Builder
from specviz.setup.environment import environment
from specviz.setup.loading import Loading

_HELP = """\
Measure a draft on held-out prompts. The target answers each prompt. At every token of its answer, acceptance is the
probability that rejection sampling keeps the draft's token there, the sum of min(p, q); at temperature 0 it is whether
both models have the same most probable token. LENGTH is the expected number of accepted tokens of a block of 4.
Nothing is timed: `predict` says what a draft is worth on this machine.

  python -m specviz acceptance --draft model:my-draft
  python -m specviz acceptance --draft model:my-draft --temperature 0.8 --prompts my-prompts.txt
"""
_TARGET = "smollm2-135m"


def add_acceptance(commands: Any) -> None:
    """Register the command."""
    p: argparse.ArgumentParser = commands.add_parser(
        "acceptance",
        help="measure a draft on held-out prompts",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--draft", required=True, type=draft_name, metavar="NAME", help="model:NAME or toy")
    p.add_argument(
        "--target", default=_TARGET, metavar="NAME", help=f"a model on this machine, or toy (default: {_TARGET})"
    )
    p.add_argument(
        "--temperature", type=float, nargs="+", default=[0.0, 0.8], metavar="T", help="0 to 2 (default: 0 0.8)"
    )
    p.add_argument(
        "--max-tokens", type=int, default=128, dest="max_tokens", metavar="N", help="length of an answer (default: 128)"
    )
    p.add_argument(
        "--prompts", type=Path, metavar="FILE", help="one prompt a line, or JSON lines (default: 80 prompts of specviz)"
    )
    p.add_argument("--per-domain", type=int, dest="per_domain", metavar="N", help="only N prompts of each domain")
    p.add_argument("--seed", type=int, default=0, help="seed of the answers (default: 0)")
    add_engine_options(p)
    p.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    p.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    progress = ProgressLine()
    with stop_on_interrupt("Stopping after this text. Press Ctrl-C again to end at once.") as stopping:
        try:
            found = measure(
                options.draft,
                options.target,
                temperatures=options.temperature,
                max_tokens=options.max_tokens,
                prompts=options.prompts,
                per_domain=options.per_domain,
                seed=options.seed,
                engine=options.engine,
                context=options.context,
                wait=Wait(progress, stopping.is_set),
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
                "target": options.target,
                "max_tokens": options.max_tokens,
                "seed": options.seed,
                "complete": not stopped,
                "acceptance": [asdict(f) for f in found],
            }
        )
    elif found:
        print(table(found))
    if stopped:
        print("Stopped: the figures are of the texts that were done.", file=sys.stderr)
    return INTERRUPTED if stopped else 0


def measure(
    draft: str,
    target: str,
    *,
    temperatures: Sequence[float] = (0.0, 0.8),
    max_tokens: int = 128,
    prompts: Path | None = None,
    per_domain: int | None = None,
    seed: int = 0,
    engine: EngineWish | None = None,
    context: int | None = None,
    wait: Wait = Wait(),
) -> list[AcceptanceFigure]:
    """Let the target answer prompts, and follow the draft along its answers.

    Args:
        draft: `model:NAME` or `toy`. target: see `specviz.distill.subject.target_name`.
        temperatures: of the answers, and of both models.
        max_tokens: of an answer.
        prompts: a file; None for the held-out prompts, and for made-up ones where the target is the toy.
        per_domain: only the first so many prompts of each domain.
        seed: of the answers.
        engine, context: see `specviz.core.settings.Settings`; None takes those of the environment.
        wait: for a download, then for the texts. Cancelled, it ends with the texts that are done.

    Returns:
        See `specviz.core.acceptance.figures`; empty when it was stopped before the first text.

    Raises:
        SettingsError, PromptError: bad input.
        UnknownModelError, UnsupportedModelError, DownloadError, PairingError: as `specviz.setup.builder.Builder.build`.
    """
    target = target_name(target)
    if parse_draft(draft).kind not in ("model", "toy") or parse_draft(draft).lookup_first:
        raise SettingsError(
            f"Acceptance is measured by the draft's distributions, and {draft!r} has none.",
            "Give a model as draft: --draft model:NAME.",
        )
    if per_domain is not None and per_domain < 1:
        raise SettingsError(f"--per-domain must be at least 1, not {per_domain}.")
    given = {"target": target, "draft": draft, "max_tokens": max_tokens, "seed": seed}
    wanted = given | {"engine": engine, "context": context}
    variables = {name: value for name, value in environment().items() if name in ("SPECVIZ_ENGINE", "SPECVIZ_CONTEXT")}
    settings = [
        Settings.resolve(wanted | {"temperature": temperature}, environment=variables)
        for temperature in sorted(set(temperatures))
    ]
    chosen = first_of_each(_prompts(prompts, target, seed), per_domain)
    builder = Builder()
    pair = builder.build(settings[0], wait)
    how = Loading(settings[0].engine, settings[0].context)
    subject = open_subject(target, wait, lambda name, wait: builder.language_model(name, wait, how))
    drafter = pair.drafter
    assert isinstance(drafter, Followable)  # every model is
    room = min(subject.max_context, drafter.max_context or subject.max_context)
    requests = list[TextRequest]()
    for number, prompt in enumerate(chosen, 1):
        requests += _requests(number, prompt, subject, settings, room)
    measured: dict[int, tuple[str, float, Rates]] = {}
    for index, text in subject.teacher.write(requests):
        ids, start = [*map(int, text.prompt_ids), *map(int, text.token_ids)], len(text.prompt_ids)
        rates = acceptance_along(subject.scorer, drafter, ids, start, Sampling(text.temperature))
        measured[index] = (text.domain, text.temperature, rates)
        wait.on_progress(Progress("The target answers, the draft follows", len(measured), len(requests), "texts"))
    return figures(measured[index] for index in sorted(measured))


def _prompts(path: Path | None, target: str, seed: int) -> Sequence[Prompt]:
    if path is not None:
        return read_prompts(path)
    return ToyPrompts.held_out(seed, 64) if target == TOY else held_out()


def _requests(
    number: int, prompt: Prompt, subject: Subject, settings: Sequence[Settings], room: int
) -> list[TextRequest]:
    """One request for each temperature.

    Args:
        number: of the prompt, from 1. room: tokens that both models can see.
    """
    ids, max_tokens = tuple(subject.prompt_ids(prompt.text)), settings[0].max_tokens
    if len(ids) + max_tokens > room:
        raise PromptError(
            f"Prompt {number} has {len(ids):,} tokens. With an answer of {max_tokens} tokens it does not fit the "
            f"context of target and draft, which is {room:,} tokens.",
            "Shorten it, or leave it out.",
        )
    seed = int(np.random.SeedSequence((settings[0].seed, number)).generate_state(1)[0])
    return [TextRequest(prompt.domain, ids, own.temperature, max_tokens, seed) for own in settings]


def table(found: Sequence[AcceptanceFigure]) -> str:
    """A line per temperature and domain."""
    rows = [("DOMAIN", "T", "ACCEPTANCE", "LENGTH", "TOKENS", "TEXTS")]
    for f in found:
        length = "n/a" if f.length is None else f"{f.length:.2f}"
        rows.append(
            (safe(f.domain), f"{f.temperature:g}", f"{f.acceptance:.3f}", length, f"{f.tokens:,}", f"{f.texts:,}")
        )
    return columns(rows)
