"""Finds out what a server can do, by a few cheap calls and only by the content of the answers.

Servers ignore unknown fields and answer 200, so that nothing was refused proves nothing. The first call requests
everything at once, and its answer shows what was done; a server that refuses it is tried step by step. One call at
temperature 2 shows the rest. A server that can do everything needs two calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from specviz.core.errors import AnswerError, LackingError, RefusedError, RemoteError
from specviz.core.ports import Tokenizer
from specviz.targets.completions.probe import evidence
from specviz.targets.completions.probe.evidence import readable, reason, same_token
from specviz.targets.completions.probe.identity import NAMES, Identity, identify, is_verdict
from specviz.targets.completions.reading import answers
from specviz.targets.completions.reading.model_names import model_in, other_model
from specviz.targets.completions.values import (
    Answer,
    Choice,
    Completions,
    Engine,
    Findings,
    Prompt,
    Reply,
    Request,
    ScoredToken,
)

Encode = Callable[[str], list[int]]
Decode = Callable[[Sequence[int]], str]

#: Common words in ASCII, which every tokenizer has.
TEXT = "The small model proposes a few tokens, and the large model checks all of them in one call."
#: How many of its tokens are used, and how many prefixes of it.
_LONGEST, _PREFIXES = 16, 4
#: How many top log-probabilities to request: the limits of vLLM, of OpenAI's old API, and of others.
_TOPS = (20, 5, 1)
#: High temperatures to try; some servers allow 1.5 at most.
_HOT = (2.0, 1.5)
#: Top-k 1 counts as obeyed when chance gives the most probable tokens with at most this probability; tries at most.
_CHANCE, _TRIES = 0.01, 4
_NATIVE = ("sglang", "llamacpp")
#: How many of the server's models are named where it does not list the requested one.
_NAMES = 3
#: mlx_lm.server (0.32.2) gets single texts only, and none that it may have cached: its generating thread ends at a list
#: of prompts, and at a prompt whose every token is in its cache.
_ONE_TEXT = ("mlx",)
#: Texts that begin differently.
_APART = (
    TEXT,
    "A round ends with the first token that is refused.",
    "Whatever the draft proposes, the output is the target's own.",
    "Most servers score what they are given, and some only write.",
)


class ProbeCache:
    """Findings per address, model, version and tokenizer. Whatever builds targets owns one."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Findings] = {}

    def findings(self, api: Completions, shown: str, model: str, tokenizer: Tokenizer) -> Findings:
        """What the server can do; probed once, but identified each time.

        Args:
            shown: the base URL without secrets.
            tokenizer: the target's own, or the one that is taken for it.

        Raises:
            RemoteError: see `probe`.
        """
        who = identify(api, model)
        key = (shown, model, who.engine, who.version, tuple(tokenizer.encode(TEXT)))
        if key not in self._found:
            self._found[key] = probe(api, model, tokenizer.encode, tokenizer.decode, who)
        return self._found[key]


def probe(api: Completions, model: str, encode: Encode, decode: Decode, who: Identity | None = None) -> Findings:
    """Find out what a server can do.

    Args:
        api: of the server.
        model: as the server names it.
        encode, decode: of the tokenizer that is taken for the target's own.
        who: the result of `identify`; None to call it.

    Raises:
        RefusedError: the server refuses the key, the model or the simplest request.
        UnreachableError: nothing answers, or the server stays busy.
        AnswerError: even the answer to the simplest request cannot be used.
    """
    who = identify(api, model) if who is None else who
    sample = _Sample.of(encode, decode)
    caller = _Caller(api, who)
    try:
        return _Probe(caller, sample, model, who).findings()
    except RefusedError as exc:
        # A proxy may let only the completions API through.
        if exc.status not in (404, 405) or who.engine not in _NATIVE or caller.done:
            raise
        caller.engine = ""
        return replace(_Probe(caller, sample, model, who).findings(), own_samplers=True)


