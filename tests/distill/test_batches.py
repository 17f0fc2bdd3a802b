import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from specviz.distill.batches import LONGEST, Collator, plan
from specviz.distill.samples import FLOOR, TeacherText, rows_of
from specviz.engines.distilled import DraftVocabulary

VOCABULARY = DraftVocabulary(np.array([1, 3, 4], dtype=np.int32), np.array([0, 0, 2, 1, 2, 0], dtype=np.int32))


def sample(prompt: list[int], text: list[int]) -> TeacherText:
    logits = np.zeros((len(text), 6), dtype=np.float32)
    logits[np.arange(len(text)), text] = 5.0
    return TeacherText("chat", 0.8, np.array(prompt, np.int32), np.array(text, np.int32), rows_of(logits, 2))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 200), st.integers(0, 5))
def test_each_text_is_in_one_batch_and_no_batch_is_too_wide(lengths: list[int], tokens: int, epoch: int) -> None:
    batches = plan(lengths, tokens, 0, epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= tokens
    assert batches == plan(lengths, tokens, 0, epoch)


def test_only_tokens_of_the_target_are_predicted_each_from_those_before_it() -> None:
    batch = Collator(VOCABULARY).batch([sample([5, 1], [3, 4]), sample([1], [3, 4, 1])])
    # Ids by `inputs`: 5 is read as 0; the last token of a text is no input.
    assert batch.inputs.tolist() == [[0, 0, 1], [0, 1, 2]]
    assert batch.positions.tolist() == [1, 2, 3, 4, 5]
    best = batch.ids[np.arange(5), batch.logprobs.argmax(axis=1)]
    assert VOCABULARY.tokens[best].tolist() == [3, 4, 3, 4, 1]


def test_tokens_that_the_draft_does_not_have_are_at_the_floor() -> None:
    batch = Collator(VOCABULARY).batch([sample([1], [5])])
    assert batch.logprobs.min() == np.float32(FLOOR) and batch.ids.min() >= 0


def test_the_first_tokens_of_a_long_text_are_cut_off() -> None:
    text = [3, 4] * 10
    long = sample([1] * (2 * LONGEST), text)
    collator = Collator(VOCABULARY)
    batch = collator.batch([long])
    assert batch.inputs.shape == (1, LONGEST) and collator.length(long) == LONGEST
    assert len(batch.positions) == 20 and batch.positions[-1] == LONGEST - 1
