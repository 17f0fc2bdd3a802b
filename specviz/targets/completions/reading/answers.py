"""Reads what a server answered. Pure: JSON of any shape in, an `Answer` out, or an error that says what is wrong.

Nothing is taken on trust, since every number decides about tokens: rows are matched with what was sent by the tokens
themselves, never by counting what `usage` says, and whoever reads an `Answer` need not check it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specviz.targets.completions.reading import rows as shapes
from specviz.targets.completions.reading.checks import lacking, listing, mapping, number, refuse, text, token_ids, whole
from specviz.targets.completions.reading.rows import AnswerRows
from specviz.targets.completions.values import Answer, Choice, Engine, Prompt, Request, ScoredToken, Usage

#: Fewer rows than this may all be certain by chance.
_FEW = 2
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What an answer is read against.

    Attributes:
        counted: tokens that the server says it generated, where it answered with one choice.
    """

    request: Request
    engine: Engine
    vocab_size: int | None
    counted: int | None = None


def read(body: Any, request: Request, engine: Engine = "", vocab_size: int | None = None) -> Answer:
    """Read a reply to a request.

    Args:
        body: parsed JSON. The shapes of SGLang's and llama-server's own endpoints are known by themselves.
        engine: who answered, where that changes what a figure means.
        vocab_size: ids at or beyond it are refused; None where it is not known.

    Returns:
        As many choices as prompts times samples; with `request.top`, rows for what was generated, and with
        `request.echo` rows for the prompt's last `request.tail` tokens, each with its number.

    Raises:
        LackingError: sound, but without rows, choices or tokens that were asked for.
        AnswerError: a shape that is not known, or values that cannot be true.
    """
    asked = _Asked(request, engine, vocab_size)
    reader = _native if _is_native(body) else _llamacpp if _is_llamacpp(body) else _legacy
    answer = reader(body, asked)
    return _without_certainty(answer, request)


# The completions API.