@dataclass(frozen=True, slots=True)
class _Sample:
    """The tokens that are sent: the whole sample first, then one token less each time."""

    ids: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]
    encode: Encode
    decode: Decode

    @classmethod
    def of(cls, encode: Encode, decode: Decode) -> _Sample:
        whole = tuple(encode(TEXT))[:_LONGEST]
        if len(whole) <= _PREFIXES:
            raise RemoteError(
                f"The tokenizer makes {len(whole)} tokens of a plain sentence.",
                "Name the target's own tokenizer (--tokenizer).",
            )
        prefixes = tuple(whole[: len(whole) - n] for n in range(_PREFIXES))
        return cls(prefixes, tuple(decode(p) for p in prefixes), encode, decode)

    def word(self, token_id: int) -> str | None:
        """The text of one token; None where the tokenizer has no such token."""
        try:
            return self.decode([token_id])
        except (IndexError, KeyError, ValueError, OverflowError):
            return None


class _Caller:
    """Makes the calls and counts them.

    Attributes:
        done: whether any completion came back.
        latency_ms: of the fastest one.
        answers_as: the model that the last answer names.
    """

    def __init__(self, api: Completions, who: Identity) -> None:
        self._api, self.engine = api, who.engine
        self.calls, self.done = who.calls, False
        self.latency_ms: float | None = None
        self.answers_as = ""

    def call(self, request: Request) -> Reply:
        """One call."""
        self.calls += 1
        reply = self._api.complete(request, engine=self.engine)
        self.done = True
        self.answers_as = model_in(reply.body) or self.answers_as
        self.latency_ms = min(reply.call_ms, self.latency_ms or math.inf)
        return reply

    def attempt(self, request: Request) -> Reply | RemoteError:
        """The same, returning the error where the server cannot do what was requested."""
        try:
            return self.call(request)
        except RemoteError as exc:
            if not is_verdict(exc):
                raise
            if self.engine == "" and "logprobs must be of type bool" in exc.message:
                self.engine = "mlx"
            return exc


@dataclass(slots=True)
class _Found:
    """What is known so far.

    Attributes:
        ids: prompts are sent as ids.
        own: what the server generated at temperature 0 after each prefix that was sent.
        scored: the rows of the whole prompt. no_echo: why there are none.
        counts: for texts: the server's number of tokens, and ours.
    """

    ids: bool = False
    batch: bool = False
    top: int | None = None
    own: list[Choice] = field(default_factory=list)
    scored: tuple[ScoredToken, ...] = ()
    no_echo: str = ""
    counts: list[tuple[int, int]] = field(default_factory=list)
    fingerprint: str = ""


