"""The loop, on toy models: exact output, stops, budgets, counts, clocks."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.core.decoding import _cut, autoregressive, speculative
from specviz.core.errors import PromptError, RunError
from specviz.core.events import Done, DraftToken, Error, Event, Metrics, RunStarted, VerifyResult
from specviz.core.noise import Noise
from specviz.core.ports import Drafter, Scorer, Target
from specviz.core.rounds import Draft, Explain
from specviz.core.sampling import Logits, Row
from specviz.core.settings import Sampling, Settings
from specviz.drafters.combined import CombinedDrafter
from specviz.drafters.model import ModelDrafter
from specviz.drafters.ngram import NgramDrafter
from specviz.drafters.none import NoDrafter
from specviz.record.state import EMITTED, RunState
from tests.toys import (
    TOKENIZER,
    FixedScorer,
    LetterTokenizer,
    MarkovScorer,
    block,
    block_of,
    combined_draft,
    draft,
    fixed_draft,
    fixed_target,
    local_target,
    markov_target,
    pruned_draft,
    toy_draft,
    toy_target,
)

PROMPT = TOKENIZER.encode("the draft reads and writes the draft")


def run(drafter: Drafter, target: Target, wanted: Settings, prompt: Sequence[int] = PROMPT) -> list[Event]:
    return list(speculative(drafter, target, prompt, wanted, seed=wanted.seed))


def done(events: Sequence[Event]) -> Done:
    assert isinstance(events[-1], Done), events[-1]
    return events[-1]


class Scripted:
    """Proposes given ids, one-hot."""

    name: str = "scripted"
    max_context: int | None = None

    def __init__(self, *blocks: Sequence[int]) -> None:
        self._blocks: Iterator[Sequence[int]] = iter(blocks)

    def propose(
        self, context_ids: Sequence[int], k: int, sampling: Sampling, noise: Noise, n: int = 1, explain: Explain = 2
    ) -> Draft:
        ids = tuple(next(self._blocks, ()))[:k]
        return draft(block(*ids))

    def reset(self) -> None:
        pass


class Cycle(Scorer):
    """A target whose greedy text counts up: after id i comes i + 1."""

    def __init__(self, size: int = 10) -> None:
        self._size = size

    def score(self, token_ids: Sequence[int], rows: int) -> np.ndarray:
        out = np.zeros((rows, self._size), dtype=np.float32)
        for row, last in enumerate(token_ids[len(token_ids) - rows :]):
            out[row, (last + 1) % self._size] = 10
        return out

    def reset(self) -> None:
        pass


def cycle_target(stop_ids: Sequence[int] = (), max_context: int = 1000, pieces: Sequence[str] = "abcdefghij") -> Target:
    scorer = Cycle(len(pieces))
    return local_target("cycle", scorer, LetterTokenizer(pieces), len(pieces), max_context, frozenset(stop_ids))


DRAFTERS: dict[str, Callable[[], Drafter]] = {
    "toy": lambda: toy_draft(stop_ids=TOKENIZER.stop_ids),
    "toy, poor": lambda: toy_draft(noise=5.0),
    "toy, perfect": lambda: toy_draft(noise=0.0),
    "toy, its own vocabulary": lambda: pruned_draft(stop_ids=TOKENIZER.stop_ids),
    "toy, ends early": lambda: toy_draft(min_confidence=0.3),
    "ngram": NgramDrafter,
    "ngram and toy": combined_draft,
    "ngram and toy, ends early": lambda: combined_draft(shortest=3, min_confidence=0.3),
    "none": NoDrafter,
}


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("k", range(1, 17))
def test_greedy_speculative_is_greedy_plain(name: str, k: int) -> None:
    wanted = Settings(k=k, max_tokens=60)
    plain = done(list(autoregressive(toy_target(), PROMPT, wanted, seed=0)))
    assert done(run(DRAFTERS[name](), toy_target(), wanted)).token_ids == plain.token_ids


@pytest.mark.parametrize("rule", ["probabilistic", "deterministic", "greedy"])
def test_every_lossless_rule_agrees_at_temperature_0(rule: str) -> None:
    wanted = Settings(rule=rule, max_tokens=50)  # type: ignore[arg-type]
    plain = done(list(autoregressive(toy_target(), PROMPT, wanted, seed=0)))
    assert done(run(toy_draft(), toy_target(), wanted)).token_ids == plain.token_ids


@pytest.mark.parametrize("seed", [0, 42])
@pytest.mark.parametrize("draft", ["toy", "ngram", "ngram and toy, ends early"])
def test_equal_seeds_give_equal_runs(seed: int, draft: str) -> None:
    """0 is a seed like any other (vllm#6038)."""
    wanted = Settings(temperature=2.0, seed=seed, max_tokens=40)
    first, again = (done(run(DRAFTERS[draft](), toy_target(), wanted)) for _ in range(2))
    other = done(run(DRAFTERS[draft](), toy_target(), dataclasses.replace(wanted, seed=seed + 1)))
    assert first.token_ids == again.token_ids != other.token_ids


# Sampled output.


def sampled_distance(pick_rule: str, n: int = 6_000) -> tuple[float, float]:
    """Total variation between two-token outputs of a toy pair and the target's own; the sampling error to expect."""
    p, q = np.array([0.4, 0.35, 0.25]), np.array([0.1, 0.1, 0.8])
    counts = np.zeros((3, 3))
    for seed in range(n):
        if pick_rule == "speculatoviz":
            first, second = speculatoviz_pair(p, q, np.random.default_rng(seed))
        else:
            wanted = Settings(temperature=1.0, k=2, max_tokens=2, seed=seed, rule=pick_rule)  # type: ignore[arg-type]
            first, second = done(run(fixed_draft(q.tolist()), fixed_target(p.tolist()), wanted, [0])).token_ids
        counts[first, second] += 1
    expected = np.outer(p, p)
    noise = 0.5 * float(np.sqrt(2 * expected * (1 - expected) / (np.pi * n)).sum())
    return 0.5 * float(np.abs(counts / n - expected).sum()), noise


def speculatoviz_pair(p: np.ndarray, q: np.ndarray, rng: np.random.Generator) -> tuple[int, int]:
    """SpeculatoViz's rule, planted: the target generates K+1 tokens of its own; a draft token is kept with
    min(1, p/q), where p is what the target gave to the token that IT drew; a refused one is replaced by that token.
    """
    out: list[int] = []
    while len(out) < 2:
        for _ in range(2):
            x, own = rng.choice(3, p=q), rng.choice(3, p=p)
            kept = x == own or rng.random() < min(1.0, p[own] / q[x])
            out.append(int(x if kept else own))
            if not kept:
                break
        else:
            out.append(int(rng.choice(3, p=p)))
    return out[0], out[1]


@pytest.mark.parametrize("rule", ["probabilistic", "deterministic"])
def test_sampled_output_converges_to_the_target(rule: str) -> None:
    distance, noise = sampled_distance(rule)
    print(f"{rule}: total variation {distance:.4f}, sampling error {noise:.4f}")
    assert distance < 2.5 * noise


def test_the_same_test_fails_speculatovizs_rule() -> None:
    distance, noise = sampled_distance("speculatoviz")
    print(f"SpeculatoViz's rule: total variation {distance:.4f}, sampling error {noise:.4f}")
    assert distance > 10 * noise


# The draft is confident after 0, but not after 1 and 2, so the end of a draft depends on the tokens drawn before.
P_TABLE = [[0.5, 0.2, 0.3], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]]
Q_TABLE = [[0.8, 0.1, 0.1], [0.4, 0.3, 0.3], [0.35, 0.3, 0.35]]
MARKOV_PROMPT = [0, 1, 2, 0]


