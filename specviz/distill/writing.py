"""The target writes: texts to measure by, then texts to learn from, shard by shard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specviz.core.errors import PromptError
from specviz.core.ports import Progress
from specviz.distill.prompts import Prompt, held_out
from specviz.distill.recipe import Recipe
from specviz.distill.samples import SOFT_TEMPERATURES, Shard, TeacherText, load_shard, save_shard
from specviz.distill.sources import Source, ToyPrompts
from specviz.distill.subject import TOY, Subject
from specviz.distill.teacher import TextRequest
from specviz.distill.workplace import Workplace

#: Of training texts; they take turns.
TEMPERATURES = (0.0, 0.5, 0.8, 1.0)
HELD_OUT_TEMPERATURES = (0.0, SOFT_TEMPERATURES[0])
HELD_OUT_TOKENS = 128
SHARD_TEXTS = 48
#: The share of the time that goes to writing.
WRITTEN = 0.45


@dataclass(frozen=True, slots=True)
class Wrote:
    """News of the writing of texts."""

    texts: int
    tokens: int
    tokens_per_s: float
    left_s: float


class Writing:
    """Both kinds of texts; those of earlier sessions are found and kept."""

    def __init__(
        self,
        recipe: Recipe,
        place: Workplace,
        subject: Subject,
        on_news: Callable[[Progress | Wrote], None],
        cancelled: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._recipe, self._place, self._subject = recipe, place, subject
        self._news, self._cancelled, self._clock = on_news, cancelled, clock
        self._total_s = recipe.minutes * 60

    def held_out(self) -> Shard:
        """Texts to measure by; written first, so that progress can be measured."""
        if self._place.held_out.exists():
            return load_shard(self._place.held_out)
        requests = [
            self._request(prompt, temperature, HELD_OUT_TOKENS, index, held_out=True)
            for index, prompt in enumerate(self._held_out_prompts())
            for temperature in HELD_OUT_TEMPERATURES
        ]
        began = self._clock()
        written: list[tuple[int, TeacherText]] = []
        for entry in self._subject.teacher.write(requests):
            written.append(entry)
            self._news(Progress("Writing held-out texts", len(written), len(requests), "texts"))
        shard = Shard(tuple(sample for _, sample in sorted(written, key=_index)), self._clock() - began)
        return save_shard(self._place.held_out, shard) if len(written) == len(requests) else shard

    def _held_out_prompts(self) -> list[Prompt]:
        """More of them in a longer run, as many of each domain: with their evaluation they take a tenth of the time."""
        each = max(1, int(self._recipe.minutes / 10))
        if self._subject.name == TOY:
            # Negative seeds are nobody's.
            return ToyPrompts(-1 - self._recipe.seed).prompts(0, 8 * max(2, each), ())
        by_domain: dict[str, list[Prompt]] = {}
        for prompt in held_out():
            by_domain.setdefault(prompt.domain, []).append(prompt)
        return [prompt for prompts in by_domain.values() for prompt in prompts[:each]]

    def texts(self, source: Source, spent_s: float) -> list[Shard]:
        """Shards of training texts, those of earlier sessions first."""
        shards = self._place.shards()
        if self._place.vocabulary() is not None:
            return shards
        answers = [a for shard in shards for a in self._answers(shard)]
        tokens = sum(len(s.token_ids) for shard in shards for s in shard.samples)
        spent_s += sum(shard.seconds for shard in shards)
        while not self._cancelled() and not self._enough(tokens, spent_s):
            prompts = source.prompts(len(shards) * SHARD_TEXTS, SHARD_TEXTS, answers)
            requests = [
                self._request(p, TEMPERATURES[i % len(TEMPERATURES)], self._recipe.max_tokens, len(shards) * 1000 + i)
                for i, p in enumerate(prompts)
            ]
            began = self._clock()
            written: list[tuple[int, TeacherText]] = []
            for entry in self._subject.teacher.write(requests):
                written.append(entry)
                tokens += len(entry[1].token_ids)
                elapsed = max(1e-9, self._clock() - began)
                rate = sum(len(s.token_ids) for _, s in written) / elapsed
                texts = len(shards) * SHARD_TEXTS + len(written)
                self._news(Wrote(texts, tokens, rate, self._total_s - spent_s - elapsed))
            if not written:
                break
            shard = Shard(tuple(sample for _, sample in sorted(written, key=_index)), self._clock() - began)
            if len(written) == len(requests):
                # A shard that was cut short would not be the one that the next session writes.
                shard = self._place.save_texts(len(shards), shard)
            shards.append(shard)
            answers += self._answers(shard)
            spent_s += shard.seconds
        return shards

    def _enough(self, tokens: int, spent_s: float) -> bool:
        if self._recipe.tokens is not None:
            return tokens >= self._recipe.tokens
        # One shard at least, however short the time.
        return tokens > 0 and spent_s >= WRITTEN * self._total_s

    def _answers(self, shard: Shard) -> list[str]:
        return [self._subject.tokenizer.decode([int(i) for i in s.token_ids]).strip() for s in shard.samples]

    def check_prompt(self, prompt: Prompt) -> None:
        """Refuse a prompt that leaves no room for an answer."""
        self._request(prompt, 0.0, self._recipe.max_tokens, 0)

    def _request(
        self, prompt: Prompt, temperature: float, max_tokens: int, number: int, held_out: bool = False
    ) -> TextRequest:
        ids = self._subject.prompt_ids(prompt.text)
        if len(ids) + max_tokens > self._subject.max_context:
            raise PromptError(
                f"The prompt {prompt.text[:60]!r}… has {len(ids):,} tokens; with {max_tokens} of the answer they do "
                f"not fit the target's context of {self._subject.max_context:,}.",
                "Shorten it, or leave it out.",
            )
        seed = np.random.SeedSequence((self._recipe.seed, int(held_out), number)).generate_state(1)[0]
        return TextRequest(prompt.domain, tuple(ids), temperature, max_tokens, int(seed))


def _index(entry: tuple[int, TeacherText]) -> int:
    return entry[0]
