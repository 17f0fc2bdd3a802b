"""Verify a round by letting the target continue the text: one call that generates K+1 tokens.

A draft token is accepted while it equals the generated one; the first difference is the correction. This is exact at
any setting and works with every server that completes text. It saves nothing against streaming, because the target
generates its tokens one after the other.

Where the ids of the generated tokens are known, the tokens after the correction are dropped and drawn again in the next
round. Where only text is known, nothing is dropped: the borders between the target's tokens are unknown, and to drop or
keep a text depending on its content would change its probability. All tokens after the correction are then owed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from specviz.core.guarantee import Guarantee
from specviz.core.rounds import Candidate, Round
from specviz.core.settings import Rule, Sampling
from specviz.targets.completions.costs import Cost
from specviz.targets.completions.reading import answers
from specviz.targets.completions.reading.texts import (
    REPLACEMENT,
    exact_text,
    ids_of,
    whole_characters,
    written,
    written_all,
)
from specviz.targets.completions.server import Server
from specviz.targets.completions.values import Answer, Choice, Findings, Prompt, Request, Usage
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
from specviz.targets.completions.ways.shown import Lens

#: A character has at most four tokens. So one of four consecutive tokens ends a character, and three more are enough.
_EXTRA = 3
#: Number of alternatives that are shown at a position.
SHOWN = 10

OWN_TEXT = Guarantee("EXACT", "The server generates every token itself; this saves nothing against streaming.")


def verify(server: Server, round: Round) -> Judged:
    """One call; up to three more where prompts are sent as text and the next prompt must not end where this one would.

    A prompt must not end inside a character, nor where the server would encode it as other ids than those drawn.

    Raises:
        RemoteError: no answer, or an answer that cannot be used.
    """
    settings = in_force(round.sampling, round.rule)
    calls = _Calls(server, round, settings)
    reading = _Reading(server, round, server.lens(settings), calls.as_text, calls.as_text and not calls.doubt)
    length = len(round.draft.first) + 1
    answer = first = calls.generate(length)
    began = time.perf_counter()
    read = reading.read(answer, length)
    for more in range(length + 1, length + 1 + _EXTRA):
        if read.whole or ended(answer.choices[0]) or not calls.room(more):
            break
        answer = calls.generate(more)
        began = time.perf_counter()
        read = reading.read(answer, more)
    rule_ms = (time.perf_counter() - began) * 1000
    judged = replace(
        read.block.judged(OWN_TEXT, rule_ms),
        **calls.cost.as_fields(),
        prompt_tokens=answer.usage.prompt if calls.as_text else None,
        drawn=read.drawn if calls.as_text else None,
    )
    doubt = calls.doubt or _redrawn(first.choices[0], answer.choices[0], settings) or read.doubt
    return replace(judged, guarantee=Guarantee("UNKNOWN", doubt)) if doubt else judged


def in_force(sampling: Sampling, rule: Rule) -> Sampling:
    """The sampling settings of the target's own draws. The rule `greedy` always takes the most probable token."""
    return Sampling(0.0) if rule.name == "greedy" or sampling.temperature == 0 else sampling


def spare_of(findings: Findings) -> int:
    """How many extra tokens to request, which are always dropped.

    mlx_lm.server keeps its last prompt and answer in a cache. When the next prompt is exactly that, its only worker
    thread dies, and the server answers no more until it is restarted. Without an extra token, every plain step would
    send such a prompt.
    """
    return 1 if findings.engine == "mlx" and findings.ids_out and findings.same_tokens else 0


def top_of(findings: Findings) -> int | None:
    """How many alternatives to request. Several servers give ids only together with log-probabilities."""
    if not findings.same_tokens:
        return None
    return min(findings.top, SHOWN) or (0 if findings.ids_out else None)


def takes_text(findings: Findings) -> bool:
    """Whether prompts are sent as text: the server takes no ids, or ours are of another tokenizer."""
    return not findings.ids_in or not findings.same_tokens


def _seed(sampling: Sampling, round: Round) -> int | None:
    """Makes the run repeatable. A longer request with the same seed repeats the draw and continues it."""
    return None if sampling.temperature == 0 else int(round.noise.target().integers(2**31))


def _redrawn(first: Choice, last: Choice, sampling: Sampling) -> str:
    if sampling.temperature == 0:
        return ""
    text = first.text.rstrip(REPLACEMENT)
    same = last.text.startswith(text)
    if first.token_ids is not None and last.token_ids is not None:
        same = last.token_ids[: len(first.token_ids)] == first.token_ids
    return "" if same else "The server draws other tokens for an equal seed, and a draw had to be repeated."


class _Calls:
    """Calls with one context, and their cost."""

    def __init__(self, server: Server, round: Round, sampling: Sampling) -> None:
        findings = server.findings
        self._server, self._sampling, self._seed = server, sampling, _seed(sampling, round)
        self._vocab_size = server.vocab_size if findings.same_tokens else None
        self._length = len(round.context_ids)
        self.as_text = takes_text(findings)
        self.cost, self.doubt = Cost(), ""
        self._prompt: Prompt = round.context_ids
        if self.as_text:
            exact = exact_text(round.context_ids, server.tokenizer, findings.bos_added)
            self._prompt = exact.text
            if findings.same_tokens and not exact.faithful:
                self.doubt = NOT_FAITHFUL

    def room(self, tokens: int) -> bool:
        """Whether so many more tokens fit the target's context."""
        limit = self._server.findings.max_context
        return limit is None or self._length + tokens <= limit

    def generate(self, max_tokens: int) -> Answer:
        """One continuation of the context."""
        findings = self._server.findings
        request = Request(
            prompts=(self._prompt,),
            max_tokens=max_tokens + spare_of(findings),
            temperature=self._sampling.temperature,
            top_k=self._sampling.top_k,
            top_p=self._sampling.top_p,
            top=top_of(findings),
            seed=self._seed,
        )
        reply = self._server.api.complete(request, engine=findings.engine)
        answer = answers.read(reply.body, request, findings.engine, self._vocab_size)
        self.cost += Cost.of(reply, answer)
        return answer


