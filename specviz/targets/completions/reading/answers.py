"""Reads what a server answered. Pure: JSON of any shape in, an `Answer` out, or an error that says what is wrong.

Nothing is taken on trust, since every number decides about tokens: `shapes` checks the JSON, and here rows are matched
with what was sent by the tokens themselves, never by the counts in `usage`. Whoever reads an `Answer` need not check it
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from specviz.targets.completions.reading import rows as columns
from specviz.targets.completions.reading import shapes
from specviz.targets.completions.reading.rows import AnswerRows
from specviz.targets.completions.reading.shapes import lacking, leniently, refuse, shaped
from specviz.targets.completions.values import Answer, Choice, Engine, Prompt, Request, ScoredToken, Usage

Number = TypeVar("Number", int, float)
Numbered = TypeVar("Numbered", shapes.ChoiceJson, shapes.LlamaCompletionJson)

#: Fewer rows than this may all be certain by chance.
_FEW = 2
_REPLACEMENT = "\ufffd"
_NO_ROWS = AnswerRows()
#: Why llama-server's own endpoint ended, in the words of the completions API.
_ENDINGS = {"eos": "stop", "word": "stop", "limit": "length"}


@dataclass(frozen=True, slots=True)
class _Asked:
    """What an answer is read against.

    Attributes:
        counted: tokens that the server counts as generated, where it answered with one choice.
    """

    request: Request
    engine: Engine
    vocab_size: int | None
    counted: int | None = None


def read(body: Any, request: Request, engine: Engine = "", vocab_size: int | None = None) -> Answer:
    """Read a reply to a request.

    Args:
        body: parsed JSON. The shapes of SGLang's and llama-server's own endpoints are recognised.
        engine: who answered, where that changes what a figure means.
        vocab_size: ids at or beyond it are refused; None where it is not known.

    Returns:
        As many choices as prompts times samples; with `request.top`, rows for what was generated, and with
        `request.echo` rows for the prompt's last `request.tail` tokens, each with its number.

    Raises:
        LackingError: sound, but without rows, choices or tokens that were asked for.
        AnswerError: an unknown shape, or values that cannot be true.
    """
    asked = _Asked(request, engine, vocab_size)
    first = body[0] if isinstance(body, list) and body else body
    fields = first if isinstance(first, dict) else {}
    if "meta_info" in fields:
        answer = _sglang(body, asked)
    elif "content" in fields and "choices" not in fields:
        answer = _llamacpp(body, asked)
    else:
        answer = _completion(body, asked)
    return _without_certainty(answer, request)


# The completions API.


def _completion(body: Any, asked: _Asked) -> Answer:
    request = asked.request
    if isinstance(body, dict) and body.get("error") and "choices" not in body:
        refuse("it is an error, though its status means success")
    given = shaped(body, shapes.CompletionJson)
    _check_count(given.choices, request)
    listed, usage = _in_order(given.choices), _usage(given.usage)
    asked = replace(asked, counted=usage.completion if len(listed) == 1 else None)
    echoed = _echoed_beside(given.prompt, request)
    choices = tuple(
        _choice(one, asked, prompt, echoed[at // request.samples] if echoed else None)
        for at, (one, prompt) in enumerate(zip(listed, _prompts(request), strict=True))
    )
    if asked.engine == "llamacpp" and len(listed) > 1:
        usage = _counted(request, choices)  # its own figure is that of the first prompt alone
    fingerprint = given.system_fingerprint if isinstance(given.system_fingerprint, str) else ""
    return Answer(choices, usage, *_times(given.time_info, given.timings, len(listed)), fingerprint[:100])


def _check_count(listed: Sequence[object], request: Request) -> None:
    wanted = len(request.prompts) * request.samples
    if len(listed) < wanted:
        lacking(f"{len(listed)} choices, not {wanted}")
    if len(listed) > wanted:
        refuse(f"there must be {wanted} choices, not {len(listed)}")


def _prompts(request: Request) -> list[Prompt]:
    """The prompt of each choice."""
    return [prompt for prompt in request.prompts for _ in range(request.samples)]


def _in_order(choices: list[Numbered]) -> list[Numbered]:
    """Choices by their index; as they came where none has one."""
    numbered = {one.index: one for one in choices}
    if set(numbered) == {None}:
        return choices
    if set(numbered) != set(range(len(choices))):
        refuse("the choices must be numbered from 0, each once")
    return [numbered[at] for at in range(len(choices))]


def _choice(given: shapes.ChoiceJson, asked: _Asked, prompt: Prompt, echoed: AnswerRows | None) -> Choice:
    request, words, finish = asked.request, given.text, given.finish_reason
    said = given.tokens if given.token_ids is None else given.token_ids
    if request.top is None:
        return _finished(_without_echo(words, prompt, request), _NO_ROWS, _NO_ROWS, said, finish, asked)
    if given.logprobs is None and not request.echo and _REPLACEMENT in words:
        # llama-server has no row for a part of a character.
        return _finished(words, _NO_ROWS, _NO_ROWS, said, finish, asked)
    rows = _with_ids_beside(columns.from_logprobs(given.logprobs), given)
    if not request.echo:
        return _finished(words, rows, _NO_ROWS, said, finish, asked)
    if echoed is not None:
        before, made = _matching(echoed, prompt, request), rows
    else:
        before, made = _split(rows, prompt, said, request)
        before = _with_tops_beside(before, given.prompt_logprobs)
    return _finished(words.removeprefix("".join(before.texts)), made, before, said, finish, asked)


def _with_ids_beside(rows: AnswerRows, given: shapes.ChoiceJson) -> AnswerRows:
    """Rows by text with the ids that vLLM names beside them."""
    if rows.known_ids() is not None or given.token_ids is None or given.prompt_token_ids is None:
        return rows
    both = [*given.prompt_token_ids, *given.token_ids]
    if len(both) == len(rows):
        return replace(rows, ids=tuple(both))
    return replace(rows, ids=tuple(given.token_ids)) if len(given.token_ids) == len(rows) else rows


def _with_tops_beside(before: AnswerRows, beside: object) -> AnswerRows:
    """The alternatives by id that vLLM gives beside rows by text: in those by text several may fall together."""
    if not isinstance(beside, list) or len(beside) != len(before) or not any(before.texts):
        return before
    return before if before.known_ids() is None else replace(before, tops=tuple(beside))


def _echoed_beside(beside: object, request: Request) -> list[AnswerRows] | None:
    """Together's prompt rows, which stand beside the choices."""
    if not request.echo or request.top is None or not isinstance(beside, list) or not beside:
        return None
    if len(beside) != len(request.prompts):
        lacking(f"log-probabilities of {len(beside)} prompts out of {len(request.prompts)}")
    return [columns.from_logprobs(one.logprobs) for one in shaped(beside, list[shapes.EchoedJson])]


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
    words: str,
    made: AnswerRows,
    before: AnswerRows,
    said: Sequence[int] | None,
    finish: str | None,
    asked: _Asked,
) -> Choice:
    request, top = asked.request, asked.request.top or 0
    stopped = finish is not None and finish != "length"
    if request.top is not None:
        _check_made(made, said, words, stopped, request)
    ids = _ids_of(made, stopped, asked) if said is None else tuple(said)
    if ids == () and (words or not stopped):
        lacking("the ids of what was generated")
    if ids is not None and len(ids) > request.max_tokens:
        refuse(f"at most {request.max_tokens} tokens were to be generated, not {len(ids)}")
    tail = len(before) if request.tail is None else min(request.tail, len(before))
    choice = Choice(
        text=words,
        rows=made.read(top),
        prompt=before.part(len(before) - tail).read(top, first_may_be_empty=len(before) == tail),
        token_ids=ids,
        finish_reason=finish,
    )
    _check_vocabulary(choice, asked.vocab_size)
    return choice


