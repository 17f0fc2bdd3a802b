"""Reads the answers of servers. Pure: JSON of any shape in, an `Answer` out, or an error that names what is wrong.

Nothing is trusted, since every number decides about tokens: `shapes` checks the JSON; here rows are matched with the
prompt by the tokens themselves, never by the counts in `usage`. The user of an `Answer` need not check it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from specviz.core.known import sum_all
from specviz.targets.completions.reading import rows as columns
from specviz.targets.completions.reading import shapes
from specviz.targets.completions.reading.rows import AnswerRows
from specviz.targets.completions.reading.shapes import lacking, leniently, refuse, shaped
from specviz.targets.completions.values import Answer, Choice, Engine, Prompt, Request, ScoredToken, Usage

Number = TypeVar("Number", int, float)
Numbered = TypeVar("Numbered", shapes.ChoiceJson, shapes.LlamaCompletionJson)

#: Fewer rows than this may all have a log-probability of 0 by chance.
_FEW = 2
_REPLACEMENT = "\ufffd"
_NO_ROWS = AnswerRows()
#: Why llama-server's own endpoint ended, in the words of the completions API.
_ENDINGS = {"eos": "stop", "word": "stop", "limit": "length"}


@dataclass(frozen=True, slots=True)
class _Expected:
    """The request that an answer must fit, and by whom.

    Attributes:
        counted: the server's count of generated tokens, where there is one choice.
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
        LackingError: rows, choices or tokens that were requested are missing; the rest is sound.
        AnswerError: an unknown shape, or values that cannot be true.
    """
    expected = _Expected(request, engine, vocab_size)
    first = body[0] if isinstance(body, list) and body else body
    fields = first if isinstance(first, dict) else {}
    if "meta_info" in fields:
        answer = _sglang(body, expected)
    elif "content" in fields and "choices" not in fields:
        answer = _llamacpp(body, expected)
    else:
        answer = _completion(body, expected)
    return _without_certainty(answer, request)


# The completions API.


def _completion(body: Any, expected: _Expected) -> Answer:
    request = expected.request
    if isinstance(body, dict) and body.get("error") and "choices" not in body:
        refuse("it is an error, though its status means success")
    given = shaped(body, shapes.CompletionJson)
    _check_count(given.choices, request)
    listed, usage = _in_order(given.choices), _usage(given.usage)
    expected = replace(expected, counted=usage.completion if len(listed) == 1 else None)
    echoed = _echoed_beside(given.prompt, request)
    choices = tuple(
        _choice(one, expected, prompt, echoed[at // request.samples] if echoed else None)
        for at, (one, prompt) in enumerate(zip(listed, _prompts(request), strict=True))
    )
    if expected.engine == "llamacpp" and len(listed) > 1:
        usage = _counted(request, choices)  # its own count is that of the first prompt only
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
    """Choices by their index; in the order of the answer where none has an index."""
    numbered = {one.index: one for one in choices}
    if set(numbered) == {None}:
        return choices
    if set(numbered) != set(range(len(choices))):
        refuse("the choices must be numbered from 0, each once")
    return [numbered[at] for at in range(len(choices))]


def _choice(given: shapes.ChoiceJson, expected: _Expected, prompt: Prompt, echoed: AnswerRows | None) -> Choice:
    request, words, finish = expected.request, given.text, given.finish_reason
    named = given.tokens if given.token_ids is None else given.token_ids
    if request.top is None:
        return _finished(_without_echo(words, prompt, request), _NO_ROWS, _NO_ROWS, named, finish, expected)
    if given.logprobs is None and not request.echo and _REPLACEMENT in words:
        # llama-server has no row for a part of a character.
        return _finished(words, _NO_ROWS, _NO_ROWS, named, finish, expected)
    rows = _with_ids_beside(columns.from_logprobs(given.logprobs), given)
    if not request.echo:
        return _finished(words, rows, _NO_ROWS, named, finish, expected)
    if echoed is not None:
        before, made = _matching(echoed, prompt, request), rows
    else:
        before, made = _split(rows, prompt, named, request)
        before = _with_tops_beside(before, given.prompt_logprobs)
    return _finished(words.removeprefix("".join(before.texts)), made, before, named, finish, expected)


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
    rows: AnswerRows, prompt: Prompt, named: Sequence[int] | None, request: Request
) -> tuple[AnswerRows, AnswerRows]:
    """Split the rows of an echo into prompt and generated tokens, by their ids or texts."""
    most = request.max_tokens if named is None else min(len(named), request.max_tokens)
    tried = range(min(most, len(rows)), -1, -1)
    # All tokens of the prompt are more likely than a tail that happens to repeat its end.
    splits = [(rows.part(0, len(rows) - made), rows.part(len(rows) - made)) for made in tried]
    fitting = [(before, after) for before, after in splits if _fits(before, prompt, request)]
    if not fitting:
        _refuse_mismatch(rows, prompt, request)
    return max(fitting, key=lambda pair: (len(pair[0]) == len(prompt), len(pair[1])))


def _fits(before: AnswerRows, prompt: Prompt, request: Request) -> bool:
    """Whether rows are those of the prompt, or of its last tokens where only those were requested."""
    if not len(before):
        return False
    if isinstance(prompt, str):
        # The server may have added a BOS.
        return prompt in ("".join(before.texts), "".join(before.texts[1:]))
    ids = before.known_ids()
    if ids is None:
        return len(before) == len(prompt)
    enough = len(prompt) if request.tail is None else min(request.tail, len(prompt))
    return len(ids) >= enough and ids == tuple(prompt[-len(ids) :])


def _matching(before: AnswerRows, prompt: Prompt, request: Request) -> AnswerRows:
    if not _fits(before, prompt, request):
        _refuse_mismatch(before, prompt, request)
    return before


def _refuse_mismatch(rows: AnswerRows, prompt: Prompt, request: Request) -> None:
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
    named: Sequence[int] | None,
    finish: str | None,
    expected: _Expected,
) -> Choice:
    request, top = expected.request, expected.request.top or 0
    stopped = finish is not None and finish != "length"
    if request.top is not None:
        _check_made(made, named, words, stopped, request)
    ids = _ids_of(made, stopped, expected) if named is None else tuple(named)
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
    _check_vocabulary(choice, expected.vocab_size)
    return choice


def _check_vocabulary(choice: Choice, vocab_size: int | None) -> None:
    limit = shapes.ID_LIMIT if vocab_size is None else vocab_size
    rows = (*choice.prompt, *choice.rows)
    found = [row.token_id for row in rows] + [likely.token_id for row in rows for likely in row.top]
    worst = max((i for i in (*found, *(choice.token_ids or ())) if i is not None), default=0)
    if worst >= limit:
        refuse(f"a token id must be below {limit}, not {worst}")


def _ids_of(made: AnswerRows, stopped: bool, expected: _Expected) -> tuple[int, ...] | None:
    """The generated ids, taken from the rows; None where rows may be missing.

    llama-server has one row for a whole character, with the id of the last of its tokens.
    """
    if not len(made):
        return None
    if expected.counted is None:
        return made.known_ids() if stopped or len(made) == expected.request.max_tokens else None
    # Other servers may leave out the token that ends a text.
    uncounted = 1 if stopped and expected.engine != "llamacpp" else 0
    return made.known_ids() if len(made) <= expected.counted <= len(made) + uncounted else None


def _check_made(made: AnswerRows, named: Sequence[int] | None, words: str, stopped: bool, request: Request) -> None:
    """There must be a row for each generated token; the one that ends a text may have none."""
    count = len(made)
    if count > request.max_tokens:
        refuse(f"at most {request.max_tokens} tokens were to be generated, not {count}")
    if not count and not (stopped and not words) and _REPLACEMENT not in words:
        lacking("the log-probability of what was generated")
    if named is None:
        return
    if count not in ((len(named), len(named) - 1) if stopped else (len(named),)):
        lacking(f"log-probabilities of {count} generated tokens out of {len(named)}")
    known = made.known_ids()
    if known is not None and known != tuple(named[:count]):
        refuse("the generated tokens differ from those of their log-probabilities")


def _without_certainty(answer: Answer, request: Request) -> Answer:
    """Handle log-probabilities that are all 0.0, as some servers send where they have none.

    A single 0.0 may be true, and so may several of generated tokens: those are dropped where no draw is judged by them.
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
    """Whether every row has 0.0, and no row has alternatives that confirm it."""
    found = [row.logprob for row in rows if row.logprob is not None]
    confirmed = any(likely.logprob < 0 for row in rows for likely in row.top)
    return len(found) >= _FEW and not confirmed and not any(found)


