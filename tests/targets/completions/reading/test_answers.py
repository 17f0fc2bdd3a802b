"""Answers of servers in every shape, and everything in them that cannot be true."""

import copy
import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from specviz.core.errors import AnswerError, LackingError
from specviz.targets.completions.reading import answers
from specviz.targets.completions.values import Answer, Engine, Request, ScoredToken
from specviz.targets.completions.wire import dialect
from tests.targets.completions.mutations import mutate
from tests.targets.completions.remotes import legacy as completion
from tests.targets.completions.toyserver import ENGINES, ToyServer

TABLE = [[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]
ECHO = Request(((0, 1, 2, 0),), temperature=0, top=2, echo=True)


def raw(toy: ToyServer, request: Request, engine: Engine | None = None) -> Any:
    """The parsed JSON of a toy server's answer."""
    engine = ENGINES[toy.dialect] if engine is None else engine
    return posted(toy, *dialect.call(request, toy.name, engine))


def posted(toy: ToyServer, path: str, fields: dict[str, Any]) -> Any:
    status, body = toy.answer(path if path.startswith("/") else f"/v1/{path}", fields)
    assert status == 200, body
    return json.loads(json.dumps(body))


def answered(name: str, request: Request, **options: Any) -> Answer:
    toy = ToyServer(TABLE, name, **options)
    return answers.read(raw(toy, request), request, ENGINES[name], vocab_size=3)


def probs(rows: tuple[ScoredToken, ...]) -> list[float | None]:
    return [None if r.logprob is None else round(math.exp(r.logprob), 5) for r in rows]


# Good answers.


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_an_echo_is_split_into_prompt_and_generated(name: str) -> None:
    (choice,) = answered(name, ECHO).choices
    assert [r.token_id for r in choice.prompt] == [0, 1, 2, 0] and [r.token_id for r in choice.rows] == [1]
    assert probs(choice.prompt) == [None, 0.6, 0.25, 0.2] and probs(choice.rows) == [0.6]
    assert [t.token_id for t in choice.prompt[1].top] == [1, 2]
    assert (choice.text, choice.token_ids, choice.finish_reason) == ("b", (1,), "length")


@pytest.mark.parametrize("name", ["vllm", "sglang"])
@pytest.mark.parametrize("tail", [1, 3, 4, 9])
def test_only_the_wanted_tail_is_read(name: str, tail: int) -> None:
    (choice,) = answered(name, replace(ECHO, tail=tail)).choices
    assert [r.token_id for r in choice.prompt] == [0, 1, 2, 0][-min(tail, 4) :]
    assert probs(choice.prompt)[-1] == 0.2


def test_rows_by_text_of_vllm_get_the_ids_and_alternatives_beside_them() -> None:
    toy = ToyServer(TABLE)
    body = dialect.body(ECHO, "toy", "vllm") | {"return_tokens_as_token_ids": False}
    answer = answers.read(toy.answer("/v1/completions", body)[1], ECHO, "vllm")
    prompt = answer.choices[0].prompt
    assert [r.token_id for r in prompt] == [0, 1, 2, 0]
    assert [[t.token_id for t in r.top] for r in prompt] == [[], [1, 2], [0, 1], [2, 0]]


@pytest.mark.parametrize("name", ["vllm", "sglang", "llamacpp"])
def test_a_batch_with_samples_keeps_its_order(name: str) -> None:
    request = Request(((0,), (1,), (2,)), temperature=0, top=1, samples=2)
    answer = answered(name, request)
    assert [c.token_ids for c in answer.choices] == [(1,), (1,), (0,), (0,), (2,), (2,)]
    assert answer.usage.prompt == 3 and answer.usage.completion == 6


def test_choices_go_by_their_index() -> None:
    request = Request(((0,), (1,)), temperature=0)
    body = raw(ToyServer(TABLE), request)
    body["choices"].reverse()
    assert [c.token_ids for c in answers.read(body, request).choices] == [(1,), (0,)]


def test_the_chat_shape_of_llama_server() -> None:
    request = Request(((0, 1),), max_tokens=3, temperature=0, top=2)
    toy = ToyServer(TABLE, "llamacpp")
    body = posted(toy, "/v1/completions", dialect.body(request, toy.name, "llamacpp"))
    answer = answers.read(body, request, "llamacpp", 3)
    (choice,) = answer.choices
    assert choice.token_ids == (0, 1, 0) and [r.text for r in choice.rows] == ["a", "b", "a"]
    assert probs(choice.rows) == [0.5, 0.6, 0.5] and [t.token_id for t in choice.rows[1].top] == [1, 2]
    assert answer.compute_ms == 3.0


def test_the_own_shape_of_llama_server() -> None:
    request = Request(((0, 1),), max_tokens=3, temperature=0, top=2)
    answer = answered("llamacpp", request)
    (choice,) = answer.choices
    assert choice.token_ids == (0, 1, 0) and choice.text == "aba" and choice.finish_reason == "length"
    assert probs(choice.rows) == [0.5, 0.6, 0.5] and [t.token_id for t in choice.rows[1].top] == [1, 2]
    assert (answer.compute_ms, answer.usage.prompt, answer.usage.completion) == (3.0, 2, 3)
    batch = answered("llamacpp", Request(((0, 1), (2,)), temperature=0))
    assert [c.token_ids for c in batch.choices] == [(0,), (2,)] and batch.compute_ms is None
    assert (batch.usage.prompt, batch.usage.completion) == (3, 2)
    ended = answered("llamacpp", Request(((0,),), max_tokens=5, temperature=0, top=1), stop_ids=frozenset({1}))
    assert ended.choices[0].token_ids == (1,) and ended.choices[0].finish_reason == "stop"


def test_llama_server_names_the_ids_of_a_character_that_has_one_row() -> None:
    """🦙 is three tokens, and its row is that of the last (vllm PR#44054)."""
    row = {"id": 243, "token": "🦙", "bytes": [240, 159, 166, 153], "logprob": -0.1, "top_logprobs": []}
    body = {"content": "🦙", "tokens": [10813, 116, 243], "stop_type": "limit", "completion_probabilities": [row]}
    request = Request(((0,),), max_tokens=3, top=1)
    (choice,) = answers.read(body, request, "llamacpp").choices
    assert choice.token_ids == (10813, 116, 243) and choice.rows == ()
    (part,) = answers.read({"content": "\ufffd", "tokens": [10813]}, request, "llamacpp").choices
    assert part.token_ids == (10813,) and part.rows == ()
    with pytest.raises(LackingError, match="ids"):
        answers.read({"content": "a"}, request, "llamacpp")
    with pytest.raises(AnswerError, match="differ"):
        answers.read(body | {"tokens": [7]}, request, "llamacpp")
    with pytest.raises(AnswerError, match="at most 3"):
        answers.read(body | {"tokens": [1, 2, 3, 4]}, request, "llamacpp")


def test_mlx_gives_ids_without_words() -> None:
    (choice,) = answered("mlx", Request(("ab",), max_tokens=2, temperature=0, top=5)).choices
    assert choice.token_ids == (0, 1) and choice.text == "ab" and choice.rows[0].top == ()


def test_text_alone() -> None:
    (choice,) = answered("generates", Request(("ab",), max_tokens=2, temperature=0)).choices
    assert choice.text == "ab" and choice.token_ids is None and choice.rows == ()


def test_llama_cpp_python_lacks_a_row_without_a_bos() -> None:
    request = Request(("abca",), temperature=0, top=1, echo=True)
    with pytest.raises(LackingError, match="generated"):
        answered("llama-cpp-python", request)
    (choice,) = answered("llama-cpp-python", request, bos_id=2).choices
    assert [r.text for r in choice.prompt] == list("abca") and probs(choice.prompt) == [None, 0.6, 0.25, 0.2]


TOGETHER: dict[str, Any] = {
    "object": "text.completion",
    "prompt": [{"text": "ab", "logprobs": {"tokens": ["a", "b"], "token_ids": [0, 1], "token_logprobs": [None, -0.5]}}],
    "choices": [
        {
            "text": "c",
            "finish_reason": "length",
            "logprobs": {"tokens": ["c"], "token_ids": [2], "token_logprobs": [-0.25]},
        }
    ],
    "usage": {"prompt_tokens": 2, "completion_tokens": 1},
}
FIREWORKS: dict[str, Any] = {
    "choices": [
        {
            "index": 0,
            "text": "abc",
            "finish_reason": "length",
            "token_ids": [2],
            "logprobs": {
                "tokens": ["a", "b", "c"],
                "token_ids": [0, 1, 2],
                "token_logprobs": [0.0, -0.5, -0.25],
                "top_logprobs": [{"a": 0.0}, {"b": -0.5, "c": -1.2}, {"c": -0.25, "a": -2.0}],
            },
        }
    ],
}
CEREBRAS: dict[str, Any] = {
    "choices": [
        {
            "index": 0,
            "text": "c",
            "tokens": [2],
            "finish_reason": "length",
            "logprobs": {"tokens": ["c"], "token_logprobs": [-0.25], "top_logprobs": [{"c": -0.25, "a": -2.0}]},
        }
    ],
    "usage": {"prompt_tokens": 2, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}},
    "time_info": {"queue_time": 0.001, "prompt_time": 0.002, "completion_time": 0.003, "total_time": 0.01},
    "system_fingerprint": "fp_1",
}
PLAIN_ECHO = Request(((0, 1),), temperature=0, top=1, echo=True)


