"""Batched prefixes: the target's own draws given the draft."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from specviz.core.errors import AnswerError, LackingError
from specviz.core.noise import Noise
from specviz.core.rounds import EMPTY, Candidate, Round
from specviz.core.sampling import Row, draw, to_probs
from specviz.core.settings import Rule, Sampling
from specviz.targets.completions.server import Server
from specviz.targets.completions.values import Completions, Engine, Reply, Request
from specviz.targets.completions.ways import prefixes
from specviz.targets.completions.ways.draws import Judged
from specviz.targets.completions.wire import dialect
from tests.targets.completions.remotes import Scripted, findings_of, legacy
from tests.targets.completions.toyserver import InMemory, ToyServer
from tests.toys import LetterTokenizer, MarkovScorer, asked, block, block_of, draft

TABLE = [[0.15, 0.6, 0.25], [0.5, 0.2, 0.3], [0.3, 0.25, 0.45]]
LETTERS = LetterTokenizer()
WARM = Sampling(0.7)


def verify(
    api: Completions,
    context: Sequence[int],
    candidate: Candidate,
    sampling: Sampling = WARM,
    rule: Rule | None = None,
    vocab_size: int = 3,
    stop_ids: frozenset[int] = frozenset(),
    dialect: str = "vllm",
    **found: object,
) -> Judged:
    server = Server(api, findings_of(dialect, **found), LETTERS, vocab_size, stop_ids)
    return prefixes.verify(server, Round(tuple(context), draft(candidate), sampling, rule or Rule(), Noise(0)))


Q = Row(np.array([0.4, 0.35, 0.25]))
ROWS = [to_probs(MarkovScorer(TABLE).score([i], 1)[0], WARM) for i in range(3)]


def total_variation(api: Completions, n: int = 1500) -> tuple[float, float]:
    """Total variation between the first three tokens and p, and its mean by sampling error alone.

    Each sample is one round. Where it emits fewer than three tokens, the test draws the others from p.
    """
    rng = np.random.default_rng(5)
    counts, p = np.zeros((3, 3, 3)), np.zeros((3, 3, 3))
    for _ in range(n):
        drafted = block_of((draw(Q.probs, rng), draw(Q.probs, rng)), (Q, Q))
        ids = [0, *verify(api, (0,), drafted, top=0, ids_out=False).token_ids]
        while len(ids) < 4:
            ids.append(draw(ROWS[ids[-1]], rng))
        counts[tuple(ids[1:4])] += 1
    for triple in itertools.product(range(3), repeat=3):
        p[triple] = np.prod([ROWS[before][i] for before, i in itertools.pairwise((0, *triple))])
    return float(0.5 * np.abs(counts / n - p).sum()), float(0.4 * np.sqrt(p * (1 - p) / n).sum())


def test_sampled_output_is_distributed_as_the_targets() -> None:
    found, error = total_variation(InMemory(ToyServer(TABLE, seed=1)))
    assert found < 1.6 * error


class Seeded(InMemory):
    """A broken dialect that sends a seed with a batch, a different one in each call."""

    def complete(self, request: Request, *, engine: Engine = "") -> Reply:
        body = dialect.body(request, self.toy.name, engine) | {"seed": int(self.toy._rng.integers(2**31))}
        _, answer = self.toy.answer("/v1/completions", json.loads(json.dumps(body)))
        return Reply(answer)


def test_a_seed_in_a_batch_would_not_be() -> None:
    """With equal noise in every row, acceptance in one row changes the distribution of the next."""
    found, error = total_variation(Seeded(ToyServer(TABLE, seed=1)))
    assert found > 2 * error


def test_no_batch_has_a_seed() -> None:
    api = InMemory(ToyServer(TABLE))
    verify(api, [0], block(1, 0))
    assert [r.seed for r in api.requests] == [None]
    assert api.requests[0].prompts == ((0,), (0, 1), (0, 1, 0))
    with pytest.raises(ValueError, match="seed"):
        replace(api.requests[0], seed=3)


def test_one_call_and_the_first_difference_corrects() -> None:
    table = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    api = InMemory(ToyServer(table))
    kept = verify(api, [0], block(1, 2))
    assert [d.status for d in kept.decisions] == ["accepted", "accepted", "bonus"] and kept.token_ids == (1, 2, 0)
    refused = verify(api, [0], block(1, 0, 1))
    assert [d.status for d in refused.decisions] == ["accepted", "rejected", "ignored"]
    assert refused.token_ids == (1, 2)
    assert verify(api, [0], EMPTY).token_ids == (1,)
    assert refused.requests == 1 and refused.billed_prompt_tokens == 1 + 2 + 3 + 4


def test_what_is_known_is_told_and_no_more() -> None:
    [first, *_] = verify(InMemory(ToyServer(TABLE)), [0], block(1, 0), Sampling(1.0)).decisions
    assert first.p == pytest.approx(0.6) == first.acceptance and first.q == 1.0 and first.u is None
    assert first.draft_logprob_target == pytest.approx(np.log(0.6))
    assert [(a.token_id, round(a.prob, 3)) for a in first.alternatives] == [(1, 0.6), (2, 0.25), (0, 0.15)]
    warm = verify(InMemory(ToyServer(TABLE)), [0], block(1, 0), WARM).decisions[0]
    assert warm.p is None and warm.acceptance is None and warm.draft_logprob_target == pytest.approx(np.log(0.6))
    row = to_probs(MarkovScorer(TABLE).score([0], 1)[0], WARM)
    assert [a.prob for a in warm.alternatives] == pytest.approx(sorted(row, reverse=True))
    blind = verify(InMemory(ToyServer(TABLE)), [0], block(1, 0), Sampling(1.0), top=0).decisions[0]
    assert blind.p is None or blind.final_id == 1
    assert blind.alternatives == ()


def test_log_probabilities_after_the_temperature_are_not_taken_for_others() -> None:
    """Reported as ollama#16196."""
    server = ToyServer(TABLE, processed=True)
    after = verify(InMemory(server), [0], block(1), WARM, after_temperature=True).decisions[0]
    row = to_probs(MarkovScorer(TABLE).score([0], 1)[0], WARM)
    assert after.p == pytest.approx(row[1]) and after.draft_logprob_target is None and after.alternatives == ()
    unknown = verify(InMemory(server), [0], block(1), WARM, after_temperature=None).decisions[0]
    assert (unknown.p, unknown.draft_logprob_target, unknown.alternatives) == (None, None, ())


