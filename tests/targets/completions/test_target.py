"""Whole runs through the port: the target's own output, whatever the server can do."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from specviz.core.errors import AnswerError, IncapableError, PairingError, RefusedError, UnreachableError
from specviz.core.event_json import from_json, to_json
from specviz.core.events import Done, RunStarted, Way
from specviz.core.noise import Noise
from specviz.core.ports import Exchange, Target
from specviz.core.rounds import Draft, Explain
from specviz.core.settings import Rule, Sampling
from specviz.drafters.model import ModelDrafter
from specviz.engines.toy import ToyScorer
from specviz.record import report
from specviz.record.state import RunState
from specviz.targets.completions.probe.probe import probe
from specviz.views import summary, trial
from specviz.views.reasons import why
from tests.targets.completions.remotes import (
    TOY,
    WAYS,
    Scripted,
    done,
    legacy,
    metrics,
    remote_target,
    results,
    run,
)
from tests.targets.completions.toyserver import DIALECTS, InMemory, ToyServer
from tests.toys import (
    TOKENIZER,
    LetterTokenizer,
    MarkovScorer,
    asked,
    block,
    draft,
    fixed_draft,
    local_target,
    toy_draft,
    toy_target,
)

PROMPT = TOKENIZER.encode("the draft")

SCORER, DRAFT = ToyScorer(TOY), toy_draft()


def toy(dialect: str, **options: Any) -> ToyServer:
    return ToyServer(SCORER, dialect, TOY, **options)


@cache
def own_run(k: int, max_tokens: int, prompt: tuple[int, ...] = tuple(PROMPT)) -> Done:
    target = toy_target()
    return done(run(DRAFT, target, prompt, k=k, max_tokens=max_tokens))


@pytest.mark.parametrize(("dialect", "way"), WAYS)
def test_greedy_output_is_the_local_targets(dialect: str, way: Way) -> None:
    for k in range(1, 17):
        for max_tokens in (1 + k // 3, 18):
            target = remote_target(toy(dialect), way)
            got, own = done(run(DRAFT, target, PROMPT, k=k, max_tokens=max_tokens)), own_run(k, max_tokens)
            assert target.capabilities.way == way
            assert (got.token_ids, got.finish_reason) == (own.token_ids, own.finish_reason)
            assert got.guarantee.kind == "EXACT", got.guarantee


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_the_probe_finds_is_enough_for_it(dialect: str) -> None:
    server = toy(dialect)
    found = asdict(probe(InMemory(server), server.name, TOY.encode, TOY.decode))
    del found["max_context"]  # some servers say it, and no toy needs it
    got = done(run(DRAFT, remote_target(server, **found), PROMPT, k=4, max_tokens=30))
    assert got.token_ids == own_run(4, 30).token_ids and got.guarantee.kind == "EXACT"


@pytest.mark.parametrize(("dialect", "why"), [("mlx", "other ids"), ("generates", "other tokens")])
def test_a_character_that_is_read_back_as_other_tokens_is_seen(dialect: str, why: str) -> None:
    """The toy's own tokenizer makes four tokens of the emoji that its model writes as two (trl#5224)."""
    server = ToyServer(SCORER, dialect, TOKENIZER, stop_ids=frozenset())
    events = run(DRAFT, remote_target(server, sampling=Sampling(1.3)), PROMPT, temperature=1.3, k=3, max_tokens=150)
    kinds = [m.guarantee.kind for m in metrics(events)]
    assert kinds[0] == "EXACT" and kinds[-1] == "UNKNOWN" and kinds == sorted(kinds)
    assert why in done(events).guarantee.reason and "😀" in done(events).generated_text


def chain(noise: float) -> list[list[float]]:
    """Letters in a ring of seven, of which "d" is to end a text."""
    rows = [np.eye(7)[(i + 1) % 7] + noise * np.random.default_rng(i).random(7) for i in range(7)]
    return [list(row / row.sum()) for row in rows]


@pytest.mark.parametrize(("dialect", "way"), WAYS)
def test_a_stop_token_inside_a_block_ends_the_run_there(dialect: str, way: Way) -> None:
    stops = frozenset({3})
    drafter = ModelDrafter("markov", MarkovScorer(chain(2.0)), LetterTokenizer())
    local = local_target("markov", MarkovScorer(chain(0.3)), LetterTokenizer(), 7, stop_ids=stops)
    for start in range(7):
        for k in (1, 2, 3, 6):
            server = ToyServer(chain(0.3), dialect, stop_ids=stops)
            own = done(run(drafter, local, [start], k=k, max_tokens=30))
            got = done(run(drafter, remote_target(server, way), [start], k=k, max_tokens=30))
            assert own.finish_reason == "stop_token"
            assert (got.token_ids, got.finish_reason) == (own.token_ids, own.finish_reason)
            assert got.guarantee.kind == "EXACT", got.guarantee


