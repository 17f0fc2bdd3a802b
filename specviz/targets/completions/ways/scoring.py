"""Verify a round by the log-probabilities of the draft tokens: rejection sampling with one call.

The call scores the draft and draws one token after it, which is the bonus. The replacement of a rejected token is drawn
from the most probable tokens of the row where these suffice, and otherwise from samples of the target. `knowledge`
explains how, and how exact this is. Another request is needed only where the most probable tokens do not suffice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp

import numpy as np

from specviz.core.alternatives import TOP, weighed_of
from specviz.core.errors import AnswerError, IncapableError, LackingError
from specviz.core.events import Alternative
from specviz.core.guarantee import Guarantee
from specviz.core.ports import Tokenizer
from specviz.core.rounds import Decision, Round, Verdict
from specviz.core.sampling import Row, promise
from specviz.core.settings import Rule, Sampling
from specviz.targets.completions.costs import Cost
from specviz.targets.completions.reading import answers
from specviz.targets.completions.server import Server
from specviz.targets.completions.values import Choice, Findings, Likely, Request, ScoredToken
from specviz.targets.completions.ways.draws import draws_of, ended, stop_id
from specviz.targets.completions.ways.knowledge import Known, keeps, know
from specviz.targets.completions.ways.thinning import OwnSamples, TargetSample, refill

#: N, the number of most probable tokens to request: what servers give with their default limits.
BEST = 20
# The rows of servers are padded: they have more tokens than the tokenizer.
_PADDING = 1.01


def verify(server: Server, round: Round) -> Verdict:
    """Score a block, then decide position by position until the first rejection.

    Args:
        server: takes ids.
        round: its target stream gives u, the draws from the most probable tokens, and the seed of the call.

    Raises:
        IncapableError: the rule or the settings need more than this way or this server can give.
        AnswerError: an answer contradicts itself, or lacks what was requested.
    """
    check(server.findings, round.sampling, round.rule)
    return _Scoring(server, round).verdict()


def check(findings: Findings, sampling: Sampling, rule: Rule) -> None:
    """Check that a round can be verified in this way.

    Raises:
        IncapableError: it cannot; the message says why.
    """
    if rule.name == "deterministic":
        raise IncapableError("The rule deterministic compares the target's own draws, which scoring does not make.")
    if not findings.scores:
        raise IncapableError("The server does not give log-probabilities of given tokens.")
    if _greedy(sampling, rule) and not findings.top:
        raise IncapableError("The server does not say which token is the most probable one.")
    if 0 < min(findings.top, BEST) < sampling.top_k and not _greedy(sampling, rule):
        # The target could draw at each position, but a batch of prefixes does that in one call.
        raise IncapableError(
            f"The server gives the {min(findings.top, BEST)} most probable tokens, but top-k keeps {sampling.top_k}.",
            "Lower top-k, or choose another verification, such as auto.",
        )
    unclear = findings.after_temperature is None or (findings.after_temperature and not findings.top)
    if rule.name == "probabilistic" and sampling.temperature not in (0, 1) and unclear:
        raise IncapableError(
            "It is not known whether the server's log-probabilities are before or after the temperature.",
            "Use temperature 0 or 1, where this makes no difference, or choose another verification, such as auto.",
        )


def _greedy(sampling: Sampling, rule: Rule) -> bool:
    return sampling.temperature == 0 or rule.name == "greedy"


@dataclass(frozen=True, slots=True)
class _View:
    """What the server gave for one position.

    Attributes:
        best: the N most probable tokens. known: what they tell about p; None where it is not certain which tokens top-k
            and top-p keep.
        shown: for the alternatives: `known`, or the row before top-k and top-p.
    """

    best: tuple[Likely, ...]
    known: Known | None
    shown: Known

    def logprob(self, token_id: int) -> float | None:
        return next((b.logprob for b in self.best if b.token_id == token_id), None)

    def prob(self, token_id: int) -> float | None:
        """The p of a token after the sampling settings; None where the most probable tokens do not give it."""
        if self.known is None or (self.known.tail > 0 and token_id not in self.known.ids):
            return None
        return self.known.prob(token_id, None)

    def alternatives(self, tokenizer: Tokenizer, vocab_size: int) -> tuple[Alternative, ...]:
        return tuple(
            Alternative(b.token_id, tokenizer.token_name(b.token_id), b.logprob, self.shown.prob(b.token_id, b.logprob))
            for b in self.best[:TOP]
            if b.token_id is not None and b.token_id < vocab_size
        )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of the rule at one position; p and acceptance are None where a draw of the target decided."""

    kept: bool
    final: TargetSample
    p: float | None = None
    acceptance: float | None = None
    u: float | None = None