def test_greedy_asks_for_the_most_probable_at_any_temperature() -> None:
    api = InMemory(ToyServer(TABLE))
    verdict = verify(api, [0], block(1), Sampling(1.0, top_k=2), Rule("greedy"))
    assert api.requests[0].temperature == 0 and verdict.token_ids == (1, 0)


def test_fewer_choices_than_prompts_lack_something() -> None:
    with pytest.raises(LackingError):
        verify(Scripted(legacy("b", ids=[[1]])), [0], block(1, 0), top=0)


def test_an_id_beyond_the_vocabulary_is_refused() -> None:
    with pytest.raises(AnswerError):
        verify(Scripted(legacy("b", "c", ids=[[1], [3]])), [0], block(1), top=0, ids_out=False)


def test_a_token_that_only_the_server_knows_to_end_a_text_is_followed_by_an_end() -> None:
    """After an accepted token, the next draft token is compared with the end. After a correction, the end is owed."""
    rows = legacy("b", "c", ids=[[1], [2]], finish="length")
    rows["choices"][0]["finish_reason"] = "stop"
    judge = partial(verify, top=0, ids_out=False)
    kept = judge(Scripted(rows), [0], block(1), stop_ids=frozenset({0}))
    assert kept.token_ids == (1, 0) and kept.owed == ()
    refused = judge(Scripted(rows), [0], block(2), stop_ids=frozenset({0}))
    assert refused.token_ids == (1,) and refused.owed == (0,)


verify_text = partial(verify, ids_in=False, ids_out=False, top=0)


def test_text_rows_match_byte_for_byte() -> None:
    api = Scripted(legacy("b", "a", "c"))
    verdict = verify_text(api, [0], block(1, 2))
    assert api.requests[0].prompts == ("a", "ab", "abc")
    assert [d.status for d in verdict.decisions] == ["accepted", "rejected"] and verdict.token_ids == (1, 0)
    assert verdict.guarantee.kind == "EXACT"


def test_a_piece_of_several_tokens_is_owed_whole() -> None:
    verdict = verify_text(Scripted(legacy("cb", "a")), [0], block(2))
    assert [d.status for d in verdict.decisions] == ["accepted", "bonus"] and verdict.token_ids == (2, 1)
    verdict = verify_text(Scripted(legacy("cba", "a")), [0], block(0))
    assert verdict.token_ids == (2,) and verdict.owed == (1, 0)


def test_an_empty_text_is_an_end_or_an_error() -> None:
    ends = legacy("", "a", finish="stop")
    verdict = verify_text(Scripted(ends), [0], block(1), stop_ids=frozenset({2}))
    assert verdict.token_ids == (2,) and verdict.owed == ()
    # The draft proposed the end.
    verdict = verify_text(Scripted(legacy("", "a", finish="stop")), [0], block(2), stop_ids=frozenset({2}))
    assert verdict.decisions[0].status == "accepted"
    with pytest.raises(AnswerError, match="no stop token"):
        verify_text(Scripted(ends), [0], block(1))
    with pytest.raises(AnswerError, match="wrote nothing"):
        verify_text(Scripted(legacy("", "a")), [0], block(1))
    with pytest.raises(LackingError, match="part of a character"):
        verify_text(Scripted(legacy("\ufffd", "a")), [0], block(1))


class Merging(LetterTokenizer):
    def encode(self, text: str) -> list[int]:
        return [self.pieces.index("bc") if c == "B" else self.pieces.index(c) for c in text.replace("bc", "B")]


def test_a_draft_that_text_cannot_carry_is_judged_as_far_as_it_can() -> None:
    """After "b", the draft's "c" would be encoded as another token. The first token is still verified (trl#5224)."""
    tokenizer = Merging(["a", "b", "c", "bc"])
    api = Scripted(legacy("b", "c"))
    server = Server(api, findings_of("generates", batch=True), tokenizer, 4)
    judged = prefixes.verify(server, asked([0], [block(1, 2, 0)], Sampling(), Rule()))
    assert api.requests[0].prompts == ("a", "ab")
    assert [d.status for d in judged.decisions] == ["accepted", "accepted", "ignored"]
    assert judged.token_ids == (1, 2) and judged.guarantee.kind == "EXACT"
