"""Verify a round with a batch of prefixes: one call with [C, C+d1, …, C+d1…dK], which draws one token after each.

The target draws every token itself, at the settings of the run and given the draft tokens before it. The first token
that differs from the draft is the correction; the last one is the bonus. This is exact at any setting and needs no
log-probabilities.

A batch is sent without a seed, because a server may use the same seed for each row. Rows with the same noise depend on
each other: acceptance in one row would change the distribution of the next.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from specviz.core.errors import LackingError
from specviz.core.guarantee import Guarantee
from specviz.core.rounds import Round
from specviz.targets.completions.costs import Cost
from specviz.targets.completions.reading import answers
from specviz.targets.completions.reading.texts import REPLACEMENT, exact_text, ids_of, written
from specviz.targets.completions.server import Server
from specviz.targets.completions.values import Choice, Prompt, Request
from specviz.targets.completions.ways.draws import (
    Draw,
    DrawnBlock,
    Judged,
    check_written,
    compare,
    draws_of,
    ended,
    stop_id,
)
from specviz.targets.completions.ways.generating import NOT_FAITHFUL, in_force, takes_text, top_of
from specviz.targets.completions.ways.shown import Lens

OWN_DRAWS = Guarantee(
    "EXACT", "The server draws every token itself at these settings; a draft token is accepted if it is the same."
)


def verify(server: Server, round: Round) -> Judged:
    """One call of K+1 prompts.

    Raises:
        RemoteError: no answer, or an answer that cannot be used.
    """
    settings, findings = in_force(round.sampling, round.rule), server.findings
    prompts, doubt = _prompts(server, round)
    request = Request(
        prompts=prompts,
        temperature=settings.temperature,
        top_k=settings.top_k,
        top_p=settings.top_p,
        top=top_of(findings),
    )
    reply = server.api.complete(request, engine=findings.engine)
    answer = answers.read(reply.body, request, findings.engine, server.vocab_size)
    began = time.perf_counter()
    block = _judge(answer.choices, server, round, server.lens(settings))
    judged = block.judged(
        Guarantee("UNKNOWN", doubt) if doubt else OWN_DRAWS, rule_ms=(time.perf_counter() - began) * 1000
    )
    return replace(judged, **Cost.of(reply, answer).as_fields())


def _prompts(server: Server, round: Round) -> tuple[tuple[Prompt, ...], str]:
    """The context with each prefix of the draft after it, and why the output may not be exact (empty for no reason).

    Prompts that are sent as text stop before the first one that the server would encode as other ids. The draft tokens
    from there on are not verified.
    """
    draft = round.draft.first.token_ids
    prefixes = [(*round.context_ids, *draft[:i]) for i in range(len(draft) + 1)]
    if not takes_text(server.findings):
        return tuple(prefixes), ""
    texts = [exact_text(prefix, server.tokenizer, server.findings.bos_added) for prefix in prefixes]
    sound = next((i for i, text in enumerate(texts) if i and not text.faithful), len(texts))
    return tuple(text.text for text in texts[:sound]), "" if texts[0].faithful else NOT_FAITHFUL


def _judge(choices: Sequence[Choice], server: Server, round: Round, lens: Lens) -> DrawnBlock:
    candidate, own = round.draft.first, list[Draw]()
    for i, choice in enumerate(choices):
        likely = candidate.token_ids[i : i + 1]
        behind = (*round.context_ids, *candidate.token_ids[:i])
        token, tail = _first(choice, likely, behind, server)
        own += [token, *map(Draw, tail)]
        if tail or likely != (token.token_id,):
            break
    block = compare(own, candidate, lens)
    return replace(block, owed=tuple(draw.token_id for draw in own[len(block.token_ids) :]))


def _first(
    choice: Choice, likely: Sequence[int], behind: Sequence[int], server: Server
) -> tuple[Draw, tuple[int, ...]]:
    """The token that was drawn after one prefix, and the ids that certainly follow it."""
    tokenizer, vocab_size, stop_ids = server.tokenizer, server.vocab_size, server.stop_ids
    check_written(choice)
    draws = draws_of(choice, likely, server.findings, tokenizer, vocab_size)
    end = (stop_id(behind, likely[0] if likely else None, stop_ids),) if ended(choice) and stop_ids else ()
    if draws:
        token = draws[0]
        return token, () if token.token_id in stop_ids else end
    if draws == [] or not choice.text:
        return Draw(stop_id(behind, likely[0] if likely else None, stop_ids)), ()
    if likely and written(likely[0], tokenizer) == choice.text.encode():
        return Draw(likely[0]), end
    if REPLACEMENT in choice.text:
        raise LackingError("The text of the answer is part of a character.", "Test the target: specviz doctor.")
    first, *rest = ids_of(choice.text.encode(), tokenizer, vocab_size)
    return Draw(first), (*rest, *end)