class EndsByTheToken:
    """A planted error: improbable drawn tokens are dropped, so probable tokens are emitted too often."""

    name: str = "wrong"
    max_context: int | None = None

    def __init__(self) -> None:
        self._model = ModelDrafter("markov", MarkovScorer(Q_TABLE), LetterTokenizer())

    def propose(
        self, context_ids: Sequence[int], k: int, sampling: Sampling, noise: Noise, n: int = 1, explain: Explain = 2
    ) -> Draft:
        ids: list[int] = []
        rows: list[Row] = []
        rng = noise.draft()
        while len(ids) < k:
            drafted = self._model.draw_next([*context_ids, *ids], sampling, rng, None, explain)
            assert drafted is not None
            if ids and drafted.q.prob(drafted.token_id) < 0.35:
                break
            ids.append(drafted.token_id)
            rows.append(drafted.q)
        return draft(block_of(ids, rows))

    def reset(self) -> None:
        pass


def markov_model(min_confidence: float) -> ModelDrafter:
    return ModelDrafter("markov", MarkovScorer(Q_TABLE), LetterTokenizer(), min_confidence=min_confidence)


def pruned_markov_model() -> ModelDrafter:
    """Its vocabulary lacks token 1."""
    table = np.array(Q_TABLE)[:, [0, 2]]
    tokens = np.array([0, 2], dtype=np.int64)
    return ModelDrafter(
        "pruned", MarkovScorer(table / table.sum(axis=1, keepdims=True)), LetterTokenizer(), tokens=tokens
    )


