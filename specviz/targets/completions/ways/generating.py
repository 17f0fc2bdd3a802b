"""Verify a round by letting the target write on by itself: one call, K+1 tokens of its own.

The draft is kept while it equals what the target wrote; the first difference is the correction. Exact at any setting,
with any server that completes a text, and it saves nothing against streaming: the target makes every token one by one.

Where the ids of what was written are known, what stands behind the correction is dropped, and drawn again behind the
next draft. Where only text is known it is not: where one token of the target's ends and the next begins cannot be told,
and to drop some texts and keep others, by what they hold, would make these more likely than the target does. All that
was written is then owed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from specviz.core.events import Guarantee
from specviz.core.ports import Candidate, Round
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

#: A character is four tokens at most, so among as many ends of tokens in a row one is the end of a character.
_EXTRA = 3
#: Alternatives that are shown of a position.
SHOWN = 10

OWN_TEXT = Guarantee("EXACT", "The server writes every token itself; it saves nothing against streaming.")


def verify(server: Server, round: Round) -> Judged:
    """One call, or up to three more where prompts go out as text, and the next one would end where no text may end.

    That is inside a character, and where the text so far would be read as other ids than those that were drawn.

    Raises:
        RemoteError: no answer, or one that cannot be used.
    """
    settings = in_force(round.sampling, round.rule)
    asking = _Asking(server, round, settings)
    reading = _Reading(server, round, server.lens(settings), asking.as_text, asking.as_text and not asking.doubt)
    asked = len(round.draft.first) + 1
    answer = first = asking.ask(asked)
    began = time.perf_counter()
    read = reading.read(answer, asked)
    for more in range(asked + 1, asked + 1 + _EXTRA):
        if read.whole or ended(answer.choices[0]) or not asking.room(more):
            break
        answer = asking.ask(more)
        began = time.perf_counter()
        read = reading.read(answer, more)
    rule_ms = (time.perf_counter() - began) * 1000
    judged = replace(
        read.block.judged(OWN_TEXT, rule_ms),
        **asking.cost.as_fields(),
        prompt_tokens=answer.usage.prompt if asking.as_text else None,
        drawn=read.drawn if asking.as_text else None,
    )
    doubt = asking.doubt or _redrawn(first.choices[0], answer.choices[0], settings) or read.doubt
    return replace(judged, guarantee=Guarantee("UNKNOWN", doubt)) if doubt else judged


def in_force(sampling: Sampling, rule: Rule) -> Sampling:
    """What the target's own tokens are drawn at: under the rule `greedy` it is always the most probable one."""
    return Sampling(0.0) if rule.name == "greedy" or sampling.temperature == 0 else sampling


def spare_of(findings: Findings) -> int:
    """How many tokens more than wanted to ask for, and to drop whatever they are.

    mlx_lm.server keeps what it has read and written, and when a prompt is just that, to the last token, its only
    worker dies of it, and the server is deaf until somebody starts it again. A plain step would do so every time.
    """
    return 1 if findings.engine == "mlx" and findings.ids_out and findings.same_tokens else 0


def top_of(findings: Findings) -> int | None:
    """How many alternatives to ask for. Several servers say ids only beside log-probabilities."""
    if not findings.same_tokens:
        return None
    return min(findings.top, SHOWN) or (0 if findings.ids_out else None)


def takes_text(findings: Findings) -> bool:
    """Whether prompts go out as text: ids are not taken, or would be another tokenizer's."""
    return not findings.ids_in or not findings.same_tokens


def _seed(sampling: Sampling, round: Round) -> int | None:
    """Makes the run repeatable, and lets the same draw be asked for again, only longer."""
    return None if sampling.temperature == 0 else int(round.noise.target().integers(2**31))


def _redrawn(first: Choice, last: Choice, sampling: Sampling) -> str:
    if sampling.temperature == 0:
        return ""
    text = first.text.rstrip(REPLACEMENT)
    same = last.text.startswith(text)
    if first.token_ids is not None and last.token_ids is not None:
        same = last.token_ids[: len(first.token_ids)] == first.token_ids
    return "" if same else "The server draws differently for an equal seed, and a draw had to be repeated."


class _Asking:
    """Calls about one context, and what they cost."""

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
        """Whether the target's context has room for as many more."""
        limit = self._server.findings.max_context
        return limit is None or self._length + tokens <= limit

    def ask(self, max_tokens: int) -> Answer:
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


NOT_FAITHFUL = "The server takes text, and encoding the text so far gives other ids than those that were drawn."


@dataclass(frozen=True, slots=True)
class _Read:
    """An answer, judged. `whole`: the text that goes out next ends with a character, and is read as the same ids."""

    block: DrawnBlock
    whole: bool
    drawn: int | None = None
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Judges an answer against the draft.

    Attributes:
        as_text: prompts go out as text. faithful: this one is read as the ids that it was made of.
    """

    server: Server
    round: Round
    lens: Lens
    as_text: bool
    faithful: bool

    @property
    def block(self) -> Candidate:
        """What was drafted."""
        return self.round.draft.first

    def read(self, answer: Answer, asked: int) -> _Read:
        """By ids where they are known, else by text."""
        choice, draft = answer.choices[0], self.block.token_ids
        check_written(choice)
        if not self.server.findings.same_tokens:
            return self._by_text(choice, answer.usage)
        draws = draws_of(choice, draft, self.server.findings, self.server.tokenizer, self.server.vocab_size)
        if draws is None:
            return self._by_text(choice, answer.usage)
        if choice.token_ids is not None:
            return self._by_ids(draws, choice, asked)
        return self._all_owed(self._with_stop(draws, choice), len(draws), choice)

    def _with_stop(self, draws: list[Draw], choice: Choice) -> list[Draw]:
        if not ended(choice) or (draws and draws[-1].token_id in self.server.stop_ids):
            return draws
        at, draft = len(draws), self.block.token_ids
        likely = draft[at] if at < len(draft) else None
        return [*draws, Draw(stop_id(self.round.context_ids, likely, self.server.stop_ids))]

    def _by_ids(self, draws: list[Draw], choice: Choice, asked: int) -> _Read:
        own = self._with_stop(draws, choice)
        block = compare(own[: len(self.block.token_ids) + 1], self.block, self.lens)
        kept = len(block.token_ids)
        if len(own) > len(draws) == kept == asked + spare_of(self.server.findings):
            # The last token that was asked for ended the text, and this tokenizer does not know it for a stop.
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
        """Whether the next prompt, as text, is these ids again behind the context; no matter where it is lost already.

        Two line breaks at the end of a text may be one token, and two once a word follows.
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
            doubt = doubt or "The server does not count its tokens, so whether it reads its own text back is not known."
        return replace(self._all_owed(own, usage.completion, choice, doubt), whole=whole)

    def _ids_of(self, data: bytes) -> list[int]:
        """The draft's own ids for as long as the text is theirs, then the tokenizer's."""
        ids, at, tokenizer = [], 0, self.server.tokenizer
        for x in self.block.token_ids:
            if not data.startswith(written(x, tokenizer), at):
                break
            ids.append(x)
            at += len(written(x, tokenizer))
        return [*ids, *ids_of(data[at:], tokenizer, self.server.vocab_size)] if at < len(data) else ids


def _completes(before: bytes, text: bytes) -> bool:
    """Whether text ends where a character does; `before` may itself have begun inside one."""
    start = next((i for i, byte in enumerate(before[:4]) if byte & 0xC0 != 0x80), 0)
    return whole_characters(before[start:] + text)