def test_together_has_its_prompt_beside_the_choices() -> None:
    (choice,) = answers.read(TOGETHER, PLAIN_ECHO).choices
    assert [(r.token_id, r.logprob) for r in choice.prompt] == [(0, None), (1, -0.5)]
    assert choice.token_ids == (2,) and choice.rows[0].logprob == -0.25


def test_fireworks_legacy_shape_and_its_chat_shape() -> None:
    request = replace(PLAIN_ECHO, tail=1, top=2)
    (choice,) = answers.read(FIREWORKS, request, "fireworks").choices
    assert choice.text == "c" and [r.token_id for r in choice.prompt] == [1] and choice.token_ids == (2,)
    rows = [{"token": "b", "token_id": 1, "logprob": -0.5}, {"token": "c", "token_id": 2, "logprob": -0.25}]
    body = {"choices": [{"index": 0, "text": "bc", "finish_reason": "length", "logprobs": {"content": rows}}]}
    (other,) = answers.read(body, request, "fireworks").choices
    assert [r.token_id for r in other.prompt] == [1] and other.text == "c" and other.token_ids == (2,)


def test_cerebras_gives_times_and_ids() -> None:
    answer = answers.read(CEREBRAS, Request(((0, 1),), temperature=0, top=2), "cerebras")
    assert (answer.queue_ms, answer.compute_ms, answer.fingerprint) == (1.0, 5.0, "fp_1")
    assert answer.choices[0].token_ids == (2,) and answer.usage.cached == 1
    assert [t.text for t in answer.choices[0].rows[0].top] == ["c", "a"]