ENDING_DRAFTERS: dict[str, Callable[[], Drafter]] = {
    "never ends early": lambda: markov_model(0.0),
    "ends early": lambda: markov_model(0.3),
    "ends soon": lambda: markov_model(0.6),
    "its own vocabulary": pruned_markov_model,
    "with lookup": lambda: CombinedDrafter(markov_model(0.0), shortest=2),
    "with lookup, ends early": lambda: CombinedDrafter(markov_model(0.3), shortest=2, lookup_confidence=0.7),
}


def markov_distance(drafter: Drafter, rule: str = "probabilistic", n: int = 3_000) -> tuple[float, float, set[int]]:
    """As `sampled_distance`, over four tokens that depend on each other; and the lengths of the drafts."""
    p = np.array(P_TABLE)
    counts, lengths = np.zeros((3,) * 4), set()
    for seed in range(n):
        wanted = Settings(temperature=1.0, k=3, max_tokens=4, seed=seed, rule=rule)  # type: ignore[arg-type]
        events = run(drafter, markov_target(P_TABLE), wanted, MARKOV_PROMPT)
        counts[done(events).token_ids] += 1
        lengths.add(next(e for e in events if isinstance(e, Metrics)).drafted)
    first = p[MARKOV_PROMPT[-1]]
    expected = np.einsum("a,ab,bc,cd->abcd", first, p, p, p)
    noise = 0.5 * float(np.sqrt(2 * expected * (1 - expected) / (np.pi * n)).sum())
    return 0.5 * float(np.abs(counts / n - expected).sum()), noise, lengths


@pytest.mark.parametrize("name", ENDING_DRAFTERS)
def test_sampled_output_converges_wherever_the_draft_ends(name: str) -> None:
    distance, noise, lengths = markov_distance(ENDING_DRAFTERS[name]())
    print(f"{name}: total variation {distance:.4f}, sampling error {noise:.4f}, lengths of drafts {lengths}")
    assert distance < 1.3 * noise
    assert (len(lengths) > 1) == ("ends" in name and "never" not in name)


def test_the_same_test_fails_a_draft_that_ends_by_the_token_it_drew() -> None:
    distance, noise, _ = markov_distance(EndsByTheToken())
    print(f"ends by the token: total variation {distance:.4f}, sampling error {noise:.4f}")
    assert distance > 1.6 * noise