def _check_vocabulary(choice: Choice, vocab_size: int | None) -> None:
    limit = shapes.ID_LIMIT if vocab_size is None else vocab_size
    rows = (*choice.prompt, *choice.rows)
    found = [row.token_id for row in rows] + [likely.token_id for row in rows for likely in row.top]
    worst = max((i for i in (*found, *(choice.token_ids or ())) if i is not None), default=0)
    if worst >= limit:
        refuse(f"a token id must be below {limit}, not {worst}")


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


def _usage(given: shapes.UsageJson | None) -> Usage:
    if given is None:
        return Usage()
    details = given.prompt_tokens_details
    return Usage(given.prompt_tokens, given.completion_tokens, None if details is None else details.cached_tokens)


def _counted(request: Request, choices: Sequence[Choice]) -> Usage:
    prompts = _sum(None if isinstance(p, str) else len(p) for p in request.prompts)
    return Usage(prompts, _sum(None if c.token_ids is None else len(c.token_ids) for c in choices))


def _times(seconds: object, timings: object, choices: int) -> tuple[float | None, float | None]:
    """Milliseconds in the queue and computing: Cerebras gives both, llama-server the second, of its first prompt."""
    info, own = leniently(seconds, shapes.TimeInfoJson), leniently(timings, shapes.TimingsJson)
    queue, compute = info.queue_time, _sum((info.prompt_time, info.completion_time))
    if compute is not None:
        return None if queue is None else queue * 1000, compute * 1000
    return None, _sum((own.prompt_ms, own.predicted_ms)) if choices == 1 else None