@pytest.mark.parametrize(("dialect", "way"), [one for one in WAYS if one[1] != "scoring"])
def test_half_characters_come_through(dialect: str, way: Way) -> None:
    """Sampled, so that the toy writes its emoji; no prompt may ever hold half of one as text."""
    server = toy(dialect, seed=2, stop_ids=frozenset())
    target = remote_target(server, way, sampling=Sampling(1.3))
    # With other seeds the toy may write " the" and "n", which as text are the token " then".
    got = done(run(DRAFT, target, PROMPT, seed=13, temperature=1.3, k=3, max_tokens=250))
    assert TOKENIZER.first_half_id in got.token_ids and "\ufffd" not in got.generated_text[:-1]
    assert all("\ufffd" not in str(body.get("prompt")) for _, body in server.requests)
    assert got.guarantee.kind == "EXACT", got.guarantee


@pytest.mark.parametrize(("dialect", "way"), WAYS)
def test_rounds_count_what_they_cost(dialect: str, way: Way) -> None:
    server = toy(dialect)
    events = run(DRAFT, remote_target(server, way), PROMPT, k=4, max_tokens=20)
    assert sum(m.requests or 0 for m in metrics(events)) == len(server.requests)
    billed = metrics(events)[-1].billed_completion_tokens
    assert billed is not None and billed > 0


def test_ids_beyond_the_vocabulary_are_never_sent() -> None:
    """Reported as llama.cpp#17480."""
    server = toy("vllm")
    target = remote_target(server, vocab_size=50)
    for context, drafted in (([1, 50], 2), ([1], 50), ([1], -1)):
        with pytest.raises(PairingError, match="Nothing was sent"):
            target.verify(asked(context, [block(drafted)], Sampling(), Rule(), 0))
    assert not server.requests


@pytest.mark.parametrize("way", ["scoring", "prefixes", "generating"])
def test_ids_beyond_the_vocabulary_are_not_taken_from_the_server(way: Way) -> None:
    table = np.full((6, 6), 1e-9) + np.eye(6)[[5] * 6]
    target = remote_target(ToyServer(table / table.sum(axis=1, keepdims=True), "vllm"), way, vocab_size=5)
    with pytest.raises(AnswerError):
        target.verify(asked([0], [block(1)], Sampling(), Rule(), 0))


def test_a_scoring_server_that_leaves_the_end_out_is_understood() -> None:
    class Silent(InMemory):
        def complete(self, request, *, engine=""):  # type: ignore[no-untyped-def]
            reply = super().complete(request, engine=engine)
            for choice in reply.body["choices"]:
                if choice["finish_reason"] == "stop":
                    choice["token_ids"] = choice["token_ids"][:-1]
                    choice["prompt_logprobs"] = None
                    choice["logprobs"] = {name: rows[:-1] for name, rows in choice["logprobs"].items()}
            return reply

    server = ToyServer(chain(0.3), stop_ids=frozenset({3}))
    target = remote_target(server, "scoring", api=Silent(server))
    got = done(run(fixed_draft([0, 0, 1, 0, 0, 0, 0]), target, [0], k=1, max_tokens=9))
    assert got.token_ids == (1, 2, 3) and got.finish_reason == "stop_token" and got.guarantee.kind == "EXACT"


class Sabotaged(InMemory):
    """Fails in one ability from some request on."""

    def __init__(self, server: ToyServer, without: str, after: int = 2) -> None:
        super().__init__(server)
        self._without, self._after = without, after

    def complete(self, request, *, engine=""):  # type: ignore[no-untyped-def]
        reply = super().complete(request, engine=engine)
        if len(self.requests) <= self._after:
            return reply
        if self._without == "scores" and request.echo:
            choice = reply.body["choices"][0]
            logprobs = {name: rows[-1:] for name, rows in choice["logprobs"].items()}
            return replace(reply, body={**reply.body, "choices": [{**choice, "logprobs": logprobs}]})
        if self._without == "batch" and len(request.prompts) > 1:
            return replace(reply, body={**reply.body, "choices": reply.body["choices"][:1]})
        if self._without == "refuses" and request.echo:
            raise RefusedError("echo is not for this model", status=400)
        if self._without == "busy" and request.echo:
            raise UnreachableError("busy", status=503)
        if self._without == "ids":
            choices = [{k: v for k, v in c.items() if k != "token_ids"} for c in reply.body["choices"]]
            return replace(reply, body={**reply.body, "choices": [{**c, "logprobs": None} for c in choices]})
        return reply


