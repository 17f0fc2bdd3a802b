import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from specviz.distill.vocabulary import choose, count, coverage, draft_ids


def test_the_most_frequent_tokens_are_kept_and_those_that_are_always_kept() -> None:
    counts = count([np.array([5, 5, 5, 2, 2, 7], dtype=np.int32), np.array([2, 2], dtype=np.int32)], 10)
    assert counts[2] == 4 and counts[5] == 3 and counts.sum() == 8
    vocabulary = choose(counts, 3, [9])
    assert vocabulary.tokens.tolist() == [2, 5, 9]
    assert coverage(counts, vocabulary) == 7 / 8


def test_without_an_embedding_the_others_are_read_as_the_most_frequent_one() -> None:
    counts = count([np.array([5, 5, 2], dtype=np.int32)], 8)
    vocabulary = choose(counts, 2, [])
    assert vocabulary.inputs.tolist() == [1, 1, 0, 1, 1, 1, 1, 1]


def test_with_an_embedding_they_are_read_as_the_nearest_by_cosine() -> None:
    embeddings = np.array([[1, 0], [0, 1], [100, 1], [0.1, 9], [-1, 0.1], [0, 0]], dtype=np.float32)
    counts = count([np.array([0, 1], dtype=np.int32)], 6)
    vocabulary = choose(counts, 2, [], np.vstack([embeddings, embeddings]))  # with rows of padding
    assert vocabulary.tokens.tolist() == [0, 1]
    assert vocabulary.inputs[:5].tolist() == [0, 1, 0, 1, 1]


def test_tokens_that_do_not_occur_are_not_kept() -> None:
    assert choose(count([np.array([3], dtype=np.int32)], 50), 20, [7]).tokens.tolist() == [3, 7]


@given(
    st.lists(st.integers(0, 29), min_size=1, max_size=80), st.integers(1, 40), st.sets(st.integers(0, 29), max_size=4)
)
def test_the_map_fits_whatever_was_counted(ids: list[int], size: int, always: set[int]) -> None:
    rng = np.random.default_rng(0)
    vocabulary = choose(
        count([np.array(ids, dtype=np.int32)], 30), size, always, rng.normal(size=(30, 4)).astype(np.float32)
    )
    assert always <= set(vocabulary.tokens.tolist())
    assert len(vocabulary.tokens) <= max(size, len(always))
    own = draft_ids(vocabulary)
    assert (own >= 0).sum() == len(vocabulary.tokens)
    np.testing.assert_array_equal(own[vocabulary.tokens], np.arange(len(vocabulary.tokens)))