# What stands beside the choices.


def _usage(given: shapes.UsageJson | None) -> Usage:
    if given is None:
        return Usage()
    details = given.prompt_tokens_details
    return Usage(given.prompt_tokens, given.completion_tokens, None if details is None else details.cached_tokens)


def _counted(request: Request, choices: Sequence[Choice]) -> Usage:
    prompts = sum_all(None if isinstance(p, str) else len(p) for p in request.prompts)
    return Usage(prompts, sum_all(None if c.token_ids is None else len(c.token_ids) for c in choices))


def _times(seconds: object, timings: object, choices: int) -> tuple[float | None, float | None]:
    """Milliseconds in the queue and computing: Cerebras gives both, llama-server the second, of its first prompt."""
    info, own = leniently(seconds, shapes.TimeInfoJson), leniently(timings, shapes.TimingsJson)
    queue, compute = info.queue_time, sum_all((info.prompt_time, info.completion_time))
    if compute is not None:
        return None if queue is None else queue * 1000, compute * 1000
    return None, sum_all((own.prompt_ms, own.predicted_ms)) if choices == 1 else None


# SGLang's own endpoint.


def _sglang(body: Any, expected: _Expected) -> Answer:
    request = expected.request
    listed = shaped(body if isinstance(body, list) else [body], list[shapes.GeneratedJson])
    _check_count(listed, request)
    choices = (_generated(one, prompt, expected) for one, prompt in zip(listed, _prompts(request), strict=True))
    metas = [one.meta_info for one in listed]
    firsts = metas[:: request.samples]
    usage = Usage(
        sum_all(meta.prompt_tokens for meta in firsts),
        sum_all(meta.completion_tokens for meta in metas),
        sum_all(meta.cached_tokens for meta in firsts),
    )
    return Answer(tuple(choices), usage)