@pytest.mark.parametrize(
    ("without", "then"), [("scores", "prefixes"), ("refuses", "prefixes"), ("batch", "generating")]
)
def test_a_server_that_cannot_after_all_is_asked_in_another_way(without: str, then: Way) -> None:
    forgotten: list[int] = []
    server = toy("vllm")
    target = remote_target(
        server, api=Sabotaged(server, without), forget=lambda: forgotten.append(1), scores=without != "batch"
    )
    events = run(DRAFT, target, PROMPT, k=4, max_tokens=30)
    got = done(events)
    assert got.token_ids == own_run(4, 30).token_ids
    assert target.capabilities.way == then and forgotten == [1]
    assert got.guarantee.kind == "EXACT" and "failed during the run" in got.guarantee.reason
    assert sum(m.requests or 0 for m in metrics(events)) == len(server.requests) - (without == "refuses")
    target.reset()
    assert target.capabilities.way == then


def test_each_round_has_the_way_that_it_was_verified_in() -> None:
    """A server that loses an ability during a run: what is said of a token follows the way of its round."""
    server = toy("vllm")
    target = remote_target(server, api=Sabotaged(server, "scores"))
    events = run(DRAFT, target, PROMPT, k=4, max_tokens=30)
    state = RunState().apply_all(events)
    ways = [m.way for m in metrics(events)]
    assert ways == sorted(ways, key=("scoring", "prefixes").index) and set(ways) == {"scoring", "prefixes"}
    assert state.ways == ["scoring", "prefixes"] and state.way_of(0) == "scoring" and state.way_of(-1) == "prefixes"
    judged = {node.round: why(state, node) for node in state.nodes if node.status in ("accepted", "rejected")}
    assert "most probable" in judged[0] and judged[max(judged)].startswith("The server's own token")
    assert report.summary(state)["way"] == "prefixes"
    assert summary.ways(state) == "scored by the server, then prefixes in one call"
    assert [from_json(to_json(m)) for m in metrics(events)] == metrics(events)


def test_a_recording_without_the_ways_of_its_rounds_has_that_of_its_start() -> None:
    events = run(DRAFT, remote_target(toy("vllm")), PROMPT, k=4, max_tokens=9)
    old = [{k: v for k, v in to_json(e).items() if k != "way" or e.type == "run_started"} for e in events]
    assert RunState().apply_all(map(from_json, old)).ways == ["scoring"]


def test_a_sampled_round_that_has_to_be_repeated_is_exact_no_more() -> None:
    """The answer may be unusable because of the drawn token, and then repeating the draw favours other tokens."""
    server = toy("vllm")
    target = remote_target(server, sampling=Sampling(1.0), api=Sabotaged(server, "scores"))
    got = done(run(DRAFT, target, PROMPT, k=4, max_tokens=30, temperature=1.0))
    assert got.guarantee.kind == "UNKNOWN" and "repeat" in got.guarantee.reason


def test_a_forced_way_is_not_left_in_silence() -> None:
    server = toy("vllm")
    target = remote_target(server, "scoring", api=Sabotaged(server, "scores", after=0))
    with pytest.raises(IncapableError, match="failed during the run"):
        target.verify(asked(PROMPT, [block(1)], Sampling(), Rule(), 0))


def test_a_busy_server_is_not_demoted() -> None:
    server = toy("vllm")
    target = remote_target(server, api=Sabotaged(server, "busy", after=0))
    with pytest.raises(UnreachableError):
        target.verify(asked(PROMPT, [block(1)], Sampling(), Rule(), 0))
    assert target.capabilities.way == "scoring"


def test_ids_that_stay_away_are_done_without() -> None:
    server = toy("vllm")
    target = remote_target(server, "generating", api=Sabotaged(server, "ids"))
    got = done(run(DRAFT, target, PROMPT, k=4, max_tokens=30))
    assert got.generated_text == own_run(4, 30).generated_text


def test_nothing_left_to_do_without_is_an_error() -> None:
    body = legacy("")
    target = remote_target(toy("generates"), api=Scripted(body))
    with pytest.raises(AnswerError, match="wrote nothing"):
        target.verify(asked(PROMPT, [block(1)], Sampling(), Rule(), 0))


