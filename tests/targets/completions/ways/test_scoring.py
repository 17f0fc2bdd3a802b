"""Verification by log-probabilities, against servers whose model is known exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from specviz.core.errors import AnswerError, IncapableError
from specviz.core.noise import Noise
from specviz.core.rounds import EMPTY, Candidate, Round, Verdict
from specviz.core.sampling import Row, draw_row, to_probs
from specviz.core.settings import Rule, Sampling
from specviz.targets.completions.server import Server
from specviz.targets.completions.values import Findings, Reply, Request
from specviz.targets.completions.ways import scoring
from tests.targets.completions.toyserver import InMemory, ToyServer
from tests.toys import LetterTokenizer, asked, block, block_of, draft

VLLM = Findings(engine="vllm", ids_in=True, ids_out=True, batch=True, scores=True, top=20, after_temperature=False)
SGLANG = replace(VLLM, engine="sglang", after_temperature=True)
ALONE = replace(VLLM, top=0)
V = 40
ROUNDS = 500
TOKENIZER = LetterTokenizer([chr(0x100 + i) for i in range(V)])


def table(seed: int = 0, v: int = V) -> np.ndarray:
    """(V, V) a Markov chain: after each token a Zipf row, each in another order."""
    rng = np.random.default_rng(seed)
    zipf = 1 / np.arange(1, v + 1) ** 1.1
    rows = np.array([rng.permutation(zipf * np.exp(rng.normal(0, 0.2, v))) for _ in range(v)])
    chain: np.ndarray = rows / rows.sum(axis=1, keepdims=True)
    return chain


TABLE = table()


def api(model: Any = TABLE, dialect: str = "vllm", seed: int = 0, **options: Any) -> InMemory:
    v = np.shape(model)[-1]
    tokenizer = LetterTokenizer([chr(0x100 + i) for i in range(v)])
    return InMemory(ToyServer(model, dialect, tokenizer, seed=seed, stop_ids=frozenset(), **options))


def drawn(qs: Sequence[Row], noise: Noise) -> Candidate:
    rng = noise.draft()
    return block_of([draw_row(q, rng) for q in qs], qs)


def verify(
    api: InMemory,
    candidate: Candidate,
    sampling: Sampling,
    noise: Noise = Noise(0),  # noqa: B008
    rule: Rule = Rule(),  # noqa: B008
    findings: Findings = VLLM,
    context: Sequence[int] = (3,),
) -> Verdict:
    server = Server(api, findings, api.toy.tokenizer, api.toy.vocab_size)
    return scoring.verify(server, Round(tuple(context), draft(candidate), sampling, rule, noise))


# The output distribution.

P = TABLE[3]
BEST = np.argsort(-P)
DRAFTS = {
    "near": P * np.random.default_rng(1).uniform(0.2, 3, V),
    "outside the best": np.where(np.isin(np.arange(V), BEST[:20]), 0, 1.0),
    "the best alone": np.where(np.isin(np.arange(V), BEST[:3]), P, 0),
    "flat": np.ones(V),
    "one token": np.eye(V)[BEST[1]],
    "same": P,
}


def outputs(q: Row, sampling: Sampling, rounds: int, findings: Findings = VLLM, **options: Any) -> tuple[Any, ...]:
    """The (V,) counts of the first token, the server, and the verdicts."""
    server = api(seed=7, **options)
    noises = [Noise(11, n) for n in range(rounds)]
    verdicts = [verify(server, drawn([q], noise), sampling, noise, findings=findings) for noise in noises]
    counts = np.bincount([v.token_ids[0] for v in verdicts], minlength=V)
    return counts, server, verdicts


def fits(counts: np.ndarray, p: np.ndarray) -> float:
    """p-value of a chi-square test; tokens with small expected counts are one class."""
    expected = p * counts.sum()
    often = expected >= 5
    assert counts[p == 0].sum() == 0
    seen = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    positive = wanted > 0
    return float(chisquare(seen[positive], wanted[positive] * seen.sum() / wanted[positive].sum()).pvalue)


def distance(counts: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """Total variation between counts and p, and its limit by sampling alone: mean plus four standard deviations."""
    n = counts.sum()
    alone = np.random.default_rng(0).multinomial(n, p / p.sum(), 200) / n
    noise = 0.5 * np.abs(alone - p).sum(axis=1)
    return 0.5 * float(np.abs(counts / n - p).sum()), float(noise.mean() + 4 * noise.std())


FIVE = replace(VLLM, top=5)


@pytest.mark.parametrize(
    ("draft", "findings"),
    [
        ("near", VLLM),
        ("outside the best", VLLM),
        ("the best alone", FIVE),
        ("flat", FIVE),
        ("one token", FIVE),
        ("near", ALONE),
        ("flat", ALONE),
    ],
    ids=lambda v: v if isinstance(v, str) else f"{v.top} best",
)
def test_sampled_output_at_temperature_1_is_ps(draft: str, findings: Findings) -> None:
    """Among them a one-hot draft (transformers#32867) and one whose q has to be used (vllm#40149)."""
    q = DRAFTS[draft] / DRAFTS[draft].sum()
    counts, server, verdicts = outputs(Row(q), Sampling(1.0), ROUNDS, findings)
    apart, noise = distance(counts, P)
    kept = sum(v.decisions[0].status == "accepted" for v in verdicts) / len(verdicts)
    extra = sum((v.requests or 0) - 1 for v in verdicts) / len(verdicts)
    print(f"\n{draft}: TV {apart:.4f} (noise {noise:.4f}), kept {kept:.3f}, extra requests {extra:.3f}")
    assert apart <= noise and fits(counts, P) > 1e-4
    assert kept == pytest.approx(np.minimum(P, q).sum(), abs=4 * 0.5 / ROUNDS**0.5)
    assert {v.guarantee.kind for v in verdicts} == {"EXACT"}
    assert len(server.requests) == sum(v.requests or 0 for v in verdicts)


@pytest.mark.parametrize(
    "sampling", [Sampling(0.7, 6), Sampling(1.0, 0, 0.6), Sampling(1.0, 0, 0.97), Sampling(1.5, 12, 0.8)], ids=str
)
def test_sampled_output_through_top_k_and_top_p_is_ps(sampling: Sampling) -> None:
    p = to_probs(np.log(P).astype(np.float32), sampling)
    q = DRAFTS["near"] / DRAFTS["near"].sum()
    counts, _, verdicts = outputs(Row(q), sampling, 400)
    apart, noise = distance(counts, p)
    extra = sum((v.requests or 0) - 1 for v in verdicts) / len(verdicts)
    print(f"\n{sampling}: TV {apart:.4f} (noise {noise:.4f}), extra requests {extra:.3f}")
    assert apart <= noise and fits(counts, p) > 1e-4
    assert {v.guarantee.kind for v in verdicts} == {"EXACT"}
    # Where the best tokens include all kept ones, no further call is needed; otherwise each position needs a draw.
    assert extra == (1 if sampling.top_p == 0.97 else 0)


@pytest.mark.parametrize("findings", [VLLM, SGLANG], ids=["raw", "after temperature"])
@pytest.mark.parametrize("temperature", [0.6, 1.4])
def test_output_at_other_temperatures_is_within_its_bound(findings: Findings, temperature: float) -> None:
    """Rows of generated tokens are read with their own scale (ollama#16196)."""
    p = to_probs(np.log(P).astype(np.float32), Sampling(temperature))
    q = DRAFTS["flat"] / DRAFTS["flat"].sum()
    five = replace(findings, top=5)
    counts, _, verdicts = outputs(Row(q), Sampling(temperature), 400, five, dialect=str(findings.engine))
    apart, noise = distance(counts, p)
    [guarantee] = {v.guarantee for v in verdicts}
    print(f"\n{findings.engine} T {temperature}: TV {apart:.4f} (noise {noise:.4f}), {guarantee}")
    assert guarantee.kind == "BOUNDED" and guarantee.epsilon is not None and f"{temperature:g}" in guarantee.reason
    assert apart <= guarantee.epsilon + noise


def test_whole_blocks_at_temperature_1_are_ps() -> None:
    """Three tokens from a draft that is often wrong: their joint distribution."""
    v = 4
    small = table(5, v)
    near = small * np.random.default_rng(2).uniform(0.2, 3, small.shape)
    near /= near.sum(axis=1, keepdims=True)
    server = api(small, seed=3)
    seen: Counter[tuple[int, ...]] = Counter()
    for seed in range(500):
        out = [2]
        while len(out) < 4:
            ids, noise = [out[-1]], Noise(seed, len(out))
            rng = noise.draft()
            for _ in range(3 - len(out)):
                ids.append(draw_row(Row(near[ids[-1]]), rng))
            candidate = block_of(ids[1:], [Row(near[i]) for i in ids[:-1]])
            one = replace(VLLM, top=1)
            out += verify(server, candidate, Sampling(1.0), noise, findings=one, context=out).token_ids
        seen[tuple(out[1:4])] += 1
    triples = list(product(range(v), repeat=3))
    p = np.array([small[2, a] * small[a, b] * small[b, c] for a, b, c in triples])
    counts = np.array([seen[t] for t in triples])
    apart, error = distance(counts, p)
    print(f"\nblocks: TV {apart:.4f} (noise {error:.4f})")
    assert apart <= error and fits(counts, p) > 1e-4


# Rules.


def greedy_ids(start: int, n: int) -> list[int]:
    ids = [start]
    for _ in range(n):
        ids.append(int(TABLE[ids[-1]].argmax()))
    return ids[1:]


@pytest.mark.parametrize("rule", [Rule("probabilistic"), Rule("greedy"), Rule("threshold", 0.5)])
def test_temperature_0_keeps_the_most_probable_tokens_and_no_other(rule: Rule) -> None:
    """One-hot rows, and no empty residual (jaymody/speculative-sampling#9 and #5)."""
    right = greedy_ids(3, 3)
    server = api()
    verdict = verify(server, block(*right[:2]), Sampling(0.0), rule=rule)
    assert verdict.token_ids == tuple(right) and verdict.decisions[-1].status == "bonus"
    wrong = int(np.argsort(-TABLE[right[0]])[1])
    ids = [right[0], wrong, 0]
    verdict = verify(server, block(*ids), Sampling(0.0), rule=rule)
    assert [d.status for d in verdict.decisions] == ["accepted", "rejected", "ignored"]
    assert verdict.token_ids == tuple(right[:2]) and len(server.requests) == 2
    assert verdict.guarantee.kind == ("LOSSY" if rule.name == "threshold" else "EXACT")
    assert verdict.decisions[1].p == 0 and verdict.decisions[1].acceptance == 0


def test_greedy_above_temperature_0_is_greedy_in_its_bonus_too() -> None:
    right = greedy_ids(3, 2)
    for seed in range(20):
        verdict = verify(api(seed=seed), block_of(right[:1], [Row(P)]), Sampling(1.0), Noise(seed), Rule("greedy"))
        assert verdict.token_ids == tuple(right) and verdict.guarantee.kind == "LOSSY"


def test_threshold_keeps_what_is_probable_enough_and_else_draws_from_p() -> None:
    x = int(BEST[0])
    bar = float(P[x])
    kept = verify(api(), block(x), Sampling(1.0), Noise(0), Rule("threshold", bar - 0.01))
    assert kept.decisions[0].status == "accepted" and kept.guarantee.kind == "LOSSY"
    server, four = api(seed=4), replace(VLLM, top=4)
    above = [
        verify(server, block(x), Sampling(1.0), Noise(8, n), Rule("threshold", bar + 0.01), four) for n in range(400)
    ]
    counts = np.bincount([v.token_ids[0] for v in above], minlength=V)
    apart, noise = distance(counts, P)
    assert apart <= noise and fits(counts, P) > 1e-4


def test_deterministic_and_what_the_server_cannot_do_are_refused() -> None:
    for sampling, rule, findings, words in [
        (Sampling(1.0), Rule("deterministic"), VLLM, "own draws"),
        (Sampling(1.0), Rule(), replace(VLLM, scores=False), "log-probabilities"),
        (Sampling(0.0), Rule(), ALONE, "most probable"),
        (Sampling(1.0, 21), Rule(), VLLM, "top-k keeps 21"),
        (Sampling(0.7), Rule(), replace(VLLM, after_temperature=None), "temperature"),
    ]:
        server = api()
        with pytest.raises(IncapableError, match=words):
            verify(server, block(1), sampling, rule=rule, findings=findings)
        assert not server.requests


def test_equal_p_and_q_are_always_kept() -> None:
    """Reported as mlx-lm PR#1709."""
    flat = [1 / 10] * 10
    server = api(flat)
    for noise in (Noise(0, n) for n in range(50)):
        verdict = verify(server, drawn([Row(np.array(flat))] * 3, noise), Sampling(1.0), noise)
        assert [d.acceptance for d in verdict.decisions[:3]] == pytest.approx([1.0] * 3)


def test_a_token_that_its_q_does_not_have_is_a_bug() -> None:
    with pytest.raises(ValueError, match="was not drawn"):
        verify(api(), block_of([2], [Row.one_hot(1)]), Sampling(1.0))


# Requests, and what is recorded.


def test_one_call_asks_for_all_of_it() -> None:
    server = api()
    ids = greedy_ids(3, 2)
    verdict = verify(server, block(*ids), Sampling(0.0), Noise(5), context=[1, 3])
    [request] = server.requests
    assert request.prompts == ((1, 3, *ids),) and request.echo and request.tail == 2 and request.top == 20
    assert request.max_tokens == request.samples == 1 and request.seed is not None
    assert verdict.requests == 1 and verdict.call_ms == 1.0 and verdict.network_ms is None is verdict.compute_ms
    assert verdict.sent_bytes and verdict.received_bytes
    assert verdict.billed_prompt_tokens == 4 and verdict.billed_completion_tokens == 1


def test_no_draft_is_one_step_of_plain_decoding() -> None:
    server = api()
    verdict = verify(server, EMPTY, Sampling(0.0))
    assert verdict.token_ids == tuple(greedy_ids(3, 1)) and verdict.decisions[0].status == "bonus"
    assert not server.requests[0].echo and verdict.guarantee.kind == "EXACT"


@pytest.mark.parametrize("batch", [True, False])
def test_positions_that_the_rows_leave_open_are_drawn_by_the_target_in_one_call(batch: bool) -> None:
    server, ids = api(), greedy_ids(3, 3)
    sampling, findings = Sampling(1.0, 0, 0.97), replace(VLLM, batch=batch)
    verdict = verify(server, block(*ids), sampling, findings=findings)
    own = server.requests[1]
    assert own.prompts == (((3,), (3, ids[0]), (3, *ids[:2])) if batch else ((3,),))
    assert (own.seed is None) == batch and own.top_p == 0.97 and own.samples == 1
    assert verdict.guarantee.kind == "EXACT" and verdict.decisions[0].p is None is verdict.decisions[0].acceptance


def test_samples_are_asked_for_without_a_seed_and_are_billed() -> None:
    server, flat = api(), Row(np.ones(V) / V)
    for noise in (Noise(0, n) for n in range(60)):
        server.requests.clear()
        verdict = verify(server, drawn([flat], noise), Sampling(1.0), noise, findings=replace(VLLM, top=2))
        if len(server.requests) > 1:
            break
    batch = server.requests[1]
    assert batch.prompts == ((3,),) and batch.samples > 1 and batch.seed is None and not batch.echo
    assert verdict.requests == len(server.requests)
    assert verdict.billed_completion_tokens == 1 + sum(r.samples for r in server.requests[1:])


def test_a_decision_says_what_the_server_said() -> None:
    x = int(BEST[0])
    verdict = verify(api(), block(x), Sampling(1.0), Noise(1))
    d = verdict.decisions[0]
    assert d.p == pytest.approx(P[x], rel=1e-4) and d.q == 1 and d.acceptance == pytest.approx(P[x], rel=1e-4)
    assert d.u is not None and d.acceptance is not None and (d.status == "accepted") == (d.u < d.acceptance)
    assert d.draft_logprob_target == pytest.approx(np.log(P[x]), rel=1e-4) and d.entropy is None
    assert [a.token_id for a in d.alternatives] == BEST[:10].tolist()
    assert d.alternatives[0].token == TOKENIZER.token_name(x)
    assert d.alternatives[1].prob == pytest.approx(P[BEST[1]], rel=1e-4)


@pytest.mark.parametrize("findings", [VLLM, SGLANG], ids=["raw", "after temperature"])
def test_final_log_probabilities_are_those_at_temperature_1(findings: Findings) -> None:
    """Reported as ollama#16196."""
    two = replace(findings, top=2)
    _, _, verdicts = outputs(Row(np.eye(V)[BEST[0]]), Sampling(1.4), 60, two, dialect=str(findings.engine))
    sampled = [d for v in verdicts for d in v.decisions if d.status == "rejected" and d.final_id not in BEST[:2]]
    assert len(sampled) > 10
    for d in sampled:
        assert d.final_id is not None and d.final_logprob == pytest.approx(np.log(P[d.final_id]), abs=1e-3)


def test_what_is_known_does_not_depend_on_the_token_that_was_scored() -> None:
    """vLLM lists it before the best tokens. If it counted as one of them, the bound would be wrong."""
    flat, five = Row(np.ones(V) / V), replace(VLLM, top=5)
    bounds = {verify(api(), block_of([int(x)], [flat]), Sampling(0.6), findings=five).guarantee for x in BEST}
    assert len(bounds) == 1


def test_samples_are_drawn_behind_what_was_kept() -> None:
    rng, places = np.random.default_rng(0), Counter[int]()
    flat = Row(np.ones(V) / V)
    for seed in range(60):
        server, ids = api(seed=seed), greedy_ids(3, 2)
        rows = [Row.one_hot(ids[0]), flat, flat]
        rows[0] = Row(np.eye(V)[ids[0]] * P[ids[0]] + (1 - P[ids[0]]) * np.eye(V)[BEST[-1]])
        candidate = block_of([ids[0], int(rng.integers(V)), int(rng.integers(V))], rows)
        verdict = verify(server, candidate, Sampling(1.0), Noise(seed), findings=replace(VLLM, top=2))
        kept = sum(d.status == "accepted" for d in verdict.decisions)
        for request in server.requests[1:]:
            assert request.prompts == ((3, *candidate.token_ids[:kept]),)
            places[kept] += 1
    assert places[1] > 3 and places[2] > 3


def test_equal_seeds_give_equal_rounds() -> None:
    flat = Row(np.ones(V) / V)

    def ask() -> Verdict:
        return verify(api(), drawn([flat, flat], Noise(6)), Sampling(1.0), Noise(6))

    assert ask().token_ids == ask().token_ids


# Servers that contradict themselves.


class _Altered:
    """A server whose answers are changed in transit."""

    def __init__(self, inner: InMemory, change: Any) -> None:
        self.toy, self._inner, self._change = inner.toy, inner, change

    def complete(self, request: Request, *, engine: Any = "") -> Reply:
        reply = self._inner.complete(request, engine=engine)
        self._change(reply.body, request)
        return reply


def altered(change: Any, **options: Any) -> Any:
    return _Altered(api(**options), change)


def test_a_row_that_says_two_things_is_refused() -> None:
    x = int(BEST[0])

    def other_logprob(body: Any, request: Request) -> None:
        logprobs = body["choices"][0]["logprobs"]
        logprobs["token_logprobs"][1] -= 0.5

    with pytest.raises(AnswerError):
        verify(altered(other_logprob), block(x), Sampling(0.0))

    def missing(body: Any, request: Request) -> None:
        for rows in (body["choices"][0]["logprobs"]["top_logprobs"],):
            rows[1] = {k: v for k, v in rows[1].items() if k != f"token_id:{x}"} | {"token_id:0": -9.0}

    with pytest.raises(AnswerError):
        verify(altered(missing), block(x), Sampling(0.0), findings=replace(VLLM, top=5))


def test_samples_that_cannot_be_from_the_row_are_an_error_and_no_endless_loop() -> None:
    """A server with its own top-k never draws from the tail that its log-probabilities imply."""
    server = api(seed=1)
    inner = server.toy._sampling
    server.toy._sampling = lambda body: (replace(inner(body)[0], top_k=20), 0.0)  # type: ignore[method-assign]
    q = Row(np.ones(V) / V)
    with pytest.raises(AnswerError, match="do not fit"):
        for noise in (Noise(0, n) for n in range(100)):
            verify(server, drawn([q], noise), Sampling(1.0), noise)


def test_ids_beyond_the_vocabulary_are_refused() -> None:
    def beyond(body: Any, request: Request) -> None:
        body["choices"][0]["token_ids"] = [V + 1]
        body["choices"][0]["logprobs"]["tokens"][-1] = f"token_id:{V + 1}"

    x = greedy_ids(3, 1)
    with pytest.raises(AnswerError):
        verify(altered(beyond), block(*x), Sampling(0.0))


def test_scores_of_other_tokens_are_refused() -> None:
    def swapped(body: Any, request: Request) -> None:
        tokens = body["choices"][0]["logprobs"]["tokens"]
        tokens[1] = "token_id:7" if tokens[1] != "token_id:7" else "token_id:8"

    x = greedy_ids(3, 1)
    with pytest.raises(AnswerError):
        verify(altered(swapped), block(*x), Sampling(0.0))


def test_a_bonus_that_ends_the_text_may_come_without_an_id() -> None:
    def ended(body: Any, request: Request) -> None:
        choice = body["choices"][0]
        choice |= {"token_ids": [], "finish_reason": "stop", "text": ""}
        choice["logprobs"] = {k: v[:-1] for k, v in choice["logprobs"].items()}

    x, api = greedy_ids(3, 1), altered(ended)
    server = Server(api, VLLM, api.toy.tokenizer, V, stop_ids=frozenset({9}))
    verdict = scoring.verify(server, asked([3], [block(*x)], Sampling(0.0), Rule()))
    assert verdict.token_ids == (x[0], 9) and verdict.decisions[-1].status == "bonus"


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0), Sampling(1.0, top_k=5), Sampling(0.7)])
@pytest.mark.parametrize("draft", DRAFTS)
def test_weighed_tokens_say_what_is_known_and_nothing_else(draft: str, sampling: Sampling) -> None:
    q = Row(DRAFTS[draft] / DRAFTS[draft].sum())
    p = to_probs(np.log(P).astype(np.float32), sampling)
    verdict = verify(api(), drawn([q], Noise(2)), sampling, Noise(5))
    for d in verdict.decisions:
        found = {c.token_id: c for c in d.weighed}
        assert d.final_id in found and len(found) == len(d.weighed)
        if d.status == "bonus":
            assert all(c.q is None for c in d.weighed) and d.overlap is None
            continue
        assert d.draft_id in found and all(c.q == q.prob(c.token_id) for c in d.weighed)
        assert found[d.draft_id].p == d.p
        bounded = sampling.temperature not in (0, 1)
        rel = 0.2 if bounded else None
        assert all(c.p is None or c.p == pytest.approx(p[c.token_id], rel=rel) for c in d.weighed)
        assert all(found[i].p is not None for i in BEST[:10] if i in found)
        # Twenty of forty tokens are known. At temperature 0 and with top-k, all others have p = 0.
        whole = sampling.temperature == 0 or sampling.top_k or draft in ("the best alone", "one token")
        assert (d.overlap is not None) == bool(whole and not bounded)
        if d.overlap is not None:
            assert d.overlap == pytest.approx(np.minimum(p, q.dense(V)).sum(), abs=1e-6)