def _generated(given: shapes.GeneratedJson, prompt: Prompt, expected: _Expected) -> Choice:
    request, meta, words, named = expected.request, given.meta_info, given.text, given.output_ids
    finish = meta.finish_reason.type if isinstance(meta.finish_reason, shapes.FinishJson) else meta.finish_reason
    if request.top is None:
        return _finished(words, _NO_ROWS, _NO_ROWS, named, finish, expected)
    made = columns.from_triples(meta.output_token_logprobs, meta.output_top_logprobs)
    if not request.echo:
        return _finished(words, made, _NO_ROWS, named, finish, expected)
    before = columns.from_triples(meta.input_token_logprobs, meta.input_top_logprobs)
    if not isinstance(prompt, str):
        if len(before) < len(prompt):
            before = before.part(1)  # the row before the first requested one, which is always empty
        before = _matching(before, prompt, request)
    return _finished(words, made, before, named, finish, expected)


# llama-server's own endpoint.


def _llamacpp(body: Any, expected: _Expected) -> Answer:
    listed = _in_order(shaped(body if isinstance(body, list) else [body], list[shapes.LlamaCompletionJson]))
    _check_count(listed, expected.request)
    choices = tuple(_llamacpp_choice(one, expected) for one in listed)
    firsts = listed[:: expected.request.samples]
    usage = Usage(
        sum_all(one.tokens_evaluated for one in firsts),
        sum_all(one.tokens_predicted for one in listed),
        sum_all(leniently(one.timings, shapes.TimingsJson).cache_n for one in firsts),
    )
    return Answer(choices, usage, *_times(None, listed[0].timings, len(listed)))


def _llamacpp_choice(given: shapes.LlamaCompletionJson, expected: _Expected) -> Choice:
    """One continuation. Rows are kept only where there is one for every token: a part of a character has none."""
    named, rows = given.tokens, columns.from_content(given.completion_probabilities or [])
    if named is None:
        lacking("the ids of what was generated")
    if rows.known_ids() != tuple(named):
        if len(rows) >= len(named):
            refuse("the generated tokens differ from those of their log-probabilities")
        expected, rows = replace(expected, request=replace(expected.request, top=None)), _NO_ROWS
    return _finished(given.content, rows, _NO_ROWS, named, _ENDINGS.get(given.stop_type or ""), expected)