def test_a_draft_that_is_the_target_is_always_kept_by_rejection_sampling_and_not_by_matching() -> None:
    rates = {}
    for rule in ("probabilistic", "deterministic"):
        wanted = Settings(temperature=0.8, max_tokens=200, rule=rule)
        ended = done(run(toy_draft(noise=0.0), toy_target(stop_ids=frozenset()), wanted))
        rates[rule] = ended.total_accepted / ended.total_tested
    assert rates["probabilistic"] == 1.0
    assert rates["deterministic"] < 0.8


# Stops and budgets.


@pytest.mark.parametrize("k", range(1, 9))
@pytest.mark.parametrize("max_tokens", range(1, 12))
def test_the_budget_is_met_exactly(k: int, max_tokens: int) -> None:
    """Reported as ik_llama.cpp PR#2358."""
    ended = done(
        run(Scripted(*[[1, 2, 3, 4, 5, 6, 7, 8]] * 20), cycle_target(), Settings(k=k, max_tokens=max_tokens), [0])
    )
    assert (ended.total_tokens, len(ended.token_ids), ended.finish_reason) == (max_tokens, max_tokens, "max_tokens")


def test_a_stop_token_inside_a_block_cuts_there_without_a_bonus() -> None:
    """Reported as transformers#47912."""
    events = run(Scripted([1, 2, 3, 4, 5]), cycle_target(stop_ids=[3]), Settings(k=5, max_tokens=20), [0])
    ended = done(events)
    assert (ended.token_ids, ended.finish_reason) == ((1, 2, 3), "stop_token")
    statuses = [e.status for e in events if isinstance(e, VerifyResult)]
    assert statuses == ["accepted", "accepted", "accepted", "ignored", "ignored"]
    assert (ended.total_drafted, ended.total_tested, ended.total_accepted) == (5, 3, 3)


@pytest.mark.parametrize("k", range(1, 9))
@pytest.mark.parametrize("stop", ["c", "cd", "bcd", "def"])
def test_everything_ends_at_one_token_after_a_stop_string(k: int, stop: str) -> None:
    """Also when the string spans rounds (vllm PR#47616)."""
    blocks = [[(n + i) % 10 for i in range(1, k + 1)] for n in range(0, 100, k + 1)]
    events = run(Scripted(*blocks), cycle_target(), Settings(k=k, max_tokens=30, stop=(stop,)), [0])
    ended = done(events)
    text = "bcdefghij"[: "bcdefghij".index(stop) + len(stop)]
    assert (ended.generated_text, ended.finish_reason, ended.stop_string) == (text, "stop_string", stop)
    assert_consistent(events)


def test_a_stop_string_is_found_where_the_whole_text_has_it_first() -> None:
    """Also over several tokens, in part of a character's tokens, and behind a space that the tokenizer drops."""

    class Strips(LetterTokenizer):
        def decode(self, token_ids: Sequence[int]) -> str:
            text = b"".join(map(self.token_bytes, token_ids)).decode("utf-8", errors="replace")
            return text[1:] if text.startswith(" ") else text

        def token_bytes(self, token_id: int) -> bytes:
            return bytes([*b" ab", *"é😀".encode()][token_id : token_id + 1])

    target, rng = local_target("cycle", Cycle(9), Strips(), 9), np.random.default_rng(3)
    for _ in range(300):
        ids = rng.integers(0, 9, size=40).tolist()
        wanted = Settings(k=4, max_tokens=100, stop=tuple(rng.choice([" ", " a", "ab a", "é", "b😀", "aaa"], size=2)))
        output: list[int] = []
        while output != ids:
            new = ids[len(output) : len(output) + int(rng.integers(1, 6))]
            kept, finish, stop = _cut(output, new, 100, wanted, target)
            output += new[:kept]
            if finish:
                break
        text = target.tokenizer.decode
        first = next((n for n in range(1, 41) if any(s in text(ids[:n]) for s in wanted.stop)), None)
        assert (len(output) if output != ids or first else None) == first
        assert first is None or (stop is not None and stop in text(output))