class _Probe:
    def __init__(self, caller: _Caller, sample: _Sample, model: str, who: Identity) -> None:
        self._caller, self._sample, self._model, self._who = caller, sample, model, who
        self._found = _Found()
        self._notes = [f"The server says that it is {who}."] if who.engine else ["The server does not say what it is."]
        if who.others:
            more = ", …" if len(who.others) > _NAMES else ""
            self._notes.append(f"Its list of models has no {model}: it has {', '.join(who.others[:_NAMES])}{more}.")

    def findings(self) -> Findings:
        if not self._all_at_once():
            self._step_by_step()
        found = self._found
        self._complete_own()
        ids_out = all(c.token_ids for c in found.own if c.text) and any(c.token_ids for c in found.own)
        scores = self._aligned() and self._names_what_it_draws(ids_out)
        same, bos = self._same_tokens()
        after, takes = self._hot()
        self._note_rest(ids_out)
        answers_as = self._caller.answers_as or (self._who.others[0] if len(self._who.others) == 1 else "")
        if other := other_model(self._model, answers_as):
            self._notes.append(other)
        return Findings(
            engine=self._caller.engine,
            version=self._who.version or found.fingerprint,
            model=self._model,
            max_context=self._who.max_context,
            ids_in=found.ids,
            ids_out=ids_out,
            batch=found.batch,
            scores=scores,
            top=found.top or 0,
            after_temperature=after,
            bos_added=bos,
            same_tokens=same,
            takes_top_k=takes,
            latency_ms=self._caller.latency_ms,
            calls=self._caller.calls,
            notes=tuple(self._notes),
            answers_as=answers_as,
        )

    # What it accepts and returns.

    def _all_at_once(self) -> bool:
        """Ids, a batch, echo and top log-probabilities in one call; False where its answer does not show enough."""
        request = Request(self._sample.ids, top=_TOPS[0], echo=True)
        reply = self._caller.attempt(request)
        if not isinstance(reply, Reply):
            return False
        answer = self._echoed(reply, request) or readable(reply, replace(request, echo=False), self._engine)
        if answer is None or not self._ids_were_taken(answer, request):
            return False
        found = self._found
        found.ids, found.batch, found.top = True, True, evidence.most_alternatives(answer, _TOPS[0])
        self._keep(answer)
        self._note_accepted("")
        return True

    def _step_by_step(self) -> None:
        """One feature at a time, the simplest request first; only that one must not fail."""
        found, answer = self._found, None
        refused = "a list of ids or prompts can crash this server, so it was not tried"
        if self._engine not in _ONE_TEXT:
            request = Request(self._sample.ids[:1])
            answer, refused = self._answered(request)
            found.ids = answer is not None and self._ids_were_taken(answer, request)
        if not found.ids:
            refused = refused or "token ids are not taken unchanged"
            request = Request(self._prompts[:1])
            answer = answers.read(self._caller.call(request).body, request, self._engine)
            self._count(answer, request)
        if answer is not None:
            self._keep(answer)
        found.batch = self._engine not in _ONE_TEXT and self._takes_batch()
        self._note_accepted(refused)
        self._find_top()
        self._try_echo()

    def _takes_batch(self) -> bool:
        request = Request(self._prompts)
        answer, _ = self._answered(request)
        if answer is None or (self._found.ids and not self._ids_were_taken(answer, request)):
            return False
        self._keep(answer)
        return True

    def _find_top(self) -> None:
        found = self._found
        for top in _TOPS:
            request = Request(self._prompts if found.batch else self._prompts[:1], top=top)
            reply = self._caller.attempt(request)
            if isinstance(reply, Reply):
                answer = readable(reply, request, self._engine)
                if answer is not None:
                    found.top = evidence.most_alternatives(answer, top)
                    self._keep(answer)
                return  # where it answers without them, a request for fewer would not help

    def _try_echo(self) -> None:
        if self._found.top is None:
            self._found.no_echo = "it gives no log-probabilities"
            return
        request = Request(self._prompts[:1], top=max(1, self._found.top), echo=True)
        reply = self._caller.attempt(request)
        if isinstance(reply, Reply):
            self._echoed(reply, request)
        else:
            self._found.no_echo = reason(reply)

    def _echoed(self, reply: Reply, request: Request) -> Answer | None:
        """The answer with the prompt's rows, which are kept; None where it has none."""
        found = self._found
        try:
            answer = answers.read(reply.body, request, self._engine)
        except LackingError as exc:
            found.no_echo = f"the answer to a request for them lacks {reason(exc)}"
            return None
        except AnswerError as exc:
            found.no_echo = reason(exc)
            return None
        found.scored = answer.choices[0].prompt
        found.no_echo = "" if found.scored else "only generated tokens came back"
        return answer

    def _ids_were_taken(self, answer: Answer, request: Request) -> bool:
        """Whether ids were taken as ids: by those in an echo, by the count of tokens, or by the same continuation."""
        counted = answer.usage.prompt
        sent = [len(p) for p in request.prompts]
        if self._found.scored and all(row.token_id is not None for row in self._found.scored):
            return True
        if counted is not None:
            # Some servers count only the first prompt of a batch.
            return counted in (sum(sent), sent[0])
        other = Request(self._sample.texts[:1])
        again = readable(self._caller.attempt(other), other, self._engine)
        return again is not None and same_token(again.choices[0], answer.choices[0])

    def _answered(self, request: Request) -> tuple[Answer | None, str]:
        """A usable answer, or None and the reason."""
        reply = self._caller.attempt(request)
        if not isinstance(reply, Reply):
            return None, reason(reply)
        try:
            answer = answers.read(reply.body, request, self._engine)
        except AnswerError as exc:
            return None, reason(exc)
        self._count(answer, request)
        return answer, ""

    def _count(self, answer: Answer, request: Request) -> None:
        (first, *more) = request.prompts
        if isinstance(first, str) and not more and answer.usage.prompt is not None:
            self._found.counts.append((answer.usage.prompt, len(self._sample.encode(first))))

    def _keep(self, answer: Answer) -> None:
        """Keep what it generated at temperature 0, in place of what an earlier, simpler request gave."""
        own = self._found.own
        self._found.own = [*answer.choices, *own[len(answer.choices) :]]
        self._found.fingerprint = answer.fingerprint or self._found.fingerprint

    def _complete_own(self) -> None:
        """Send the prefixes that are still missing, one by one."""
        found = self._found
        while len(found.own) < _PREFIXES:
            request = Request(self._prompts[len(found.own) : len(found.own) + 1], top=found.top)
            answer, why = self._answered(request)
            if answer is None:
                raise AnswerError(f"The server answered a request and then failed on a like one: {why}.", "Try again.")
            found.own.append(answer.choices[0])

    # What its numbers mean.

    def _aligned(self) -> bool:
        """Whether rows are those of the given tokens: the most probable token of each is the one generated there."""
        found = self._found
        if not found.scored:
            self._notes.append(f"It does not score given tokens: {found.no_echo or 'echo has no effect'}.")
            return False
        verdicts = [
            evidence.belongs(row, made.rows[0])
            for row, made in zip(reversed(found.scored), found.own[1:], strict=False)
            if made.rows and row.top
        ]
        if not verdicts:
            self._notes.append(
                "It scores given tokens, but without alternatives that would show which token a row belongs to."
            )
            return False
        if not all(verdicts):
            self._notes.append(
                "Its log-probabilities of given tokens belong to other tokens: the most probable token of a row is not "
                "the one that it generates there. They are not used."
            )
            return False
        self._notes.append("It gives the log-probabilities of given tokens (echo), at the right positions.")
        return True

    def _names_what_it_draws(self, ids_out: bool) -> bool:
        """The token that is drawn after a scored block must be known by its id."""
        if not ids_out and self._found.ids:
            self._notes.append(
                "It does not give the id of the token that it draws after them, so a round cannot be scored."
            )
            return False
        return True

    def _same_tokens(self) -> tuple[bool, bool]:
        """Whether the tokenizer is the server's, and whether the server puts a BOS before a text."""
        found = self._found
        known = evidence.pairs(found.own, found.scored)
        if len(found.scored) == len(self._sample.ids[0]):
            known += [(i, row.text) for i, row in zip(self._sample.ids[0], found.scored, strict=True) if row.text]
        if not known and not found.counts:
            for text in self._sample.texts[:2]:
                self._answered(Request((text,)))
        more = {theirs - ours for theirs, ours in found.counts}
        bos = more == {1}
        alike = [evidence.reads_alike(self._sample.word(i), theirs) for i, theirs in known]
        wrong_count = bool(more) and more not in ({0}, {1})
        same = all(alike) and not wrong_count and bool(alike or more)
        if same:
            self._notes.append("Its tokens are those of the tokenizer, for all that were tried.")
        elif alike or more:
            self._notes.append("Its tokens are not those of the tokenizer: other ids, or another number of them.")
        else:
            self._notes.append("Whether its tokens are those of the tokenizer could not be seen.")
        if bos:
            self._notes.append("It puts a BOS before a text.")
        return same, bos

    def _hot(self) -> tuple[bool | None, bool | None]:
        """At a high temperature with top-k 1: whether log-probabilities change with it, and whether top-k is obeyed."""
        for temperature in _HOT:
            rounds = self._drawn(temperature, top_k=1)
            if rounds is not None:
                break
        else:
            return self._hot_without_top_k()
        changes = [v for own, hot in rounds if (v := evidence.after_temperature(own, hot, temperature)) is not None]
        after = changes[0] if changes and len(set(changes)) == 1 else None
        takes = self._obeys_top_k(rounds, temperature)
        self._note_temperature(after, temperature)
        return after, takes

    def _hot_without_top_k(self) -> tuple[bool | None, bool | None]:
        self._notes.append("It refuses a top-k.")
        rounds = self._drawn(1.5, top_k=0) or []
        changes = [v for own, hot in rounds if (v := evidence.after_temperature(own, hot, 1.5)) is not None]
        after = changes[0] if changes and len(set(changes)) == 1 else None
        self._note_temperature(after, 1.5)
        return after, False

    def _drawn(self, temperature: float, top_k: int) -> list[tuple[Choice, Choice]] | None:
        """What was generated after each prefix at temperature 0 and at this one; None where this one is refused."""
        found, drawn = self._found, list[Choice]()
        batches = [self._prompts] if found.batch else [(p,) for p in self._prompts]
        for prompts in batches:
            answer, _ = self._answered(Request(prompts, temperature=temperature, top_k=top_k, top=found.top))
            if answer is None:
                return None
            drawn += answer.choices
        return list(zip(found.own, drawn, strict=True))

    def _obeys_top_k(self, rounds: list[tuple[Choice, Choice]], temperature: float) -> bool | None:
        chance = 1.0
        for attempt in range(_TRIES):
            if any(not same_token(own, hot) and not evidence.is_tie(own) for own, hot in rounds):
                self._notes.append("It draws other tokens than top-k 1 leaves, so it ignores top-k.")
                return False
            chance *= math.prod(evidence.likely_best(own, temperature) for own, _ in rounds)
            if chance < _CHANCE:
                self._notes.append("It obeys top-k.")
                return True
            again = self._drawn(temperature, top_k=1) if attempt + 1 < _TRIES else None
            if again is None:
                break
            rounds = again
        self._notes.append("Whether it obeys top-k could not be seen.")
        return None

    # The notes.

    def _note_accepted(self, refused: str) -> None:
        found = self._found
        why = f": {refused}" if refused else ""
        self._notes.append("It takes token ids unchanged." if found.ids else f"It takes text only{why}.")
        several = "takes several prompts" if found.batch else "does not take several prompts"
        self._notes.append(f"It {several} in one call.")

    def _note_temperature(self, after: bool | None, temperature: float) -> None:
        if not self._found.top and after is None:
            return
        words = {
            True: "are after the temperature",
            False: "are before the temperature",
            None: "may be before or after the temperature, which could not be seen",
        }
        self._notes.append(f"Its log-probabilities {words[after]} (tried at {temperature:g}).")

    def _note_rest(self, ids_out: bool) -> None:
        top = self._found.top
        given = f"the {top} most probable tokens per position" if top else "no alternatives by their ids"
        self._notes.append(f"It gives {given}, and {'' if ids_out else 'not '}the ids of what it generates.")
        if self._engine != self._who.engine:
            name = NAMES[self._engine]
            self._notes.append(
                f"It answers as {name} does." if self._engine else "Only its completions API can be used."
            )

    @property
    def _engine(self) -> Engine:
        return self._caller.engine

    @property
    def _prompts(self) -> tuple[Prompt, ...]:
        if self._engine in _ONE_TEXT:
            return _APART
        return self._sample.ids if self._found.ids else self._sample.texts