def test_llama_servers_whole_characters_are_not_taken_for_tokens() -> None:
    """One row stands for all tokens of a character, with the id of the last: those are not the ids."""
    row = {"id": 4, "token": "😀", "bytes": [240, 159, 152, 128], "logprob": -0.1, "top_logprobs": []}
    body = {"choices": [{"index": 0, "text": "😀", "finish_reason": "length", "logprobs": {"content": [row]}}]}
    request = Request(((0,),), max_tokens=3, top=1)
    counted = body | {"usage": {"prompt_tokens": 1, "completion_tokens": 3}}
    assert answers.read(counted, request, "llamacpp").choices[0].token_ids is None
    assert answers.read(body, request, "llamacpp").choices[0].token_ids is None
    one = body | {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    assert answers.read(one, request, "llamacpp").choices[0].token_ids == (4,)


def test_a_part_of_a_character_has_no_row() -> None:
    body = {"choices": [{"index": 0, "text": "\ufffd", "finish_reason": "length", "logprobs": None}]}
    (choice,) = answers.read(body, Request(((0,),), top=1), "llamacpp").choices
    assert choice.token_ids is None and choice.rows == ()


def test_an_end_of_text_needs_no_row() -> None:
    body = {"choices": [{"index": 0, "text": "", "finish_reason": "stop", "logprobs": {"content": []}}]}
    assert answers.read(body, Request(((0,),), top=1)).choices[0].finish_reason == "stop"


@pytest.mark.parametrize("worst", [-9999.0, -3.4e38, -math.inf])
def test_impossible_tokens(worst: float) -> None:
    rows = [{"id": 1, "token": "b", "logprob": -0.1, "top_logprobs": [{"id": 2, "token": "c", "logprob": worst}]}]
    rows[0]["top_logprobs"].append({"id": 1, "token": "b", "logprob": -0.1})  # type: ignore[attr-defined]
    body = {"choices": [{"index": 0, "text": "b", "finish_reason": "length", "logprobs": {"content": rows}}]}
    (choice,) = answers.read(body, Request(((0,),), top=2)).choices
    assert [(t.token_id, t.logprob) for t in choice.rows[0].top] == [(1, -0.1), (2, -math.inf)]


# Alternatives.


def row(own: str, value: float, best: Any, top: int, ids: list[int] | None = None) -> ScoredToken:
    block = {"tokens": [own], "token_logprobs": [value], "top_logprobs": [best], "token_ids": ids}
    body = {"choices": [{"index": 0, "text": own, "finish_reason": "length", "logprobs": block}]}
    return answers.read(body, Request(((0,),), top=top)).choices[0].rows[0]


def test_the_token_itself_is_no_alternative_when_it_was_added() -> None:
    best = {"token_id:7": -6.0, "token_id:1": -0.2, "token_id:2": -2.5}
    assert [t.token_id for t in row("token_id:7", -6.0, best, 2).top] == [1, 2]
    # A server that gives fewer than requested adds it too: tokens between may be missing.
    assert [t.token_id for t in row("token_id:7", -6.0, best, 5).top] == [1, 2]


def test_the_kept_ones_do_not_depend_on_the_token() -> None:
    best = {"token_id:1": -0.2, "token_id:2": -2.5}
    assert row("token_id:2", -2.5, best, 2).top == row("token_id:1", -0.2, best, 2).top


@pytest.mark.parametrize(
    "best",
    [
        {"": -0.2, " a": -2.5},  # parts of characters share the empty text
        {"\ufffd": -0.2, " a": -2.5},
        {" b": -0.2},  # one of two is missing
        {" own": -2.5, " b": -0.2},  # another token with the same text has overwritten its entry
    ],
)
def test_texts_that_tokens_may_share_are_not_used(best: dict[str, float]) -> None:
    scored = row(" own", -8.25, best, 2)
    assert scored.logprob == -8.25 and scored.top == ()


def test_a_list_by_text_is_good_up_to_the_first_unclear_one() -> None:
    best = [{"token": t, "logprob": v} for t, v in ((" a", -0.5), (" b", -1.5), ("", -3.0), (" c", -4.0))]
    content = [{"token": " a", "logprob": -0.5, "top_logprobs": best}]
    body = {"choices": [{"index": 0, "text": " a", "finish_reason": "length", "logprobs": {"content": content}}]}
    top = answers.read(body, Request((" x",), top=4)).choices[0].rows[0].top
    assert [t.text for t in top] == [" a", " b"]


# What cannot be true.


def broken(change: Any, name: str = "vllm", request: Request = ECHO) -> str:
    """The error that a changed answer gives."""
    body = raw(ToyServer(TABLE, name), request)
    change(body)
    with pytest.raises(AnswerError) as caught:
        answers.read(body, request, ENGINES[name], vocab_size=3)
    assert len(str(caught.value)) < 400
    return caught.value.message


def legacy(body: Any) -> Any:
    return body["choices"][0]["logprobs"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda b: b.update(choices=[]), "0 choices, not 1"),
        (lambda b: b.update(choices=b["choices"] * 2), "there must be 1 choices, not 2"),
        (lambda b: b.update(choices=None), "expected `array`, got `null` - at `$.choices`"),
        (lambda b: b["choices"][0].update(logprobs=None), "log-probabilities"),
        (lambda b: legacy(b)["token_logprobs"].pop(), "5 tokens, 4 log-probabilities"),
        (lambda b: legacy(b)["token_logprobs"].__setitem__(2, None), "not null"),
        (lambda b: legacy(b)["token_logprobs"].__setitem__(2, math.nan), "token_logprobs[2]"),
        (lambda b: legacy(b)["token_logprobs"].__setitem__(2, math.inf), "token_logprobs[2]"),
        (lambda b: legacy(b)["token_logprobs"].__setitem__(2, 10**400), "out of range"),
        (lambda b: legacy(b)["token_logprobs"].__setitem__(2, "-0.5"), "got `str`"),
        (lambda b: legacy(b)["token_logprobs"].__setitem__(2, True), "got `bool`"),
        (
            lambda b: legacy(b)["token_logprobs"].__setitem__(2, 0.5),
            "expected a log-probability, a number of at most 0",
        ),
        (lambda b: legacy(b)["tokens"].__setitem__(1, "token_id:2"), "not those that were sent"),
        (lambda b: legacy(b)["tokens"].__setitem__(1, "token_id:77"), "not those that were sent"),
        (lambda b: legacy(b)["top_logprobs"].__setitem__(1, {"token_id:0": -0.1, "token_id:1": -0.5}), "sum to"),
        (lambda b: legacy(b)["top_logprobs"].__setitem__(1, {"token_id:0": -3, "token_id:1": -1}), "in one row"),
        (lambda b: legacy(b)["top_logprobs"].__setitem__(1, {"token_id:0": -3, "token_id:2": -4}), "is missing among"),
        (
            lambda b: legacy(b)["top_logprobs"].__setitem__(1, {"token_id:77": -2, "token_id:1": -0.51}),
            "below 3, not 77",
        ),
        (lambda b: b["choices"][0].update(token_ids=[-1]), "expected `int` >= 0"),
        (lambda b: b["choices"][0].update(token_ids=[True]), "got `bool`"),
        (lambda b: b["choices"][0].update(token_ids=[2]), "differ from those"),
        (lambda b: b["choices"][0].update(token_ids=[1, 1]), "log-probabilities of 1 generated"),
        (lambda b: b["choices"][0].update(text=None), "expected `str`, got `null` - at `$.choices[0].text`"),
        (lambda b: b["choices"][0].update(index=1), "numbered from 0"),
        (lambda b: b["choices"][0].update(finish_reason=3), "finish_reason"),
        (lambda b: b["usage"].update(prompt_tokens=-3), "prompt_tokens"),
    ],
)
def test_what_cannot_be_true_is_refused(change: Any, words: str) -> None:
    assert words in broken(change)