def test_a_stop_string_needs_no_more_of_a_long_text_than_it_can_reach() -> None:
    read: list[int] = []

    class Counted(LetterTokenizer):
        def decode(self, token_ids: Sequence[int]) -> str:
            read.append(len(token_ids))
            return super().decode(token_ids)

    target = local_target("cycle", Cycle(10), Counted(), 10)
    _cut(list(range(10)) * 200, [1, 2, 3], 100, Settings(stop=("xyz",), max_tokens=1024), target)
    assert max(read) <= 3 + len("xyz") + 4


def test_a_stop_string_that_ends_inside_a_token_ends_with_that_token() -> None:
    pieces = ["a", "he", "llo wo", "rld", "!"]
    target = cycle_target(pieces=pieces)
    events = run(Scripted([1, 2, 3, 4]), target, Settings(k=4, max_tokens=10, stop=("hello",)), [0])
    ended = done(events)
    assert (ended.token_ids, ended.generated_text) == ((1, 2), "hello wo")
    assert_consistent(events)


def test_the_context_ends_the_run() -> None:
    ended = done(run(Scripted(*[[1, 2, 3]] * 9), cycle_target(max_context=8), Settings(k=3, max_tokens=50), [0, 1, 2]))
    assert (ended.total_tokens, ended.finish_reason) == (5, "context_full")


def test_bad_prompts_are_refused_before_the_first_event() -> None:
    for prompt, words in ([], "no tokens"), (list(range(8)) * 2, "context holds 8"), ([99], "outside"):
        with pytest.raises(PromptError, match=words):
            next(speculative(Scripted(), cycle_target(max_context=8), prompt, Settings(), seed=0))


# Counting.


def assert_consistent(events: Sequence[Event]) -> None:
    """Ids, text, tree and counts of all events agree."""
    state, ended = RunState().apply_all(events), done(events)
    nodes = [state.nodes[i] for i in state.text]
    assert tuple(n.token_id for n in nodes) == ended.token_ids
    assert state.output_bytes().decode("utf-8", errors="replace") == ended.generated_text
    assert [n.index for n in nodes] == list(range(ended.total_tokens))
    assert sum(r.emitted for r in state.rounds) == ended.total_tokens
    assert sum(r.accepted for r in state.rounds) == ended.total_accepted
    assert sum(n.status == "accepted" for n in state.nodes) == ended.total_accepted
    assert sum(n.status in ("accepted", "rejected") for n in state.nodes) == ended.total_tested
    drafted = [n for n in state.nodes if n.status not in ("resampled", "bonus")]
    assert len(drafted) == ended.total_drafted
    assert not [n for n in state.nodes if n.status == "pending"]
    assert all(n.parent in (-1, *state.text) for n in state.nodes if n.status in EMITTED)
    for round_ in state.rounds:
        assert 0 <= round_.accepted <= round_.tested <= round_.drafted
        assert round_.emitted <= round_.accepted + 1
        assert round_.acceptance_rate is None or round_.acceptance_rate <= 1


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 16),
    st.integers(1, 60),
    st.floats(0, 2),
    st.sampled_from(["probabilistic", "deterministic", "greedy", "threshold"]),
    st.integers(0, 5),
    st.sampled_from(sorted(DRAFTERS)),
    st.lists(st.sampled_from([" the", "target of", "so", "."]), max_size=2),
)
def test_any_run_is_consistent(
    k: int, max_tokens: int, temperature: float, rule: str, seed: int, drafter: str, stop: list[str]
) -> None:
    wanted = Settings(
        k=k, max_tokens=max_tokens, temperature=temperature, rule=rule, seed=seed, stop=tuple(stop)  # type: ignore[arg-type]
    )  # fmt: skip
    assert_consistent(run(DRAFTERS[drafter](), toy_target(), wanted))


