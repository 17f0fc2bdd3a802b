"""Three streams of randomness: independent, opened at any time, the same on every machine."""

import numpy as np
import pytest

from specviz.core.noise import Noise, derived_seed


def first(rng: np.random.Generator) -> float:
    return float(rng.random())


def test_each_stream_is_philox_with_the_documented_key_and_counter() -> None:
    """A server can rebuild them from the seed and the round alone."""

    def philox(key: list[int], counter: list[int]) -> float:
        words = {"key": np.array(key, dtype=np.uint64), "counter": np.array(counter, dtype=np.uint64)}
        return first(np.random.Generator(np.random.Philox(**words)))

    noise = Noise(12345, 6)
    assert first(noise.shared(77)) == philox([12345, 0], [0, 0, 0, 77])
    assert first(noise.target()) == philox([12345, 1], [0, 0, 0, 6])
    assert first(noise.draft(3)) == philox([12345, 2], [0, 0, 3, 6])


def test_no_two_streams_share_a_draw() -> None:
    draws = [
        value
        for seed in (0, 1, 2**63 - 1)
        for number in range(8)
        for rng in (Noise(seed, number).target(), *(Noise(seed, number).draft(b) for b in range(4)))
        for value in rng.random(50)
    ]
    draws += [value for seed in (0, 1) for position in range(20) for value in Noise(seed).shared(position).random(50)]
    assert len(set(draws)) == len(draws)


def test_a_stream_is_the_same_whenever_it_is_opened() -> None:
    noise = Noise(5, 2)
    later = noise.draft().random(9).tolist()
    noise.target().random(1000)
    assert noise.draft().random(9).tolist() == later == Noise(5, 2).draft(0).random(9).tolist()
    assert Noise(5, 3).shared(4).random() == Noise(5, 9).shared(4).random(), "by position, whatever the round"


def test_seed_0_is_a_seed_like_any_other() -> None:
    """Reported as vllm#6038."""
    assert first(Noise(0).target()) == first(Noise(0).target()) != first(Noise(1).target())


def test_derived_seeds_differ_by_every_index() -> None:
    seeds = {derived_seed(s, prompt, repeat) for s in (0, 42) for prompt in range(20) for repeat in range(5)}
    assert len(seeds) == 200 and all(0 <= seed < 2**64 for seed in seeds)
    assert derived_seed(1, 2, 3) == derived_seed(1, 2, 3) != derived_seed(1, 3, 2)


@pytest.mark.parametrize("bits", [32, 48])
def test_streams_look_uniform_across_rounds(bits: int) -> None:
    values = np.array([first(Noise(1 << bits, number).target()) for number in range(4000)])
    counts = np.histogram(values, bins=10, range=(0, 1))[0]
    assert abs(counts - 400).max() < 100 and abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 0.06