def test_echo_that_is_ignored() -> None:
    """The generated token alone comes back (llama.cpp#27174)."""
    body = raw(ToyServer(TABLE), replace(ECHO, echo=False))
    with pytest.raises(LackingError, match="1 rows in all"):
        answers.read(body, ECHO, "vllm")


def test_all_zero_is_no_probability() -> None:
    """Reported as vllm#17876."""

    def silence(body: Any) -> None:
        rows = legacy(body)
        rows["token_logprobs"] = [None, *[0.0] * (len(rows["tokens"]) - 1)]
        rows["top_logprobs"] = [None, *[{t: 0.0} for t in rows["tokens"][1:]]]

    assert "every log-probability is 0" in broken(silence)


def test_zeros_of_generated_tokens_are_not_taken_for_certainty() -> None:
    content = [{"id": i, "token": "b", "logprob": 0.0, "top_logprobs": []} for i in (1, 1)]
    body = {"choices": [{"index": 0, "text": "bb", "finish_reason": "length", "logprobs": {"content": content}}]}
    (choice,) = answers.read(body, Request(((0,),), max_tokens=2, top=2)).choices
    assert [r.logprob for r in choice.rows] == [None, None] and choice.token_ids == (1, 1)


def test_llama_server_gives_no_probability_for_a_token_that_it_drafted_itself() -> None:
    """The first token was computed; the second is one of its own draft that it kept."""
    first = {"id": 1, "token": "b", "logprob": -2.0, "top_logprobs": [{"id": 1, "token": "b", "logprob": -2.0}]}
    second = {"id": 0, "token": "a", "logprob": 0.0, "top_logprobs": []}
    body = {"content": "ba", "tokens": [1, 0], "stop_type": "limit", "completion_probabilities": [first, second]}
    (choice,) = answers.read(body, Request(((0,),), max_tokens=2, top=2), "llamacpp").choices
    assert [r.logprob for r in choice.rows] == [-2.0, None] and choice.token_ids == (1, 0)


