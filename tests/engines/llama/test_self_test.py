"""The logits that the self-test knows are those of a Llama, computed here by numpy from the weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from specviz.engines.llama import self_test, usable
from tests.engines.llama.known import HEADS, WIDTH, write_known

Floats = NDArray[np.float32]


def weights() -> dict[str, Floats]:
    import gguf

    return {
        t.name.removesuffix(".weight"): gguf.quants.dequantize(t.data, t.tensor_type).reshape(t.shape[::-1])
        for t in gguf.GGUFReader(self_test.FILE).tensors
    }


def normed(x: Floats, weight: Floats) -> Floats:
    out: Floats = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight
    return out


def turned(x: Floats) -> Floats:
    """Rotary embedding (Su et al. 2021) of (tokens, heads, dimensions), on pairs of neighbours."""
    tokens, _, size = x.shape
    angles = np.arange(tokens)[:, None] / 10_000.0 ** (np.arange(0, size, 2) / size)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    even, odd = x[..., 0::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., 0::2], out[..., 1::2] = even * cos - odd * sin, even * sin + odd * cos
    return out


def by_numpy() -> Floats:
    w, ids = weights(), list(self_test.IDS)
    x = w["token_embd"][ids]
    h = normed(x, w["blk.0.attn_norm"])
    size = WIDTH // HEADS
    q = turned((h @ w["blk.0.attn_q"].T).reshape(len(ids), HEADS, size))
    k = turned((h @ w["blk.0.attn_k"].T).reshape(len(ids), 1, size))
    v = h @ w["blk.0.attn_v"].T
    scores = np.einsum("ihd,jd->hij", q, k[:, 0]) / np.sqrt(size)
    scores = np.where(np.tril(np.ones((len(ids), len(ids)), bool)), scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    x = x + np.einsum("hij,jd->ihd", shares, v).reshape(len(ids), WIDTH) @ w["blk.0.attn_output"].T
    h = normed(x, w["blk.0.ffn_norm"])
    gate = h @ w["blk.0.ffn_gate"].T
    x = x + (gate / (1 + np.exp(-gate)) * (h @ w["blk.0.ffn_up"].T)) @ w["blk.0.ffn_down"].T
    row: Floats = (normed(x, w["output_norm"]) @ w["token_embd"].T)[-1].astype(np.float32)
    return row


def test_what_is_known_follows_from_the_weights() -> None:
    np.testing.assert_allclose(by_numpy(), self_test.KNOWN, atol=0.006)


def test_the_file_is_the_one_that_its_script_writes(tmp_path: Path) -> None:
    write_known(tmp_path / "known.gguf")
    assert (tmp_path / "known.gguf").read_bytes() == self_test.FILE.read_bytes()


def test_the_library_is_right_here() -> None:
    assert self_test.wrong() < self_test.TOLERANCE


@pytest.fixture
def fresh() -> Iterator[None]:
    usable.problem.cache_clear()
    yield
    usable.problem.cache_clear()


def test_a_library_with_wrong_scores_is_not_used(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = self_test.logits
    monkeypatch.setattr(self_test, "logits", lambda: right()[::-1])
    assert usable.problem() == "The GGUF engine computes wrong scores on this machine."