class _Scoring:
    def __init__(self, server: Server, round: Round) -> None:
        self._api, self._findings, self._tokenizer = server.api, server.findings, server.tokenizer
        self._vocab_size, self._stop_ids = server.vocab_size, server.stop_ids
        self._context, self._block = round.context_ids, round.draft.first
        self._sampling, self._rule, self._rng = round.sampling, round.rule, round.noise.target()
        self._n = min(server.findings.top, BEST)
        # Greedy text needs a greedy bonus too.
        self._requested = Sampling() if _greedy(round.sampling, round.rule) else round.sampling
        self._cost, self._waited_s = Cost(), 0.0
        self._draws: dict[int, TargetSample] = {}

    def verdict(self) -> Verdict:
        began = time.perf_counter()
        draft = self._block.token_ids
        choice = self._score()
        rows = choice.prompt[-len(draft) :] if draft else ()
        views = [self._view(row.top) for row in rows]
        decisions: list[Decision] = []
        epsilon = 0.0
        for position, (row, view) in enumerate(zip(rows, views, strict=True)):
            outcome = self._decide(position, row, views)
            # Whether the target's own draw decides depends on the row alone, so such a position is exact.
            epsilon = max(epsilon, view.known.epsilon if view.known else 0.0)
            decisions.append(self._decision(position, row, view, outcome))
            if not outcome.kept:
                decisions += [Decision(status="ignored", draft_id=i, final_id=None) for i in draft[position + 1 :]]
                break
        else:
            decisions.append(self._bonus(choice))
        spent = time.perf_counter() - began
        verdict = Verdict(
            decisions=tuple(decisions),
            token_ids=tuple(d.final_id for d in decisions if d.final_id is not None),
            guarantee=_guarantee(self._rule, self._sampling, epsilon),
            compute_ms=None,
            rule_ms=(spent - self._waited_s) * 1000,
        )
        return replace(verdict, **self._cost.as_fields())

    # The server.

    def _call(self, request: Request) -> tuple[Choice, ...]:
        began = time.perf_counter()
        reply = self._api.complete(request, engine=self._findings.engine)
        self._waited_s += time.perf_counter() - began
        answer = answers.read(reply.body, request, self._findings.engine)
        self._cost += Cost.of(reply, answer)
        return answer.choices

    def _request(self, *prompts: tuple[int, ...], top: int = 0, samples: int = 1) -> Request:
        return Request(
            prompts=prompts,
            temperature=self._requested.temperature,
            top_k=self._requested.top_k,
            top_p=self._requested.top_p,
            samples=samples,
            # Some servers give no log-probabilities at all for 0.
            top=max(1, top),
            # Rows with the same seed may have the same noise.
            seed=int(self._rng.integers(2**31)) if samples == len(prompts) == 1 else None,
        )

    def _score(self) -> Choice:
        draft = self._block.token_ids
        request = self._request(self._context + draft, top=self._n)
        if draft:
            request = replace(request, echo=True, tail=len(draft))
        return self._call(request)[0]

    def _own(self, position: int, known: Known | None) -> OwnSamples:
        """Samples of the target after the context and the first draft tokens."""
        prompt = self._context + self._block.token_ids[:position]

        def ask(n: int) -> list[TargetSample]:
            choices = self._call(self._request(prompt, top=0 if self._is_raw() else self._n, samples=n))
            return [self._sample(c, known) for c in choices]

        return OwnSamples(ask)

    def _targets_own(self, position: int, views: Sequence[_View]) -> TargetSample:
        """The target's draw where the row does not suffice; one call draws for all later positions of that kind too."""
        if position not in self._draws:
            open_ = [i for i in range(position, len(views)) if views[i].known is None]
            open_ = open_ if self._findings.batch else [position]
            prompts = tuple(self._context + self._block.token_ids[:i] for i in open_)
            choices = self._call(self._request(*prompts))
            self._draws |= {i: self._sample(c, None) for i, c in zip(open_, choices, strict=True)}
        return self._draws[position]

    def _sample(self, choice: Choice, known: Known | None) -> TargetSample:
        logprob = self._untempered(choice.rows[0], known) if choice.rows else None
        if logprob is None and known is not None and known.tail > 0 and self._rule.name == "probabilistic":
            raise LackingError("The server gave no log-probability for a token that it generated.")
        return TargetSample(self._generated(choice), logprob)

    def _generated(self, choice: Choice) -> int:
        draws = draws_of(choice, (), self._findings, self._tokenizer, self._vocab_size)
        if draws:
            token = draws[0].token_id
        elif ended(choice) and not choice.text:
            token = stop_id(self._context, None, self._stop_ids)
        else:
            raise LackingError("The server does not say which token it generated.")
        if not 0 <= token < self._vocab_size:
            raise AnswerError(f"The server generated token {token}, outside the vocabulary of {self._vocab_size}.")
        return token

    def _untempered(self, row: ScoredToken, known: Known | None) -> float | None:
        """The log-probability at temperature 1 of a generated token; None where it cannot be known."""
        if row.logprob is None or self._is_raw():
            return row.logprob
        if known is None or not len(known.ids) or self._cut() or not self._findings.after_temperature:
            return None
        # Both rows are of the same position. The best token is in both, so it gives the difference of the normalisers.
        best = int(known.ids[0])
        here = next((b.logprob for b in row.top if b.token_id == best), None)
        if here is None:
            raise LackingError("The server gave a row without its most probable token.")
        first = (np.log(known.probs[0]) + known.log_z) / known.power
        return float(min(0.0, first + (row.logprob - here) / known.power))

    def _cut(self) -> bool:
        return self._requested.top_k > 0 or self._requested.top_p < 1

    def _is_raw(self) -> bool:
        """Whether generated rows are at temperature 1, before top-k and top-p."""
        if self._requested.temperature == 0 or self._findings.after_temperature is False:
            return True
        return self._requested.temperature == 1 and not self._cut()

    def _view(self, top: Sequence[Likely]) -> _View:
        best = tuple(top[: self._n])
        named = [b for b in best if b.token_id is not None]
        ids, logprobs = [b.token_id for b in named if b.token_id is not None], [b.logprob for b in named]
        size = int(self._vocab_size * _PADDING)
        whole = len(named) == len(best) >= min(self._n, self._vocab_size)
        if _greedy(self._sampling, self._rule) and (not best or best[0].token_id is None):
            raise LackingError("The server does not say which token is the most probable one.")
        known = know(ids, logprobs, self._sampling, size, whole=whole)
        shown = known or know(ids, logprobs, Sampling(self._sampling.temperature), size, whole=whole)
        assert shown is not None
        return _View(best, known, shown)

    # The rule.

    def _decide(self, position: int, row: ScoredToken, views: Sequence[_View]) -> _Outcome:
        x, q, view = self._block.token_ids[position], self._block.q[position], views[position]
        known = view.known
        p = known.prob(x, row.logprob) if known else None
        if _greedy(self._sampling, self._rule):
            return self._most_probable(x, q, p, int(view.shown.ids[0]))
        if known is None or p is None:
            drawn = self._targets_own(position, views)
            return _Outcome(drawn.token_id == x, drawn)
        own = self._own(position, known)
        if self._rule.name == "threshold":
            kept = p >= self._rule.tau
            return _Outcome(kept, TargetSample(x) if kept else refill(known, None, own, self._rng), p, float(kept))
        qx = _drawn_with(x, q)
        acceptance, u = keeps(p, qx), float(self._rng.random())
        if u < acceptance:
            return _Outcome(True, TargetSample(x), p, acceptance, u)
        return _Outcome(False, refill(known, q, own, self._rng, qx - p), p, acceptance, u)

    def _most_probable(self, x: int, q: Row, p: float | None, best: int) -> _Outcome:
        if self._rule.name != "probabilistic":
            return _Outcome(x == best, TargetSample(best), p, float(x == best))
        _drawn_with(x, q)
        return _Outcome(x == best, TargetSample(best), p, float(x == best), float(self._rng.random()))

    # What is recorded of a decision.

    def _decision(self, position: int, row: ScoredToken, view: _View, outcome: _Outcome) -> Decision:
        x, final = self._block.token_ids[position], outcome.final
        known_of_final = row.logprob if final.token_id == x else view.logprob(final.token_id)
        if not final.token_id < self._vocab_size:
            raise AnswerError(f"Token {final.token_id} is outside the vocabulary of {self._vocab_size}.")
        q, likely = self._block.q[position], self._block.alternatives[position]
        best = view.alternatives(self._tokenizer, self._vocab_size)

        def prob(token_id: int) -> float | None:
            return outcome.p if token_id == x else view.prob(token_id)

        return Decision(
            status="accepted" if outcome.kept else "rejected",
            draft_id=x,
            final_id=final.token_id,
            p=outcome.p,
            q=q.prob(x),
            acceptance=outcome.acceptance,
            u=outcome.u,
            draft_logprob_target=row.logprob,
            final_logprob=final.logprob if known_of_final is None else known_of_final,
            alternatives=best,
            weighed=weighed_of((x, final.token_id), best, likely, q, prob, self._tokenizer),
            overlap=_overlap(view.known, q, prob),
        )

    def _bonus(self, choice: Choice) -> Decision:
        token = self._generated(choice)
        row = choice.rows[0] if choice.rows else None
        plain = Decision(status="bonus", draft_id=None, final_id=token)
        if row is None or row.logprob is None:
            return plain
        if not self._is_raw():
            told = self._findings.after_temperature and not self._cut()
            return replace(plain, p=exp(min(0.0, row.logprob)) if told else None)
        view = self._view(row.top)
        best, p = view.alternatives(self._tokenizer, self._vocab_size), None
        if view.known:
            p = view.known.prob(token, row.logprob)

        def prob(token_id: int) -> float | None:
            return p if token_id == token else view.prob(token_id)

        return replace(
            plain,
            p=p,
            draft_logprob_target=row.logprob,
            final_logprob=row.logprob,
            alternatives=best,
            weighed=weighed_of((token,), best, (), None, prob, self._tokenizer),
        )