def test_true_certainty_is_accepted() -> None:
    sure = np.eye(3).tolist()
    request = replace(ECHO, prompts=((1, 1, 1),))
    answer = answers.read(raw(ToyServer(sure), request), request, "vllm")
    assert probs(answer.choices[0].prompt) == [None, 1.0, 1.0]


@pytest.mark.parametrize("body", [None, [], {}, "text", 3, [[]], {"choices": [[]]}, {"error": {"message": "no"}}])
@pytest.mark.parametrize("engine", ["", "sglang"])
def test_nonsense(body: Any, engine: Engine) -> None:
    with pytest.raises(AnswerError):
        answers.read(body, ECHO, engine)


def test_words_of_the_server_are_not_repeated() -> None:
    """A text in place of a number, which may be a key, is not in the message."""
    assert "sk-planted" not in broken(lambda b: legacy(b)["token_logprobs"].__setitem__(2, "sk-planted"))
    assert "sk-planted" not in broken(lambda b: b["choices"][0].update(finish_reason=["sk-planted"]))


# Ten thousand answers with something wrong.


@dataclass(frozen=True)
class Good:
    """A sound answer, with its request and engine."""

    body: Any
    request: Request
    engine: Engine


def good(name: str, request: Request, **options: Any) -> Good:
    toy = ToyServer(TABLE, name, **options)
    made = Good(raw(toy, request), request, ENGINES[name])
    answers.read(made.body, request, made.engine, 3)
    return made


