"""At temperature 0 a run's output is that of plain decoding, or the run says where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from specviz.core import session
from specviz.core.baseline import Baselines
from specviz.core.events import Done, Event, Metrics
from specviz.core.pair import Pair
from specviz.core.plain_output import PlainOutput, digest
from specviz.core.ports import Target
from specviz.core.sampling import Logits
from specviz.core.session import EncodedPrompt
from specviz.core.settings import Settings
from specviz.drafters.model import ModelDrafter
from specviz.drafters.none import NoDrafter
from specviz.engines.toy import ToyScorer
from tests.targets.completions.remotes import TOY, WAYS, remote_target
from tests.targets.completions.toyserver import InMemory, ToyServer
from tests.toys import TOKENIZER, LetterTokenizer, MarkovScorer, local_target, toy_draft, toy_target

PROMPT = TOKENIZER.encode(" the model drafts a token and then it is")


def run(target: Target, drafter: Any = None, baselines: Baselines | None = None, **wanted: Any) -> list[Event]:
    pair = Pair(drafter or toy_draft(), target)
    settings = Settings(**{"temperature": 0.0, "k": 4, "max_tokens": 30} | wanted)
    return list(session.run(pair, EncodedPrompt(PROMPT), settings, baselines=baselines or Baselines()))


def done(events: Sequence[Event]) -> Done:
    assert isinstance(events[-1], Done), events[-1]
    return events[-1]


class Swapped(MarkovScorer):
    """The two most probable tokens change places in every row of a block; rows of single tokens are right."""

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        sound = super().score(token_ids, rows).copy()
        if rows > 1:
            for row in sound:
                first, second = np.argsort(-row)[:2]
                row[[first, second]] = row[[second, first]]
        return sound


def swapping(gap: float) -> list[Event]:
    """A run of a target whose blocks are wrong, with two tokens this far apart at the top of each row."""
    top = np.exp([gap, 0.0, -3.0])
    table = [np.roll(top / top.sum(), i + 1) for i in range(3)]
    drafter, target = MarkovScorer(table), local_target("wrong", Swapped(table), LetterTokenizer(), 3)
    pair = Pair(ModelDrafter("small", drafter, LetterTokenizer()), target)
    settings = Settings(temperature=0.0, k=2, max_tokens=12)
    return list(session.run(pair, EncodedPrompt([0, 1]), settings, baselines=Baselines()))


def test_a_target_whose_blocks_give_other_tokens_than_it_writes_is_not_exact() -> None:
    events = swapping(gap=2.0)
    found = done(events).guarantee
    assert found.kind == "UNKNOWN" and "wrote another token 1 of the output" in found.reason
    assert "2 apart, no near tie" in found.reason
    assert {m.guarantee.kind for m in events if isinstance(m, Metrics)} == {"UNKNOWN"}, "it only gets weaker"


def test_a_near_tie_is_told_from_a_bug() -> None:
    found = done(swapping(gap=0.01)).guarantee
    assert found.kind == "EXACT" and "token 1 of the output" in found.reason and "a near tie" in found.reason


class Spoilt(InMemory):
    """Every third scored row of a prompt has its two most probable tokens in each other's place (vllm PR#42245)."""

    def complete(self, request, *, engine=""):  # type: ignore[no-untyped-def]
        reply = super().complete(request, engine=engine)
        for choice in reply.body["choices"] if request.echo else ():
            for i, rows in enumerate(choice.get("prompt_logprobs") or ()):
                if rows and i % 3 == 0:
                    (one, a), (two, b) = sorted(rows.items(), key=lambda item: -item[1]["logprob"])[:2]
                    rows[one], rows[two] = {**a, "logprob": b["logprob"]}, {**b, "logprob": a["logprob"]}
            logprobs = choice["logprobs"]
            for i, top in enumerate(logprobs["top_logprobs"]):
                if top and i % 3 == 0:
                    one, two = sorted(top, key=top.__getitem__, reverse=True)[:2]
                    top[one], top[two] = top[two], top[one]
                    if logprobs["tokens"][i] in (one, two):
                        logprobs["token_logprobs"][i] = top[logprobs["tokens"][i]]
        return reply


def test_a_server_whose_scores_are_not_those_that_it_writes_by_is_not_exact() -> None:
    server = ToyServer(ToyScorer(TOY), "vllm", TOY)
    own = done(run(toy_target()))
    got = done(run(remote_target(server, "scoring", api=Spoilt(server))))
    first = next(i for i, (one, other) in enumerate(zip(got.token_ids, own.token_ids, strict=False)) if one != other)
    assert got.guarantee.kind == "UNKNOWN" and f"another token {first + 1} of the output" in got.guarantee.reason
    without = list(session.run(Pair(toy_draft(), remote_target(server)), EncodedPrompt(PROMPT), Settings(max_tokens=9)))
    assert done(without).guarantee.kind == "EXACT"


@pytest.mark.parametrize(("dialect", "way"), WAYS)
def test_every_sound_server_writes_what_it_streams(dialect: str, way: Any) -> None:
    got = done(run(remote_target(ToyServer(ToyScorer(TOY), dialect, TOY), way)))
    assert got.guarantee.kind == "EXACT" and "Plain decoding" not in got.guarantee.reason


@pytest.mark.parametrize("drafter", [None, NoDrafter()])
def test_a_sound_target_is_exact_also_with_a_baseline_that_was_kept(drafter: Any) -> None:
    kept = Baselines()
    for _ in range(2):
        found = done(run(toy_target(), drafter, kept)).guarantee
        assert found.kind == "EXACT" and "Plain decoding" not in found.reason


def test_only_the_same_prompt_is_compared() -> None:
    wrong = PlainOutput(digest([*PROMPT, 1]), (0,) * 9)
    assert not wrong.follows(PROMPT) and PlainOutput(digest(PROMPT), (0,)).follows(PROMPT)


@pytest.mark.parametrize(
    ("streamed", "output", "first"),
    [
        ("abcde", "abc", None),
        ("ab", "abcde", None),
        (" abc", "abd", 2),
        ("abc", "abc", None),
        ("ab\ufffd", "abde", None),
        ("xbc", "abc", 0),
        ("", "abc", None),
    ],
)
def test_texts_are_compared_as_far_as_both_go(streamed: str, output: str, first: int | None) -> None:
    plain = PlainOutput(b"", None, streamed)
    assert plain.first_difference(LetterTokenizer().encode(output), LetterTokenizer()) == first


def test_special_tokens_may_be_written_by_name_or_not_at_all() -> None:
    ids = [*TOKENIZER.encode(" the"), TOKENIZER.end_id, *TOKENIZER.encode(" a")]
    for streamed in (" the<|end|> a", " the a", "the a"):
        assert PlainOutput(b"", None, streamed).first_difference(ids, TOKENIZER) is None
    assert PlainOutput(b"", None, " the<|end|> model").first_difference(ids, TOKENIZER) == 2


def test_above_temperature_0_nothing_is_compared() -> None:
    events = run(toy_target(), temperature=0.7)
    assert done(events).guarantee == replace(done(events).guarantee, kind="EXACT")
    assert "Plain decoding" not in done(events).guarantee.reason
