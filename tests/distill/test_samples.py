from pathlib import Path

import numpy as np
import pytest

from specviz.core.errors import RunError
from specviz.distill.samples import FLOOR, SOFT_TEMPERATURES, Shard, TeacherText, load_shard, rows_of, save_shard


def sample(
    length: int, prompt: int = 3, domain: str = "chat", temperature: float = 0.8, vocabulary: int = 90
) -> TeacherText:
    rng = np.random.default_rng((length, prompt))
    rows = rows_of(rng.normal(size=(length, vocabulary)).astype(np.float32) * 3, 8)
    ids = rng.integers(0, vocabulary, length).astype(np.int32)
    return TeacherText(domain, temperature, rng.integers(0, vocabulary, prompt).astype(np.int32), ids, rows)


def test_rows_hold_the_most_probable_tokens_and_the_exact_normalisers() -> None:
    logits = np.random.default_rng(1).normal(size=(7, 50)).astype(np.float32) * 4 + 100
    rows = rows_of(logits, 6)
    logprobs = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    logprobs -= np.log(np.exp(logprobs).sum(axis=1, keepdims=True))
    for i in range(7):
        assert set(rows.ids[i]) == set(np.argsort(-logits[i])[:6])
    np.testing.assert_allclose(rows.logprobs, np.take_along_axis(logprobs, rows.ids.astype(int), axis=1), atol=1e-4)
    for number, t in enumerate(SOFT_TEMPERATURES):
        np.testing.assert_allclose(rows.log_sums[:, number], np.log(np.exp(logprobs / t).sum(axis=1)), atol=1e-4)


def test_tokens_of_probability_0_are_at_the_floor() -> None:
    logits = np.full((2, 9), -np.inf, dtype=np.float32)
    logits[:, 4] = 1.0
    rows = rows_of(logits, 3)
    assert sorted(rows.logprobs[0]) == [FLOOR, FLOOR, 0.0]


def test_a_shard_is_read_as_it_was_written(tmp_path: Path) -> None:
    samples = (sample(5), sample(1, prompt=9, domain="žluť", temperature=0.0), sample(12))
    save_shard(tmp_path / "s.npz", Shard(samples, 1.5))
    read = load_shard(tmp_path / "s.npz")
    assert read.seconds == 1.5 and len(read.samples) == 3
    for ours, theirs in zip(samples, read.samples, strict=True):
        assert (ours.domain, ours.temperature) == (theirs.domain, theirs.temperature)
        np.testing.assert_array_equal(ours.prompt_ids, theirs.prompt_ids)
        np.testing.assert_array_equal(ours.token_ids, theirs.token_ids)
        np.testing.assert_array_equal(ours.rows.ids, theirs.rows.ids)
        np.testing.assert_allclose(ours.rows.logprobs, theirs.rows.logprobs, rtol=1e-3)
    assert [p.name for p in tmp_path.iterdir()] == ["s.npz"]


@pytest.mark.parametrize("keep", [0, 10, 700])
def test_a_cut_shard_is_refused_with_its_name(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "s.npz"
    save_shard(path, Shard((sample(40),), 1.0))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(RunError, match=r"s\.npz is damaged"):
        load_shard(path)