def _sum(counts: Iterable[Number | None]) -> Number | None:
    """None where one is missing."""
    known = list(counts)
    return None if None in known or not known else sum(known)  # type: ignore[arg-type]


# SGLang's own endpoint.


def _sglang(body: Any, asked: _Asked) -> Answer:
    request = asked.request
    listed = shaped(body if isinstance(body, list) else [body], list[shapes.GeneratedJson])
    _check_count(listed, request)
    choices = (_generated(one, prompt, asked) for one, prompt in zip(listed, _prompts(request), strict=True))
    metas = [one.meta_info for one in listed]
    firsts = metas[:: request.samples]
    usage = Usage(
        _sum(meta.prompt_tokens for meta in firsts),
        _sum(meta.completion_tokens for meta in metas),
        _sum(meta.cached_tokens for meta in firsts),
    )
    return Answer(tuple(choices), usage)


def _generated(given: shapes.GeneratedJson, prompt: Prompt, asked: _Asked) -> Choice:
    request, meta, words, said = asked.request, given.meta_info, given.text, given.output_ids
    finish = meta.finish_reason.type if isinstance(meta.finish_reason, shapes.FinishJson) else meta.finish_reason
    if request.top is None:
        return _finished(words, _NO_ROWS, _NO_ROWS, said, finish, asked)
    made = columns.from_triples(meta.output_token_logprobs, meta.output_top_logprobs)
    if not request.echo:
        return _finished(words, made, _NO_ROWS, said, finish, asked)
    before = columns.from_triples(meta.input_token_logprobs, meta.input_top_logprobs)
    if not isinstance(prompt, str):
        if len(before) < len(prompt):
            before = before.part(1)  # the row before the first that was asked for, always empty
        before = _matching(before, prompt, request)
    return _finished(words, made, before, said, finish, asked)


# llama-server's own endpoint.


def _llamacpp(body: Any, asked: _Asked) -> Answer:
    listed = _in_order(shaped(body if isinstance(body, list) else [body], list[shapes.LlamaCompletionJson]))
    _check_count(listed, asked.request)
    choices = tuple(_llamacpp_choice(one, asked) for one in listed)
    firsts = listed[:: asked.request.samples]
    usage = Usage(
        _sum(one.tokens_evaluated for one in firsts),
        _sum(one.tokens_predicted for one in listed),
        _sum(leniently(one.timings, shapes.TimingsJson).cache_n for one in firsts),
    )
    return Answer(choices, usage, *_times(None, listed[0].timings, len(listed)))


def _llamacpp_choice(given: shapes.LlamaCompletionJson, asked: _Asked) -> Choice:
    """One continuation. Rows are kept only where there is one for every token: a part of a character has none."""
    said, rows = given.tokens, columns.from_content(given.completion_probabilities or [])
    if said is None:
        lacking("the ids of what was generated")
    if rows.known_ids() != tuple(said):
        if len(rows) >= len(said):
            refuse("the generated tokens differ from those of their log-probabilities")
        asked, rows = replace(asked, request=replace(asked.request, top=None)), _NO_ROWS
    return _finished(given.content, rows, _NO_ROWS, said, _ENDINGS.get(given.stop_type or ""), asked)
