"""Held-out acceptance of any model draft, from names to figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from specviz.core.errors import PromptError, SettingsError
from specviz.core.ports import OnProgress, Progress, Scorer
from specviz.core.settings import Settings
from specviz.core.vocabulary import check_pair
from specviz.distill.evaluate import AcceptanceFigure, score_texts
from specviz.distill.prompts import Prompt, held_out
from specviz.distill.samples import TeacherText
from specviz.distill.sources import ToyPrompts, read_prompts
from specviz.distill.subject import TOY, Subject, open_subject, target_name
from specviz.distill.teacher import TextRequest
from specviz.engines.distilled import is_distilled
from specviz.engines.toy import DRAFT_NOISE, ToyModel
from specviz.setup import catalog
from specviz.store import store

_MODEL = "model:"


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A draft model without a loop around it.

    Attributes:
        scorer: takes target ids.
        tokens: (Vq,) the target id of each column of its rows; None where they are the same.
        max_context: tokens.
    """

    scorer: Scorer
    tokens: NDArray[np.int32] | None
    max_context: int


def measure(
    draft: str,
    target: str,
    *,
    temperatures: Sequence[float] = (0.0, 0.8),
    max_tokens: int = 128,
    prompts: Path | None = None,
    per_domain: int | None = None,
    seed: int = 0,
    on_progress: OnProgress = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[AcceptanceFigure]:
    """Let the target answer prompts, and score its answers by both.

    Args:
        draft: `model:NAME` or `toy`. target: see `specviz.distill.subject.target_name`.
        temperatures: of the answers, and of both models.
        max_tokens: of an answer.
        prompts: of a file; None for the held-out ones.
        per_domain: only the first so many prompts of each domain.
        seed: of the answers.
        cancelled: true ends it, with the texts that are done.

    Returns:
        See `specviz.distill.evaluate.figures`; empty when it was stopped before the first text.

    Raises:
        SettingsError, PromptError: bad input.
        UnknownModelError, UnsupportedModelError, DownloadError, PairingError: as `specviz.setup.catalog.Builder.build`.
    """
    target = target_name(target)
    if draft != TOY and not draft.startswith(_MODEL):
        raise SettingsError(
            f"Acceptance is measured by the draft's distributions, and {draft!r} has none.",
            "Give a model draft: --draft model:NAME.",
        )
    for temperature in temperatures:
        Settings(target=target, draft=draft, temperature=temperature, max_tokens=max_tokens, seed=seed)
    if per_domain is not None and per_domain < 1:
        raise SettingsError(f"--per-domain must be at least 1, not {per_domain}.")
    catalog.check(Settings(target=target, draft=draft))
    asked = _prompts(prompts, target, per_domain, seed)
    subject = open_subject(target, on_progress, cancelled)
    opened = open_draft(draft, subject, on_progress, cancelled)
    requests = _requests(asked, subject, opened, sorted(set(temperatures)), max_tokens, seed)
    written: list[tuple[int, TeacherText]] = []
    for entry in subject.teacher.write(requests):
        written.append(entry)
        on_progress(Progress("The target answers", len(written), len(requests), "texts"))
    samples = [sample for _, sample in sorted(written, key=lambda entry: entry[0])]
    return score_texts(
        samples,
        subject.scorer,
        opened.scorer,
        opened.tokens,
        lambda done: on_progress(Progress("Scoring", done, len(samples), "texts")),
        cancelled,
    )


def open_draft(
    name: str, subject: Subject, on_progress: OnProgress = lambda _: None, cancelled: Callable[[], bool] = lambda: False
) -> Draft:
    """Load a draft for a loaded target.

    Raises:
        UnknownModelError, UnsupportedModelError, DownloadError: it cannot be had.
        PairingError: it is for another target.
    """
    if name == TOY:
        return Draft(ToyModel(DRAFT_NOISE).scorer(), None, ToyModel.max_context)
    name = name.removeprefix(_MODEL)
    if is_distilled(store.pull(name, on_progress, cancelled)):
        from specviz.setup import loading

        distilled = loading.load_draft(name, on_progress, cancelled)
        distilled.check_target(subject.vocabulary)
        return Draft(distilled.scorer(), distilled.vocabulary.tokens, distilled.max_context)
    from specviz.setup import loading

    # The target as its own draft is a check of the measure: acceptance 1.
    own = subject.model
    model = own if own and own.name == name else loading.load_model(name, on_progress, cancelled)
    check_pair(model.tokenizer.vocabulary, subject.vocabulary)
    return Draft(model.scorer(), None, model.max_context)


def _prompts(path: Path | None, target: str, per_domain: int | None, seed: int) -> list[Prompt]:
    if path is not None:
        found = read_prompts(path)
    elif target == TOY:
        found = ToyPrompts(-1 - seed).prompts(0, 64, ())
    else:
        found = list(held_out())
    if per_domain is None:
        return found
    seen: dict[str, int] = {}
    kept = []
    for prompt in found:
        seen[prompt.domain] = seen.get(prompt.domain, 0) + 1
        if seen[prompt.domain] <= per_domain:
            kept.append(prompt)
    return kept


def _requests(
    prompts: Sequence[Prompt],
    subject: Subject,
    draft: Draft,
    temperatures: Sequence[float],
    max_tokens: int,
    seed: int,
) -> list[TextRequest]:
    room = min(subject.max_context, draft.max_context) - max_tokens
    requests = []
    for number, prompt in enumerate(prompts, 1):
        ids = tuple(subject.prompt_ids(prompt.text))
        if len(ids) > room:
            raise PromptError(
                f"Prompt {number} has {len(ids):,} tokens; with {max_tokens} of the answer they do not fit the context "
                f"of target and draft, which is {room + max_tokens:,}.",
                "Shorten it, or leave it out.",
            )
        for temperature in temperatures:
            own = np.random.SeedSequence((seed, number)).generate_state(1)[0]
            requests.append(TextRequest(prompt.domain, ids, temperature, max_tokens, int(own)))
    return requests