def test_ten_accepted_in_43_rounds_print_233_and_1233() -> None:
    """A bonus is not an acceptance; rounds without an accepted token count (EAGLE#146 and llama.cpp PR#25818)."""
    good, bad = [1], [5]
    blocks = [good if n < 10 else bad for n in range(43)]

    class Follow(Scripted):
        def propose(
            self, context_ids: Sequence[int], k: int, sampling: Sampling, noise: Noise, n: int = 1, explain: Explain = 2
        ) -> Draft:
            first = next(self._blocks)[0]
            self._blocks = iter([[(context_ids[-1] + first) % 10], *self._blocks])
            return super().propose(context_ids, k, sampling, noise, n, explain)

    asked = iter([False] * 43 + [True])
    events = list(
        speculative(Follow(*blocks), cycle_target(), [0], Settings(k=1), seed=0, cancelled=lambda: next(asked))
    )
    last = [e for e in events if isinstance(e, Metrics)][-1]
    assert done(events).total_rounds == 43 and done(events).total_accepted == 10
    assert f"{last.accepted_per_round:.3f}"[1:] == ".233" and f"{last.tokens_per_round:.3f}" == "1.233"
    assert last.overall_acceptance_rate == pytest.approx(10 / 43)


def test_short_drafts_are_counted_at_their_real_length() -> None:
    """Reported as vllm PR#44054."""
    ended = done(run(Scripted([1], [3, 4]), cycle_target(), Settings(k=8, max_tokens=5), [0]))
    assert (ended.total_drafted, ended.total_tested, ended.total_rounds) == (3, 3, 2)


def test_nothing_tested_is_not_a_rate_of_zero() -> None:
    """Reported as Bonsai-demo#190."""
    events = run(NoDrafter(), cycle_target(), Settings(max_tokens=3), [0])
    assert all(m.acceptance_rate is None for m in events if isinstance(m, Metrics))


def test_a_full_draft_context_is_said_and_the_text_stays_right() -> None:
    """Reported as lmstudio-bug-tracker#499."""
    wanted = Settings(max_tokens=40)
    limited = toy_draft(max_context=len(PROMPT) + 10)
    events = run(limited, toy_target(), wanted)
    notes = {e.note for e in events if isinstance(e, Metrics)}
    assert any("context" in n for n in notes)
    assert done(events).token_ids == done(run(toy_draft(), toy_target(), wanted)).token_ids
    assert [e for e in events if isinstance(e, Metrics)][-1].drafted == 0


def test_a_draft_never_proposes_beyond_the_targets_vocabulary() -> None:
    """Reported as llama.cpp#17480."""
    wide = fixed_draft([0.1, 0.1, 0.1, 0.7])
    wide._vocab_limit = 3
    events = run(wide, fixed_target([0.5, 0.3, 0.2]), Settings(temperature=1.0, max_tokens=50), [0])
    assert {e.token_id for e in events if isinstance(e, DraftToken)} <= {0, 1, 2}


# Time, failure, cancelling.


def test_the_parts_add_up_and_the_consumers_time_is_outside() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.001
        return now[0]

    metrics: list[Metrics] = []
    for event in speculative(toy_draft(), toy_target(), PROMPT, Settings(max_tokens=20), seed=0, clock=clock):
        now[0] += 100.0
        if isinstance(event, Metrics):
            metrics.append(event)
    assert metrics
    for m in metrics:
        s = m.split
        parts = (s.draft_ms, s.network_ms, s.queue_ms, s.target_ms, s.rule_ms, s.other_ms)
        assert sum(p for p in parts if p is not None) == pytest.approx(s.wall_ms)
        assert s.wall_ms < 50


def test_the_rate_leaves_the_prefill_out() -> None:
    events = run(toy_draft(), toy_target(), Settings(max_tokens=30))
    rounds = [e for e in events if isinstance(e, Metrics)]
    steady = sum(r.emitted for r in rounds[1:]) / sum(r.split.wall_ms for r in rounds[1:]) * 1000
    assert rounds[0].effective_tps is None
    assert done(events).tokens_per_second == pytest.approx(steady)


