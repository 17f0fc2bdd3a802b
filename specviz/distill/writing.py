"""The target writes: texts to measure with, then texts to learn from, shard by shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from specviz.core.errors import PromptError
from specviz.core.names import TOY
from specviz.core.wait import Progress
from specviz.distill.prompts import Prompt, first_of_each, held_out
from specviz.distill.recipe import Recipe
from specviz.distill.samples import SOFT_TEMPERATURES, Shard, TeacherText, load_shard, save_shard
from specviz.distill.sources import Source, ToyPrompts
from specviz.distill.subject import Subject
from specviz.distill.teacher import TextRequest
from specviz.distill.workplace import Workplace

#: Of training texts; they take turns.
TEMPERATURES = (0.0, 0.5, 0.8, 1.0)
HELD_OUT_TEMPERATURES = (0.0, SOFT_TEMPERATURES[0])
HELD_OUT_TOKENS = 128
SHARD_TEXTS = 48
#: The share of the time that is over when writing ends.
WRITTEN = 0.45


@dataclass(frozen=True, slots=True)
class Wrote:
    """Progress of the writing of training texts.

    Attributes:
        texts, tokens: so far, over all sessions.
        tokens_per_s: of the shard in progress.
        left_s: until the run is over, training included.
    """

    texts: int
    tokens: int
    tokens_per_s: float
    left_s: float


@dataclass(frozen=True, slots=True)
class Learned:
    """Progress of the training.

    Attributes:
        step, tokens: so far, over all sessions.
        loss: mean since the last report; None at a checkpoint before the first step.
        acceptance: temperature → acceptance on held-out texts, at a checkpoint; None between two checkpoints.
        left_s: until the run is over.
    """

    step: int
    tokens: int
    loss: float | None
    acceptance: Mapping[float, float] | None
    left_s: float


News = Progress | Wrote | Learned
OnNews = Callable[[News], None]


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """What all stages of a run share.

    Attributes:
        recipe: the settings. place: what is kept on the disk. subject: the target.
        on_news: receives the progress.
        cancelled: true ends the stage.
        clock: seconds, from any start.
    """

    recipe: Recipe
    place: Workplace
    subject: Subject
    on_news: OnNews
    cancelled: Callable[[], bool]
    clock: Callable[[], float]

    @property
    def total_s(self) -> float:
        """The time for the whole run."""
        return self.recipe.minutes * 60


class Writer:
    """Writes both kinds of texts. Those of earlier sessions are read from the disk instead."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._recipe, self._place, self._subject = session.recipe, session.place, session.subject

    def held_out(self) -> Shard:
        """Texts to measure with. They are written first, so that progress can be measured."""
        if self._place.held_out.exists():
            return load_shard(self._place.held_out)
        requests = [
            self._request(prompt, temperature, HELD_OUT_TOKENS, number, held_out=True)
            for number, prompt in enumerate(self._held_out_prompts())
            for temperature in HELD_OUT_TEMPERATURES
        ]

        def news(written: Sequence[TeacherText], _: float) -> None:
            self._session.on_news(Progress("Writing held-out texts", len(written), len(requests), "texts"))

        shard = self._write(requests, news)
        return save_shard(self._place.held_out, shard) if len(shard.samples) == len(requests) else shard

    def _held_out_prompts(self) -> list[Prompt]:
        """As many of each domain, and more in a longer run: writing and scoring them takes a tenth of the time."""
        each = max(1, int(self._recipe.minutes / 10))
        if self._subject.name == TOY:
            return ToyPrompts.held_out(self._recipe.seed, 8 * max(2, each))
        return first_of_each(held_out(), each)

    def texts(self, source: Source, spent_s: float) -> list[Shard]:
        """Shards of training texts, those of earlier sessions first.

        Args:
            source: gives the prompts.
            spent_s: seconds of the run that were used before.
        """
        shards = self._place.shards()
        if self._place.vocabulary() is not None:
            return shards
        answers = [answer for shard in shards for answer in self._answers(shard)]
        tokens = sum(shard.tokens for shard in shards)
        spent_s += sum(shard.seconds for shard in shards)
        while not self._session.cancelled() and not self._enough(tokens, spent_s):
            shard = self._shard(len(shards), source, answers, tokens, spent_s)
            if not shard.samples:
                break
            shards.append(shard)
            answers += self._answers(shard)
            tokens, spent_s = tokens + shard.tokens, spent_s + shard.seconds
        return shards

    def _shard(self, number: int, source: Source, answers: Sequence[str], tokens: int, spent_s: float) -> Shard:
        """Write and keep one shard. One that was cut short is not kept: the next session writes it anew."""
        prompts = source.prompts(number * SHARD_TEXTS, SHARD_TEXTS, answers)
        requests = [
            self._request(p, TEMPERATURES[i % len(TEMPERATURES)], self._recipe.max_tokens, number * 1000 + i)
            for i, p in enumerate(prompts)
        ]

        def news(written: Sequence[TeacherText], elapsed: float) -> None:
            own = sum(len(text.token_ids) for text in written)
            left_s = self._session.total_s - spent_s - elapsed
            texts = number * SHARD_TEXTS + len(written)
            self._session.on_news(Wrote(texts, tokens + own, own / max(1e-9, elapsed), left_s))

        shard = self._write(requests, news)
        return self._place.save_texts(number, shard) if len(shard.samples) == len(requests) else shard

    def _write(self, requests: Sequence[TextRequest], news: Callable[[Sequence[TeacherText], float], None]) -> Shard:
        """The texts in the order of their requests; `news` gets those that are done, and the seconds so far."""
        began, written = self._session.clock(), dict[int, TeacherText]()
        for index, text in self._subject.teacher.write(requests):
            written[index] = text
            news(list(written.values()), self._session.clock() - began)
        return Shard(tuple(written[index] for index in sorted(written)), self._session.clock() - began)

    def _enough(self, tokens: int, spent_s: float) -> bool:
        if self._recipe.tokens is not None:
            return tokens >= self._recipe.tokens
        # One shard at least, however short the time.
        return tokens > 0 and spent_s >= WRITTEN * self._session.total_s

    def _answers(self, shard: Shard) -> list[str]:
        return [self._subject.tokenizer.decode([int(i) for i in s.token_ids]).strip() for s in shard.samples]

    def check_prompt(self, prompt: Prompt) -> None:
        """Refuse a prompt that leaves no room for an answer.

        Raises:
            PromptError: see above.
        """
        self._request(prompt, 0.0, self._recipe.max_tokens, 0)

    def _request(
        self, prompt: Prompt, temperature: float, max_tokens: int, number: int, held_out: bool = False
    ) -> TextRequest:
        ids = self._subject.prompt_ids(prompt.text)
        if len(ids) + max_tokens > self._subject.max_context:
            raise PromptError(
                f"The prompt {prompt.text[:60]!r}… has {len(ids):,} tokens. With an answer of {max_tokens} tokens it "
                f"does not fit the target's context of {self._subject.max_context:,} tokens.",
                "Shorten it, or leave it out.",
            )
        seed = np.random.SeedSequence((self._recipe.seed, int(held_out), number)).generate_state(1)[0]
        return TextRequest(prompt.domain, tuple(ids), temperature, max_tokens, int(seed))