SAMPLES = Request(((0, 1),), max_tokens=1, temperature=1.0, top=2, samples=3)
PREFIXES = Request(((0,), (0, 1), (0, 1, 2)), max_tokens=1, temperature=1.0, top=1)
FREE = Request(((0, 1),), max_tokens=4, temperature=1.0, top=2)
TEXT = Request(("ab",), max_tokens=4, temperature=1.0, top=2)

LLAMACPP_CHAT = posted(toy := ToyServer(TABLE, "llamacpp"), "/v1/completions", dialect.body(FREE, toy.name, "llamacpp"))

GOOD = {
    "vllm": [good("vllm", r) for r in (ECHO, replace(ECHO, tail=2), SAMPLES, PREFIXES, FREE)],
    "sglang": [good("sglang", r) for r in (ECHO, replace(ECHO, tail=2), SAMPLES, PREFIXES, FREE)],
    "llamacpp": [good("llamacpp", r) for r in (SAMPLES, PREFIXES, FREE)],
    "llamacpp chat": [Good(LLAMACPP_CHAT, FREE, "llamacpp")],
    "llama-cpp-python": [
        good("llama-cpp-python", Request(("abca",), temperature=0, top=2, echo=True), bos_id=2),
        good("llama-cpp-python", TEXT),
    ],
    "mlx": [good("mlx", TEXT)],
    "generates": [good("generates", replace(TEXT, top=None))],
    "together": [Good(TOGETHER, PLAIN_ECHO, "together")],
    "fireworks": [Good(FIREWORKS, replace(PLAIN_ECHO, tail=1), "fireworks")],
    "cerebras": [Good(CEREBRAS, Request(((0, 1),), temperature=0, top=2), "cerebras")],
}
EXAMPLES = {"vllm": 2000, "sglang": 2000, "llamacpp": 1500, "llama-cpp-python": 1000} | dict.fromkeys(
    ("llamacpp chat", "mlx", "generates", "together", "fireworks", "cerebras"), 700
)