def test_text_that_is_read_back_as_other_ids_lowers_the_guarantee_for_the_rest_of_the_run() -> None:
    """The pieces "he" + "llo" come back as "hello" (trl#5224)."""

    class Merging(LetterTokenizer):
        def encode(self, text: str) -> list[int]:
            ids: list[int] = []
            while text:
                piece = max((p for p in self.pieces if text.startswith(p)), key=len)
                ids.append(self.pieces.index(piece))
                text = text[len(piece) :]
            return ids

    words = Merging(["x", "he", "llo", "hello", " w"])
    chain = {0: 1, 1: 2, 2: 4, 3: 4, 4: 0}
    table = [np.eye(5)[chain[i]] * 0.96 + 0.008 for i in range(5)]
    server = ToyServer([row / row.sum() for row in table], "mlx", words)
    target = remote_target(server)
    verdict = target.verify(asked([0], [block(1, 2)], Sampling(), Rule(), 0))
    assert verdict.token_ids == (1, 2, 4) and verdict.guarantee.kind == "EXACT"
    context = [0, 1, 2, 4]
    verdict = target.verify(asked(context, [block(0)], Sampling(), Rule(), 0))
    assert verdict.guarantee.kind == "UNKNOWN" and "other ids" in verdict.guarantee.reason
    assert target.verify(asked([0], [block(1)], Sampling(), Rule(), 0)).guarantee.kind == "UNKNOWN"
    target.reset()
    assert target.guarantee(Sampling(), Rule()).kind == "EXACT"


