"""Both teachers write by what they say they drew from."""

import numpy as np
import pytest

from specviz.core.wait import Wait
from specviz.distill.samples import TeacherText
from specviz.distill.subject import open_subject, subject_of
from specviz.distill.teacher import ScorerTeacher, TextRequest
from specviz.engines.mlx.language_model import LanguageModel


def request(prompt: str, model: LanguageModel, temperature: float, seed: int = 0, tokens: int = 12) -> TextRequest:
    return TextRequest("chat", tuple(model.tokenizer.encode(prompt)), temperature, tokens, seed)


def written(teacher: object, requests: list[TextRequest]) -> list[TeacherText]:
    found = dict(teacher.write(requests))  # type: ignore[attr-defined]
    assert sorted(found) == list(range(len(requests)))
    return [found[i] for i in range(len(requests))]


PROMPTS = (
    "the sky is blue",
    "red",
    "because the air scatters blue light more than red light, and the sun",
    "bright sun",
)


def test_a_batch_writes_the_same_as_one_text_at_a_time(tiny: LanguageModel) -> None:
    requests = [request(p, tiny, 0.0) for p in PROMPTS]
    one_by_one = written(ScorerTeacher(tiny.scorer(), tiny.tokenizer.stop_ids), requests)
    together = written(subject_of(tiny).teacher, requests)
    for a, b in zip(one_by_one, together, strict=True):
        assert a.token_ids.tolist() == b.token_ids.tolist()
        np.testing.assert_allclose(a.rows.log_sums, b.rows.log_sums, atol=1e-3)
        np.testing.assert_allclose(np.sort(a.rows.logprobs), np.sort(b.rows.logprobs), atol=1e-3)


def test_a_text_does_not_depend_on_the_others_of_its_batch(tiny: LanguageModel) -> None:
    teacher = subject_of(tiny).teacher
    requests = [request(p, tiny, 0.8, seed) for seed, p in enumerate(PROMPTS)]
    together = written(teacher, requests)
    for alone, beside in zip((written(teacher, [r])[0] for r in requests), together, strict=True):
        assert alone.token_ids.tolist() == beside.token_ids.tolist()
    other = written(teacher, [request(PROMPTS[0], tiny, 0.8, seed=9)])[0]
    assert other.token_ids.tolist() != together[0].token_ids.tolist()


def test_texts_end_with_a_stop_token_or_at_their_length(tiny: LanguageModel) -> None:
    samples = written(subject_of(tiny).teacher, [request(PROMPTS[i % 4], tiny, 1.0, i, 40) for i in range(30)])
    stops = tiny.tokenizer.stop_ids
    assert any(int(s.token_ids[-1]) in stops for s in samples)
    for sample in samples:
        assert not stops & set(sample.token_ids[:-1].tolist())
        assert len(sample.token_ids) == 40 or int(sample.token_ids[-1]) in stops


def test_padding_rows_are_neither_drawn_nor_kept(tiny: LanguageModel) -> None:
    real = tiny.tokenizer.vocab_size
    assert tiny.vocab_size > real
    for sample in written(subject_of(tiny).teacher, [request(p, tiny, 1.0, 5) for p in PROMPTS]):
        assert sample.token_ids.max() < real and sample.rows.ids.max() < real


@pytest.mark.parametrize("target", ["toy", "tiny"])
def test_a_stop_ends_the_writing(target: str, tiny: LanguageModel) -> None:
    asked = iter([False, False, False, True, True, True])

    def cancelled() -> bool:
        return next(asked)

    subject = open_subject("toy", Wait(cancelled=cancelled)) if target == "toy" else subject_of(tiny, cancelled)
    ids = tuple(subject.prompt_ids("the sky"))
    assert len(list(subject.teacher.write([TextRequest("a", ids, 0.0, 2, 0)] * 9))) < 9


def test_the_toy_draws_from_its_table() -> None:
    subject = open_subject("toy")
    ids = tuple(subject.prompt_ids(" the draft"))
    sample = written(subject.teacher, [TextRequest("toy", ids, 0.0, 20, 0)])[0]
    context = list(ids)
    for token_id in sample.token_ids:
        assert token_id == int(np.argmax(subject.scorer.score(context, 1)[0]))
        context.append(int(token_id))