def check_sound(answer: Answer, request: Request, vocab_size: int) -> None:
    """What the users of an answer rely on."""
    assert len(answer.choices) == len(request.prompts) * request.samples
    for at, choice in enumerate(answer.choices):
        prompt = request.prompts[at // request.samples]
        assert isinstance(choice.text, str)
        ids = choice.token_ids
        assert ids is None or (len(ids) <= request.max_tokens and all(type(i) is int for i in ids))
        assert ids is None or all(0 <= i < vocab_size for i in ids)
        assert len(choice.rows) <= request.max_tokens
        for n, scored in enumerate((*choice.prompt, *choice.rows)):
            first = n == 0 and len(choice.prompt) == len(prompt)
            assert scored.logprob is None or scored.logprob <= 0, scored
            assert scored.logprob is not None or first or n >= len(choice.prompt) or isinstance(prompt, str)
            assert scored.token_id is None or 0 <= scored.token_id < vocab_size
            values = [t.logprob for t in scored.top]
            assert len(values) <= (request.top or 0) and values == sorted(values, reverse=True)
            assert math.fsum(map(math.exp, values)) <= 1.01
            named = [t.token_id if t.token_id is not None else t.text for t in scored.top]
            assert len(set(named)) == len(named)
        if request.echo and isinstance(prompt, tuple):
            wanted = len(prompt) if request.tail is None else min(request.tail, len(prompt))
            assert len(choice.prompt) >= wanted
            known = [r.token_id for r in choice.prompt]
            assert None in known or tuple(known) == prompt[-len(known) :]
        if request.top is not None and not choice.rows:
            # llama-server gives ids without rows where several make up a character.
            assert choice.finish_reason not in (None, "length") or "\ufffd" in choice.text or choice.token_ids
    for count in (answer.usage.prompt, answer.usage.completion, answer.usage.cached):
        assert count is None or (type(count) is int and count >= 0)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_mutated_answers(name: str) -> None:
    """Each of 10,000 changed answers is one of our errors, or a sound answer."""

    @settings(max_examples=EXAMPLES[name], deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def run(data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(GOOD[name]))
        body = copy.deepcopy(one.body)
        for _ in range(data.draw(st.integers(1, 3))):
            body = mutate(body, data.draw)
        try:
            answer = answers.read(body, one.request, one.engine, 3)
        except AnswerError as exc:
            assert len(exc.message) < 300
            return
        check_sound(answer, one.request, 3)

    run()


@settings(max_examples=300, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), lambda inner: (
    st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(
        ["choices", "logprobs", "content", "tokens", "token_logprobs", "meta_info", "text", "id", "logprob", "index"]
    ), inner, max_size=5)
)))  # fmt: skip
@example({"choices": [{"text": "", "logprobs": {"content": [{"logprob": 0.0, "top_logprobs": [[]]}]}}]})
def test_any_json_at_all(body: Any) -> None:
    with pytest.raises(AnswerError):
        answers.read(body, ECHO)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("place", ["own", "beside"])
def test_a_log_probability_that_is_no_number_is_refused(value: float, place: str) -> None:
    """vllm#53029."""
    body = completion("a")
    own, beside = (value, -0.5) if place == "own" else (-0.5, value)
    logprobs = {"tokens": ["a"], "token_logprobs": [own], "top_logprobs": [{"a": own, "b": beside}]}
    body["choices"][0]["logprobs"] = logprobs
    with pytest.raises(AnswerError, match="expected a log-probability, a number of at most 0"):
        answers.read(body, Request(("x",), top=2))


@pytest.mark.parametrize(("choices", "said"), [(None, "got `null`"), ([], "0 choices, not 1"), ([None], "got `null`")])
def test_an_answer_without_choices_is_refused(choices: Any, said: str) -> None:
    with pytest.raises(AnswerError, match=said):
        answers.read({**completion("a"), "choices": choices}, Request(("x",)))