NOT_FAITHFUL = (
    "The server takes text, and the text so far is encoded as other ids than those of the run, for instance where a "
    "user typed the name of a special token."
)


@dataclass(frozen=True, slots=True)
class _Read:
    """An answer, compared with the draft.

    Attributes:
        whole: the next prompt, as text, ends at the end of a character and is encoded as the same ids.
        drawn: see `Judged`.
        doubt: why the output may not be exact; empty for no reason.
    """

    block: DrawnBlock
    whole: bool
    drawn: int | None = None
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Compares an answer with the draft.

    Attributes:
        as_text: prompts are sent as text. faithful: the text of this prompt is encoded as the ids of the context.
    """

    server: Server
    round: Round
    lens: Lens
    as_text: bool
    faithful: bool

    @property
    def block(self) -> Candidate:
        """The candidate."""
        return self.round.draft.first

    def read(self, answer: Answer, requested: int) -> _Read:
        """Compare by ids where they are known, otherwise by text."""
        choice, draft = answer.choices[0], self.block.token_ids
        check_written(choice)
        if not self.server.findings.same_tokens:
            return self._by_text(choice, answer.usage)
        draws = draws_of(choice, draft, self.server.findings, self.server.tokenizer, self.server.vocab_size)
        if draws is None:
            return self._by_text(choice, answer.usage)
        if choice.token_ids is not None:
            return self._by_ids(draws, choice, requested)
        return self._all_owed(self._with_stop(draws, choice), len(draws), choice)

    def _with_stop(self, draws: list[Draw], choice: Choice) -> list[Draw]:
        if not ended(choice) or (draws and draws[-1].token_id in self.server.stop_ids):
            return draws
        at, draft = len(draws), self.block.token_ids
        likely = draft[at] if at < len(draft) else None
        return [*draws, Draw(stop_id(self.round.context_ids, likely, self.server.stop_ids))]

    def _by_ids(self, draws: list[Draw], choice: Choice, requested: int) -> _Read:
        own = self._with_stop(draws, choice)
        block = compare(own[: len(self.block.token_ids) + 1], self.block, self.lens)
        kept = len(block.token_ids)
        if len(own) > len(draws) == kept == requested + spare_of(self.server.findings):
            # The last requested token ended the text, but this tokenizer does not have it as a stop token.
            return _Read(replace(block, owed=(own[-1].token_id,)), True)
        if not self.as_text:
            return _Read(block, True)
        ids, tokenizer = [draw.token_id for draw in own], self.server.tokenizer
        before = written_all(self.round.context_ids[-8:], tokenizer)
        ends = range(kept, len(ids) + 1 - spare_of(self.server.findings))
        whole = [end for end in ends if _completes(before, written_all(ids[:end], tokenizer))]
        sound = next((end for end in whole if self._is_read_back(ids[:end])), None)
        last = next(iter(whole), kept) if sound is None else sound
        return _Read(replace(block, owed=tuple(ids[kept:last])), sound is not None)

    def _is_read_back(self, ids: Sequence[int]) -> bool:
        """Whether the text of context and ids is encoded as the same ids; true if the context already fails at that.

        Two line breaks at the end of a text can be one token, and two tokens when a word follows.
        """
        if not self.faithful:
            return True
        return exact_text(
            (*self.round.context_ids, *ids), self.server.tokenizer, self.server.findings.bos_added
        ).faithful

    def _all_owed(self, own: list[Draw], drawn: int | None, choice: Choice, doubt: str = "") -> _Read:
        block = compare(own, self.block, self.lens)
        owed = tuple(draw.token_id for draw in own[len(block.token_ids) :])
        return _Read(replace(block, owed=owed), True, None if ended(choice) else drawn, doubt)

    def _by_text(self, choice: Choice, usage: Usage) -> _Read:
        text = choice.text.rstrip(REPLACEMENT)
        whole = text == choice.text
        own = self._with_stop([Draw(i) for i in self._ids_of(text.encode())], choice)
        doubt = "" if whole else "The server's text ends inside a character."
        if None in (usage.prompt, usage.completion) and not ended(choice):
            doubt = doubt or "The server does not count its tokens, so how it encodes its own text is not known."
        return replace(self._all_owed(own, usage.completion, choice, doubt), whole=whole)

    def _ids_of(self, data: bytes) -> list[int]:
        """Ids of a text: those of the draft as long as their text matches, then those of the tokenizer."""
        ids, at, tokenizer = [], 0, self.server.tokenizer
        for x in self.block.token_ids:
            if not data.startswith(written(x, tokenizer), at):
                break
            ids.append(x)
            at += len(written(x, tokenizer))
        return [*ids, *ids_of(data[at:], tokenizer, self.server.vocab_size)] if at < len(data) else ids


def _completes(before: bytes, text: bytes) -> bool:
    """Whether the text ends at the end of a character; `before` may begin inside one."""
    start = next((i for i, byte in enumerate(before[:4]) if byte & 0xC0 != 0x80), 0)
    return whole_characters(before[start:] + text)