class Bytes:
    """Every byte of a text is a token: another vocabulary than the toy's."""

    vocab_size = 256

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def chat(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
        return prompt

    def chat_ids(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> tuple[str, list[int]]:
        return prompt, self.encode(prompt)

    def decode(self, token_ids: Sequence[int]) -> str:
        return bytes(token_ids).decode(errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id])

    def token_name(self, token_id: int) -> str:
        return repr(bytes([token_id]))


@pytest.mark.parametrize("k", [1, 2, 7, 16])
def test_with_another_tokenizer_the_text_is_the_targets(k: int) -> None:
    own = own_run(4, 40)
    server = toy("generates")
    target = remote_target(server, tokenizer=Bytes(), vocab_size=256, same_tokens=False)
    assert target.capabilities.way == "generating"

    class Guess:
        name: str = "guess"
        max_context: int | None = None

        def propose(
            self, context_ids: Sequence[int], k: int, sampling: Sampling, noise: Noise, n: int = 1, explain: Explain = 2
        ) -> Draft:
            whole = Bytes().encode(TOKENIZER.decode([*PROMPT, *own.token_ids]))
            ids = whole[len(context_ids) : len(context_ids) + k]
            if noise.draft().random() < 0.5 and len(ids) > 1:
                ids[len(ids) // 2] = 90
            return draft(block(*ids))

        def reset(self) -> None:
            pass

    prompt = Bytes().encode(TOKENIZER.decode(PROMPT))
    events = run(Guess(), target, prompt, k=k, max_tokens=60)
    got = done(events)
    text = own.generated_text
    assert got.generated_text == text[: len(got.generated_text)] and len(got.generated_text) > 55
    assert got.guarantee.kind == "EXACT", got.guarantee
    assert any(r.status == "accepted" for r in results(events))


def test_another_count_of_its_own_text_is_seen() -> None:
    """The server wrote two tokens and reads three: what it goes on from is not what it wrote."""
    bodies = [legacy("ab", prompt_tokens=2, completion_tokens=2), legacy("c", prompt_tokens=5, completion_tokens=1)]
    server = ToyServer([0.1] * 10, "generates")
    target = remote_target(server, api=Scripted(*bodies), same_tokens=False)
    verdict = target.verify(asked([0, 1], [block(0)], Sampling(), Rule(), 0))
    assert verdict.token_ids == (0, 1) and verdict.guarantee.kind == "EXACT"
    verdict = target.verify(asked([0, 1, 0, 1], [block(2)], Sampling(), Rule(), 0))
    assert verdict.guarantee.kind == "UNKNOWN" and "5 instead of 4" in verdict.guarantee.reason


def test_a_server_that_counts_nothing_is_not_vouched_for() -> None:
    target = remote_target(ToyServer([0.1] * 10, "generates"), api=Scripted(legacy("ab")), same_tokens=False)
    verdict = target.verify(asked([0, 1], [block(0)], Sampling(), Rule(), 0))
    assert verdict.guarantee.kind == "UNKNOWN" and "count" in verdict.guarantee.reason


def test_what_is_owed_costs_no_call_and_belongs_to_one_context() -> None:
    api = Scripted(legacy("abcd", prompt_tokens=1, completion_tokens=4), legacy("j"))
    target: Target = remote_target(ToyServer([0.1] * 10, "generates"), api=api)

    def verify(context: list[int], *draft: int) -> tuple[int, ...]:
        proposals = [block(*draft)] if draft else []
        return target.verify(asked(context, proposals, Sampling(), Rule(), 0)).token_ids

    assert verify([9], 0, 5) == (0, 1)
    free = target.verify(asked([9, 0, 1], [block(5, 5)], Sampling(), Rule(), 0))
    assert [d.status for d in free.decisions] == ["rejected", "ignored"] and free.token_ids == (2,)
    assert (free.requests, free.call_ms, free.sent_bytes, free.billed_prompt_tokens) == (0, 0.0, 0, 0)
    assert verify([9, 0, 1, 2]) == (3,)
    assert len(api.requests) == 1
    # Another context owes nothing: the server is asked.
    assert verify([9, 0, 3], 4) == (9,)
    assert len(api.requests) == 2


def test_reset_forgets_what_is_owed() -> None:
    api = Scripted(legacy("abc", prompt_tokens=1, completion_tokens=3), legacy("j"))
    target = remote_target(ToyServer([0.1] * 10, "generates"), api=api)
    assert target.verify(asked([9], [block(5)], Sampling(), Rule(), 0)).token_ids == (0,)
    target.reset()
    assert target.verify(asked([9, 0], [block(5)], Sampling(), Rule(), 0)).token_ids == (9,)


class Renamed(InMemory):
    """Answers under the names of some models, one after the other; the last one for the rest."""

    def __init__(self, server: ToyServer, *names: str) -> None:
        super().__init__(server)
        self.names = list(names)

    def complete(self, request, *, engine=""):  # type: ignore[no-untyped-def]
        reply = super().complete(request, engine=engine)
        name = self.names.pop(0) if len(self.names) > 1 else self.names[0]
        return replace(reply, body={**reply.body, "model": name})


@pytest.mark.parametrize("name", ["gemma-3-1b", "toy-2024-07-18", "toy:2", "other/toy2"])
def test_a_server_that_answers_as_another_model_says_so(name: str) -> None:
    """lmstudio-bug-tracker#619."""
    server = toy("vllm")
    found = probe(Renamed(server, name), "toy", TOY.encode, TOY.decode)
    said = f"asked for the model toy and answers as {name}:"
    assert found.answers_as == name and any(said in note for note in found.notes)
    target = remote_target(server, api=Renamed(server, name), model="toy", answers_as=name)
    events = run(DRAFT, target, PROMPT, k=4, max_tokens=9)
    started = events[0]
    assert (
        isinstance(started, RunStarted) and said in started.guarantee.reason and said in done(events).guarantee.reason
    )
    assert done(events).guarantee.kind == "EXACT", "what it promises is about the model that answers"
    assert dict(trial.findings(found))["Answers as"] == name


@pytest.mark.parametrize("name", ["toy", "Toy", "an-org/toy", "/models/TOY"])
def test_one_name_in_another_spelling_is_no_other_model(name: str) -> None:
    server = toy("vllm")
    found = probe(Renamed(server, name), "toy", TOY.encode, TOY.decode)
    assert found.answers_as == name and not any("asked for" in note for note in found.notes)
    target = remote_target(server, api=Renamed(server, name), model="toy", answers_as=name)
    assert "asked for" not in done(run(DRAFT, target, PROMPT, k=4, max_tokens=9)).guarantee.reason


@pytest.mark.parametrize("tested", ["toy", ""])
def test_a_model_that_changes_during_a_run_leaves_no_promise(tested: str) -> None:
    server, forgotten = toy("vllm"), list[int]()
    api = Renamed(server, "toy", "toy", "gemma")
    target = remote_target(server, api=api, answers_as=tested, forget=lambda: forgotten.append(1))
    events = run(DRAFT, target, PROMPT, k=2, max_tokens=30)
    kinds = [m.guarantee.kind for m in metrics(events)]
    assert kinds[:2] == ["EXACT"] * 2 and set(kinds[2:]) == {"UNKNOWN"} and forgotten
    assert "answered as toy and as gemma" in done(events).guarantee.reason


def test_another_model_than_was_tested_leaves_no_promise() -> None:
    server = toy("vllm")
    target = remote_target(server, api=Renamed(server, "gemma"), answers_as="toy")
    assert done(run(DRAFT, target, PROMPT, k=2, max_tokens=9)).guarantee.kind == "UNKNOWN"