def test_cancelling_ends_within_a_round_with_everything_so_far() -> None:
    asked = iter([False, False, True])
    events = list(speculative(toy_draft(), toy_target(), PROMPT, Settings(), seed=0, cancelled=lambda: next(asked)))
    ended = done(events)
    assert (ended.finish_reason, ended.total_rounds) == ("stopped", 2) and ended.total_tokens > 0
    assert_consistent(events)


def test_a_failing_target_ends_in_an_error_event_and_keeps_the_text() -> None:
    class Breaks(FixedScorer):
        calls = 0

        def score(self, token_ids: Sequence[int], rows: int) -> np.ndarray:
            self.calls += 1
            if self.calls > 3:
                raise RunError("The target is gone.", "Start it again.")
            return super().score(token_ids, rows)

    target = local_target("breaks", Breaks([0.5, 0.5]), LetterTokenizer(), 2, 99)
    events = run(fixed_draft([0.5, 0.5]), target, Settings(temperature=1.0), [0])
    assert events[-1] == Error("RunError", "The target is gone.", "Start it again.")
    assert isinstance(events[0], RunStarted) and len(RunState().apply_all(events).text) >= 3


def test_events_of_a_round_come_in_order() -> None:
    kinds = [e.type for e in run(toy_draft(), toy_target(), Settings(k=2, max_tokens=6))]
    assert kinds[0] == "run_started" and kinds[-1] == "done"
    first = kinds[1 : kinds.index("metrics") + 1]
    assert first[:2] == ["draft_token"] * 2 and set(first[2:-1]) == {"verify_result"} and first[-1] == "metrics"


class Broken(FixedScorer):
    """Gives rows that are no distribution, from some call on."""

    def __init__(self, value: float, after: int = 0) -> None:
        super().__init__([0.25] * 4)
        self.value, self.left = value, after

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        self.left -= 1
        sound = super().score(token_ids, rows)
        return sound if self.left >= 0 else np.full_like(sound, self.value)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize(("value", "what"), [(np.nan, "nan"), (np.inf, "a logit is +inf"), (-np.inf, "every logit is")])
@pytest.mark.parametrize("who", ["draft", "target"])
def test_a_model_without_usable_scores_is_named(who: str, value: float, what: str, temperature: float) -> None:
    """vllm#53029."""
    broken, sound = Broken(value), FixedScorer([0.25] * 4)
    drafter = ModelDrafter("small", broken if who == "draft" else sound, LetterTokenizer())
    target = local_target("large", broken if who == "target" else sound, LetterTokenizer(), 4)
    events = run(drafter, target, Settings(k=2, temperature=temperature), [0])
    error, named = events[-1], {"draft": "The draft small ", "target": "The target large "}[who]
    assert isinstance(error, Error) and error.message.startswith(named) and what in error.message
    found = RunState().apply_all(events).guarantee
    assert found is not None and found.kind == "UNKNOWN" and "No token" in found.reason


def test_no_guarantee_stands_over_no_tokens() -> None:
    events = list(speculative(toy_draft(), toy_target(), PROMPT, Settings(), cancelled=lambda: True))
    assert done(events).total_tokens == 0 and done(events).guarantee.kind == "UNKNOWN"
    begun = RunState().apply_all(events[:1])
    assert begun.guarantee is not None and begun.guarantee.kind == "EXACT", "what a run begins with, until it ends"


def test_a_model_that_breaks_later_leaves_the_guarantee_of_its_text() -> None:
    target = local_target("large", Broken(np.nan, after=2), LetterTokenizer(), 4)
    state = RunState().apply_all(run(fixed_draft([0.25] * 4), target, Settings(k=2, max_tokens=30), [0]))
    assert state.error is not None and state.text and state.guarantee is not None and state.guarantee.kind == "EXACT"