def _drawn_with(x: int, q: Row) -> float:
    qx = q.prob(x)
    if qx <= 0:
        raise ValueError(f"draft token {x} has q(x) = {qx}: it was not drawn from its own q")
    return qx


def _overlap(known: Known | None, q: Row, prob: Callable[[int], float | None]) -> float | None:
    """Σ min(p, q); None where p is not known exactly for every token that both sides can draw."""
    if known is None or known.error:
        return None
    ids = known.ids if known.tail == 0 else np.flatnonzero(q.probs) if q.ids is None else q.ids[q.probs > 0]
    if len(ids) > BEST:
        return None
    shares = [(prob(int(i)), q.prob(int(i))) for i in ids]
    both = [min(p, qi) for p, qi in shares if p is not None]
    return min(1.0, sum(both)) if len(both) == len(shares) else None


def _guarantee(rule: Rule, sampling: Sampling, epsilon: float) -> Guarantee:
    promised = promise(rule, sampling)
    if promised.kind == "LOSSY":
        return promised
    if sampling.temperature == 0:
        return Guarantee("EXACT", "Temperature 0: every token is the target's most probable one.")
    if epsilon == 0:
        return Guarantee(
            "EXACT", "Rejection sampling with the target's own probabilities; the target draws what they do not cover."
        )
    return Guarantee(
        "BOUNDED",
        f"At temperature {sampling.temperature:g} the most probable tokens do not give the target's exact normaliser. "
        f"The error of a token's distribution is at most {epsilon:.2g} (total variation).",
        epsilon,
    )
