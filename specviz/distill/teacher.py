"""The target writes training texts, many at a time, with the distributions that their tokens were drawn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from specviz.core.ports import Scorer
from specviz.core.sampling import draw_from
from specviz.core.settings import Sampling
from specviz.distill.samples import TeacherRows, TeacherText, rows_of, stack_rows

if TYPE_CHECKING:
    from specviz.engines.mlx.language_model import LanguageModel

#: Texts that are generated in one batch.
BATCH = 24


@dataclass(frozen=True, slots=True)
class TextRequest:
    """One text to write.

    Attributes:
        domain: is kept with the text.
        prompt_ids: with the chat template.
        temperature: at 0 the most probable token is taken.
        max_tokens: a text ends there, or with a stop token, which is part of it.
        seed: of the draws of this text only, so that it does not depend on the other texts.
    """

    domain: str
    prompt_ids: tuple[int, ...]
    temperature: float
    max_tokens: int
    seed: int


class Teacher(Protocol):
    """Writes texts."""

    def write(self, requests: Sequence[TextRequest]) -> Iterator[tuple[int, TeacherText]]:
        """Each text with the index of its request, in the order in which the texts end."""
        ...


class _Text:
    """A text while it is written."""

    def __init__(self, request: TextRequest) -> None:
        self._request = request
        self._token_ids: list[int] = []
        self._rows: list[TeacherRows] = []

    def add(self, token_id: int, row: TeacherRows) -> None:
        self._token_ids.append(token_id)
        self._rows.append(row)

    def sample(self) -> TeacherText:
        r = self._request
        ids = np.array(self._token_ids, dtype=np.int32)
        return TeacherText(r.domain, r.temperature, np.array(r.prompt_ids, dtype=np.int32), ids, stack_rows(self._rows))


class ScorerTeacher:
    """Writes one text after the other, with any scorer: for the toy."""

    def __init__(self, scorer: Scorer, stop_ids: frozenset[int], cancelled: Callable[[], bool] = lambda: False) -> None:
        """Use the scorer; `cancelled` is called at every text, and true ends `write`."""
        self._scorer, self._stop_ids, self._cancelled = scorer, stop_ids, cancelled

    def write(self, requests: Sequence[TextRequest]) -> Iterator[tuple[int, TeacherText]]:
        """See `Teacher`."""
        for index, request in enumerate(requests):
            if self._cancelled():
                return
            rng = np.random.default_rng(request.seed)
            ids, token_ids, logits = list(request.prompt_ids), [], []
            for _ in range(request.max_tokens):
                row = self._scorer.score(ids, 1)[0]
                token_id, _ = draw_from(row, Sampling(request.temperature), rng)
                token_ids.append(token_id)
                logits.append(row)
                ids.append(token_id)
                if token_id in self._stop_ids:
                    break
            prompt_ids = np.array(request.prompt_ids, dtype=np.int32)
            own = np.array(token_ids, dtype=np.int32)
            yield index, TeacherText(request.domain, request.temperature, prompt_ids, own, rows_of(np.stack(logits)))


class BatchTeacher:
    """Writes many texts together with mlx-lm's `BatchGenerator`: where one ends, the next one takes its place."""

    def __init__(self, model: LanguageModel, batch: int = BATCH, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Use the model's weights.

        Args:
            cancelled: called at every token; true ends `write` with the texts that are done.
        """
        self._model, self._batch, self._cancelled = model, batch, cancelled
        _use_own_layers(model.model)

    def write(self, requests: Sequence[TextRequest]) -> Iterator[tuple[int, TeacherText]]:
        """See `Teacher`."""
        from mlx_lm.generate import BatchGenerator

        generator: Any = BatchGenerator(  # its methods have no annotations
            self._model.model,
            stop_tokens=[[i] for i in sorted(self._model.tokenizer.stop_ids)],
            completion_batch_size=self._batch,
            prefill_batch_size=self._batch,
        )
        try:
            uids = generator.insert(
                [list(r.prompt_ids) for r in requests],
                max_tokens=[r.max_tokens for r in requests],
                samplers=[_Sampler(r.temperature, r.seed, self._model.tokenizer.vocab_size) for r in requests],
            )
            index_of = {uid: i for i, uid in enumerate(uids)}
            growing = {uid: _Text(r) for uid, r in zip(uids, requests, strict=True)}
            while growing and not self._cancelled():
                responses = generator.next()[1]
                for uid in self._take(responses, growing):
                    yield index_of[uid], growing.pop(uid).sample()
        finally:
            generator.close()

    def _take(self, responses: Sequence[Any], growing: dict[int, _Text]) -> list[int]:
        """Add one token to each text; returns those that have ended."""
        import mlx.core as mx

        if not responses:
            return []
        logprobs = np.array(mx.stack([r.logprobs for r in responses]).astype(mx.float32))
        rows = rows_of(logprobs[:, : self._model.tokenizer.vocab_size])
        for i, response in enumerate(responses):
            own = TeacherRows(rows.ids[i : i + 1], rows.logprobs[i : i + 1], rows.log_sums[i : i + 1])
            growing[response.uid].add(response.token, own)
        return [r.uid for r in responses if r.finish_reason is not None]


class _Sampler:
    """Draws the tokens of one text, never from the padding of the vocabulary."""

    def __init__(self, temperature: float, seed: int, vocab_size: int) -> None:
        import mlx.core as mx

        self._temperature, self._vocab_size = temperature, vocab_size
        self._key = mx.random.key(seed)

    def __call__(self, logprobs: Any) -> Any:
        import mlx.core as mx

        real = logprobs[:, : self._vocab_size]
        if self._temperature == 0:
            return mx.argmax(real, axis=-1)
        self._key, key = mx.random.split(self._key)
        return mx.random.categorical(real / self._temperature, key=key)


def _use_own_layers(model: Any) -> None:
    """Undo `specviz.engines.mlx.cpu_exp`: its attention cannot take the mask of a batch, (B, 1, L, N)."""
    for module in model.modules():
        kind = type(module)
        if kind.__module__ == "specviz.engines.mlx.cpu_exp":
            module.__class__ = next(k for k in kind.__mro__ if k.__module__.startswith("mlx_lm."))