def _legacy(body: Any, asked: _Asked) -> Answer:
    request = asked.request
    whole_body = mapping(body, "the answer")
    if whole_body.get("error") and "choices" not in whole_body:
        refuse("it is an error, though its status says success")
    listed = listing(whole_body.get("choices"), "choices")
    _check_count(len(listed), request)
    listed = _in_order(listed)
    usage = _usage(whole_body.get("usage"))
    asked = replace(asked, counted=usage.completion if len(listed) == 1 else None)
    echoed = _echoed_beside(whole_body, asked)
    choices = tuple(
        _choice(given, asked, prompt, echoed[at // request.samples] if echoed else None)
        for at, (given, prompt) in enumerate(zip(listed, _prompts(request), strict=True))
    )
    if asked.engine == "llamacpp" and len(listed) > 1:
        usage = _counted(request, choices)  # its own figure is that of the first prompt alone
    queue_ms, compute_ms = _times(whole_body, len(listed))
    return Answer(choices, usage, queue_ms, compute_ms, _fingerprint(whole_body))


def _check_count(count: int, request: Request) -> None:
    wanted = len(request.prompts) * request.samples
    if count < wanted:
        lacking(f"{count} choices, not {wanted}")
    if count > wanted:
        refuse(f"there must be {wanted} choices, not {count}")


def _prompts(request: Request) -> list[Prompt]:
    """The prompt of each choice."""
    return [prompt for prompt in request.prompts for _ in range(request.samples)]


def _in_order(given: list[Any]) -> list[Mapping[str, Any]]:
    """Choices by their index; as they came where none has one."""
    choices = [mapping(c, "a choice") for c in given]
    if all(c.get("index") is None for c in choices):
        return choices
    order = [whole(c.get("index"), "the index of a choice") for c in choices]
    if sorted(order) != list(range(len(choices))):
        refuse("the choices must be numbered from 0, each once")
    return [choice for _, choice in sorted(zip(order, choices, strict=True), key=lambda pair: pair[0])]


def _choice(given: Mapping[str, Any], asked: _Asked, prompt: Prompt, echoed: AnswerRows | None) -> Choice:
    request, vocab_size = asked.request, asked.vocab_size
    finish = _finish(given.get("finish_reason"))
    words = text(given.get("text"), "the text of a choice")
    said = _said_ids(given, vocab_size)
    block = given.get("logprobs")
    if request.top is None:
        return _finished(_without_echo(words, prompt, request), AnswerRows(), AnswerRows(), said, finish, asked)
    if block is None and not request.echo and _REPLACEMENT in words:
        # llama-server has no row for a part of a character.
        return _finished(words, AnswerRows(), AnswerRows(), said, finish, asked)
    rows = _named(_rows(block, vocab_size), given, vocab_size)
    if echoed is not None:
        before, made = _matching(echoed, prompt, request), rows
    elif request.echo:
        before, made = _split(rows, prompt, said, request)
        before = _richer(before, given, vocab_size)
    else:
        before, made = AnswerRows(), rows
    words = words.removeprefix("".join(before.texts)) if request.echo else words
    return _finished(words, made, before, said, finish, asked)


def _rows(block: Any, vocab_size: int | None) -> AnswerRows:
    if block is None:
        lacking("log-probabilities")
    fields = mapping(block, "logprobs")
    if fields.get("content") is not None:
        return shapes.from_content(listing(fields["content"], "content"), vocab_size)
    return shapes.from_lists(fields, vocab_size)


def _said_ids(given: Mapping[str, Any], vocab_size: int | None) -> tuple[int, ...] | None:
    """Ids of what was generated, beside the rows: vLLM and Fireworks say `token_ids`, Cerebras `tokens`."""
    for name in ("token_ids", "tokens"):
        if given.get(name) is not None:
            return token_ids(given[name], name, vocab_size)
    return None


def _named(rows: AnswerRows, given: Mapping[str, Any], vocab_size: int | None) -> AnswerRows:
    """Rows by text with the ids that vLLM says beside them."""
    if rows.known_ids() is not None or given.get("token_ids") is None or given.get("prompt_token_ids") is None:
        return rows
    before = token_ids(given["prompt_token_ids"], "prompt_token_ids", vocab_size)
    behind = token_ids(given["token_ids"], "token_ids", vocab_size)
    both = (*before, *behind)
    if len(both) == len(rows):
        return rows.with_ids(both)
    return rows.with_ids(behind) if len(behind) == len(rows) else rows


def _richer(before: AnswerRows, given: Mapping[str, Any], vocab_size: int | None) -> AnswerRows:
    """The prompt's rows by id, where vLLM gives them beside rows by text, in which alternatives may fall together."""
    beside, ids = given.get("prompt_logprobs"), before.known_ids()
    by_text = any(before.texts)
    if not by_text or ids is None or not isinstance(beside, list) or len(beside) != len(ids):
        return before
    return shapes.from_prompt_logprobs(beside, ids, vocab_size)


def _echoed_beside(body: Mapping[str, Any], asked: _Asked) -> list[AnswerRows] | None:
    """Together's prompt rows, which stand beside the choices."""
    beside, request = body.get("prompt"), asked.request
    if not request.echo or request.top is None or not isinstance(beside, list) or not beside:
        return None
    if len(beside) != len(request.prompts):
        lacking(f"log-probabilities of {len(beside)} prompts out of {len(request.prompts)}")
    return [_rows(mapping(one, "a prompt").get("logprobs"), asked.vocab_size) for one in beside]


# Which rows are the prompt's.


def _split(
    rows: AnswerRows, prompt: Prompt, said: Sequence[int] | None, request: Request
) -> tuple[AnswerRows, AnswerRows]:
    """Part the rows of an echo into prompt and generated, by what stands in them."""
    most = request.max_tokens if said is None else min(len(said), request.max_tokens)
    tried = range(min(most, len(rows)), -1, -1)
    # A whole prompt is likelier than the tail of one that looks like it.
    splits = [(rows.part(0, len(rows) - made), rows.part(len(rows) - made)) for made in tried]
    fitting = [(before, behind) for before, behind in splits if _fits(before, prompt, request)]
    if not fitting:
        _say_mismatch(rows, prompt, request)
    return max(fitting, key=lambda pair: (len(pair[0]) == len(prompt), len(pair[1])))


def _fits(before: AnswerRows, prompt: Prompt, request: Request) -> bool:
    """Whether rows are the prompt's, or the last ones of it that were asked for."""
    if not len(before):
        return False
    if isinstance(prompt, str):
        # A BOS of the server's may stand in front.
        return prompt in ("".join(before.texts), "".join(before.texts[1:]))
    ids = before.known_ids()
    if ids is None:
        return len(before) == len(prompt)
    enough = len(prompt) if request.tail is None else min(request.tail, len(prompt))
    return len(ids) >= enough and ids == tuple(prompt[-len(ids) :])


def _matching(before: AnswerRows, prompt: Prompt, request: Request) -> AnswerRows:
    if not _fits(before, prompt, request):
        _say_mismatch(before, prompt, request)
    return before


def _say_mismatch(rows: AnswerRows, prompt: Prompt, request: Request) -> None:
    if len(rows) <= request.max_tokens and not (len(prompt) <= len(rows) and isinstance(prompt, tuple)):
        lacking(f"log-probabilities of the prompt: there are {len(rows)} rows in all")
    if isinstance(prompt, tuple) and len(rows) < len(prompt) and request.tail is None:
        lacking(f"log-probabilities of the prompt: there are {len(rows)} rows for {len(prompt)} tokens")
    refuse("the tokens that it repeats are not those that were sent")


def _without_echo(words: str, prompt: Prompt, request: Request) -> str:
    return words.removeprefix(prompt) if request.echo and isinstance(prompt, str) else words


# One choice, checked.


def _finished(
    words: str, made: AnswerRows, before: AnswerRows, said: tuple[int, ...] | None, finish: str | None, asked: _Asked
) -> Choice:
    request, top = asked.request, asked.request.top or 0
    stopped = finish is not None and finish != "length"
    if request.top is not None:
        _check_made(made, said, words, stopped, request)
    ids = _ids_of(made, stopped, asked) if said is None else said
    if ids == () and (words or not stopped):
        lacking("the ids of what was generated")
    if ids is not None and len(ids) > request.max_tokens:
        refuse(f"at most {request.max_tokens} tokens were to be generated, not {len(ids)}")
    tail = len(before) if request.tail is None else min(request.tail, len(before))
    whole_prompt = len(before) == tail
    return Choice(
        text=words,
        rows=made.read(top, asked.vocab_size),
        prompt=before.part(len(before) - tail).read(top, asked.vocab_size, first_may_be_empty=whole_prompt),
        token_ids=ids,
        finish_reason=finish,
    )


def _ids_of(made: AnswerRows, stopped: bool, asked: _Asked) -> tuple[int, ...] | None:
    """Ids of all that was generated, out of its rows; None where rows may be missing.

    llama-server has one row for a whole character, with the id of the last of its tokens.
    """
    if not len(made):
        return None
    if asked.counted is None:
        return made.known_ids() if stopped or len(made) == asked.request.max_tokens else None
    # Other servers may leave out the token that ends a text.
    uncounted = 1 if stopped and asked.engine != "llamacpp" else 0
    return made.known_ids() if len(made) <= asked.counted <= len(made) + uncounted else None


def _check_made(made: AnswerRows, said: Sequence[int] | None, words: str, stopped: bool, request: Request) -> None:
    """Rows of what was generated: as many as tokens; the one that ends a text need not be among them."""
    count = len(made)
    if count > request.max_tokens:
        refuse(f"at most {request.max_tokens} tokens were to be generated, not {count}")
    if not count and not (stopped and not words) and _REPLACEMENT not in words:
        lacking("the log-probability of what was generated")
    if said is None:
        return
    if count not in ((len(said), len(said) - 1) if stopped else (len(said),)):
        lacking(f"log-probabilities of {count} generated tokens out of {len(said)}")
    known = made.known_ids()
    if known is not None and known != tuple(said[:count]):
        refuse("the generated tokens differ from those of their log-probabilities")


def _finish(given: Any) -> str | None:
    if isinstance(given, Mapping):
        given = given.get("type")
    return None if given is None else text(given, "finish_reason")


def _without_certainty(answer: Answer, request: Request) -> Answer:
    """Deal with log-probabilities that are all 0.0, which is how some servers say that they have none.

    A single one may be true, and several of what was generated too: there the figure is dropped, unless a draw is to be
    judged by it.
    """
    before = [row for choice in answer.choices for row in choice.prompt]
    made = [row for choice in answer.choices for row in choice.rows]
    if _all_certain(before) or (request.samples > 1 and _all_certain(made)):
        refuse("every log-probability is 0")
    if not _all_certain(made):
        return answer
    choices = (replace(c, rows=tuple(replace(row, logprob=None) for row in c.rows)) for c in answer.choices)
    return replace(answer, choices=tuple(choices))


def _all_certain(rows: Sequence[ScoredToken]) -> bool:
    """Whether no row says anything but 0.0, and none has alternatives that bear it out."""
    found = [row.logprob for row in rows if row.logprob is not None]
    borne_out = any(likely.logprob < 0 for row in rows for likely in row.top)
    return len(found) >= _FEW and not borne_out and not any(found)


# What stands beside the choices.


def _usage(given: Any) -> Usage:
    if given is None:
        return Usage()
    fields = mapping(given, "usage")
    details = fields.get("prompt_tokens_details")
    cached = mapping(details, "prompt_tokens_details").get("cached_tokens") if details is not None else None
    return Usage(_count(fields.get("prompt_tokens")), _count(fields.get("completion_tokens")), _count(cached))


def _counted(request: Request, choices: Sequence[Choice]) -> Usage:
    read_ids = [len(p) for p in request.prompts if not isinstance(p, str)]
    made = [len(c.token_ids) for c in choices if c.token_ids is not None]
    return Usage(
        sum(read_ids) if len(read_ids) == len(request.prompts) else None,
        sum(made) if len(made) == len(choices) else None,
    )


def _count(given: Any) -> int | None:
    return None if given is None else whole(given, "a count of tokens")


def _times(body: Mapping[str, Any], choices: int) -> tuple[float | None, float | None]:
    """Milliseconds in the queue and computing: Cerebras says both, llama-server the second, of its first prompt."""
    if isinstance(info := body.get("time_info"), Mapping):
        queue, prompt, completion = (_seconds(info.get(f"{part}_time")) for part in ("queue", "prompt", "completion"))
        return _ms(queue), None if prompt is None or completion is None else _ms(prompt + completion)
    if choices == 1 and isinstance(timings := body.get("timings"), Mapping):
        reading, writing = _seconds(timings.get("prompt_ms")), _seconds(timings.get("predicted_ms"))
        return None, None if reading is None or writing is None else reading + writing
    return None, None


def _seconds(given: Any) -> float | None:
    """A time of the server's; None for what is none: a wrong time is no reason to drop good tokens."""
    usable = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < 1e9
    return number(given, "a time") if usable else None


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _fingerprint(body: Mapping[str, Any]) -> str:
    given = body.get("system_fingerprint")
    return given[:100] if isinstance(given, str) else ""


# SGLang's own endpoint.


@dataclass(frozen=True, slots=True)
class _Meta:
    """What SGLang says about one continuation."""

    prompt: int | None
    completion: int | None
    cached: int | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> _Meta:
        return cls(*(_count(given.get(f"{name}_tokens")) for name in ("prompt", "completion", "cached")))


def _is_native(body: Any) -> bool:
    first = body[0] if isinstance(body, list) and body else body
    return isinstance(first, Mapping) and "meta_info" in first


def _native(body: Any, asked: _Asked) -> Answer:
    request = asked.request
    listed = [mapping(one, "a choice") for one in (body if isinstance(body, list) else [body])]
    _check_count(len(listed), request)
    metas = [mapping(one.get("meta_info"), "meta_info") for one in listed]
    choices = tuple(
        _native_choice(one, meta, prompt, asked)
        for one, meta, prompt in zip(listed, metas, _prompts(request), strict=True)
    )
    counted = [_Meta.of(meta) for meta in metas]
    firsts = counted[:: request.samples]
    return Answer(
        choices,
        Usage(
            _sum([one.prompt for one in firsts]),
            _sum([one.completion for one in counted]),
            _sum([one.cached for one in firsts]),
        ),
    )


def _native_choice(given: Mapping[str, Any], meta: Mapping[str, Any], prompt: Prompt, asked: _Asked) -> Choice:
    request, vocab_size = asked.request, asked.vocab_size
    finish, words = _finish(meta.get("finish_reason")), text(given.get("text"), "the text of a choice")
    said = token_ids(given["output_ids"], "output_ids", vocab_size) if given.get("output_ids") is not None else None
    if request.top is None:
        return _finished(words, AnswerRows(), AnswerRows(), said, finish, asked)
    made = _triples(meta, "output", vocab_size)
    if not request.echo:
        return _finished(words, made, AnswerRows(), said, finish, asked)
    before = _triples(meta, "input", vocab_size)
    if not isinstance(prompt, str):
        if len(before) < len(prompt):
            before = before.part(1)  # the row before the first that was asked for, always empty
        before = _matching(before, prompt, request)
    return _finished(words, made, before, said, finish, asked)


def _triples(meta: Mapping[str, Any], side: str, vocab_size: int | None) -> AnswerRows:
    name = f"{side}_token_logprobs"
    if meta.get(name) is None:
        lacking(f"log-probabilities ({name})")
    return shapes.from_triples(listing(meta[name], name), meta.get(f"{side}_top_logprobs"), vocab_size)


# llama-server's own endpoint.

_ENDINGS = {"eos": "stop", "word": "stop", "limit": "length"}


def _is_llamacpp(body: Any) -> bool:
    first = body[0] if isinstance(body, list) and body else body
    return isinstance(first, Mapping) and "content" in first and "choices" not in first


def _llamacpp(body: Any, asked: _Asked) -> Answer:
    listed = _in_order(body if isinstance(body, list) else [body])
    _check_count(len(listed), asked.request)
    choices = tuple(_llamacpp_choice(one, asked) for one in listed)
    firsts = listed[:: asked.request.samples]
    usage = Usage(
        _sum([_count(one.get("tokens_evaluated")) for one in firsts]),
        _sum([_count(one.get("tokens_predicted")) for one in listed]),
        _sum([_reused(one) for one in firsts]),
    )
    return Answer(choices, usage, *_times(listed[0], len(listed)))


def _llamacpp_choice(given: Mapping[str, Any], asked: _Asked) -> Choice:
    """One continuation. Rows are kept only where there is one for every token: a part of a character has none."""
    words = text(given.get("content"), "the text of a choice")
    said = token_ids(given["tokens"], "tokens", asked.vocab_size) if given.get("tokens") is not None else None
    finish = given.get("stop_type")
    ending = _ENDINGS.get(finish) if isinstance(finish, str) else None
    beside = given.get("completion_probabilities")
    rows = AnswerRows() if beside is None else shapes.from_content(listing(beside, "rows"), asked.vocab_size)
    if said is None:
        lacking("the ids of what was generated")
    if rows.known_ids() != said:
        if len(rows) >= len(said):
            refuse("the generated tokens differ from those of their log-probabilities")
        asked, rows = replace(asked, request=replace(asked.request, top=None)), AnswerRows()
    return _finished(words, rows, AnswerRows(), said, ending, asked)


def _reused(given: Mapping[str, Any]) -> int | None:
    timings = given.get("timings")
    return _count(timings.get("cache_n")) if isinstance(timings, Mapping) else None


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [c for c in counts if c is not None]
    return sum(known) if known and len(known) == len(counts) else None
