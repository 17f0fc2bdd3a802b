"""Rank drafts from one text per prompt: every K and rule, without a run for each.

The target writes the text once. Every draft follows it in a few batched passes. Which tokens would be kept follows from
the rows of both models (`specviz.bench.forecast.follow`), and the calls are timed at a few places of the text
(`specviz.bench.forecast.times`). At temperature 0 the expected rounds are those of a run, token for token.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from specviz.bench.forecast.follow import Expected, FollowedBlock, expect, keep_probability, kept_in_text
from specviz.bench.forecast.forecast import Forecast, Prediction
from specviz.bench.forecast.times import DraftTimes, Place, TargetTimes, medians, time_draft, time_target
from specviz.bench.statistics import bootstrap_share
from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.conversation import Conversations
from specviz.bench.sweep.plan import PLAIN, Cell, SweepPlan
from specviz.core import session
from specviz.core.errors import IncapableError, PromptError, SettingsError, StoppedError
from specviz.core.names import parse_target
from specviz.core.noise import derived_seed
from specviz.core.pair import Pair
from specviz.core.ports import Drafter, Followable, Follower, HasScorer, Scorer, Step, Target, without_network
from specviz.core.prompt import prepare
from specviz.core.sampling import Floats, to_probs
from specviz.core.settings import K_MAX, Rule, RuleName, Sampling, Settings
from specviz.core.text_rows import TextRows
from specviz.core.wait import Progress, Wait

#: About so many places are timed, spread over the texts of each temperature.
PLACES = 8


@dataclass(frozen=True, slots=True)
class _Text:
    """Prompt and text. `own`: the target has written it at these settings."""

    ids: tuple[int, ...]
    start: int
    budget: int
    own: bool

    @property
    def tokens(self) -> tuple[int, ...]:
        return self.ids[self.start :]


@dataclass(slots=True)
class _Found:
    """What is known at one temperature."""

    target: TargetTimes = field(default_factory=TargetTimes)
    drafts: dict[str, DraftTimes] = field(default_factory=dict)
    texts: dict[tuple[str, int, RuleName], list[Expected]] = field(default_factory=dict)
    written_ms: list[float] = field(default_factory=list)


def predict(
    plan: SweepPlan,
    prompts: Sequence[BenchPrompt],
    open_pair: Callable[[Settings], Pair],
    *,
    given: bool = False,
    wait: Wait = Wait(),
    clock: Callable[[], float] = time.perf_counter,
) -> Prediction:
    """Expected acceptance, tokens per round and speed-up of each draft, K, temperature and rule of a plan.

    Args:
        plan: its baselines, repeats and warm-up are not used.
        open_pair: makes a drafter and a target for settings; called once per draft. All drafts stay loaded.
        given: follow the prompts' answers instead of texts that the target writes. The target might have answered
            otherwise, so the probabilities are those of any token at these places.
        wait: called often; cancelled, the prediction ends without a result.

    Raises:
        StoppedError: it was cancelled.
        IncapableError: the target does not give whole distributions.
        SettingsError: a given text is missing, or no prompt fits.
        RunError: the target failed.
    """
    refuse_remote(plan.settings)
    began = clock()
    with ExitStack() as stack:
        pairs: dict[str, Pair] = {}
        for draft in plan.drafts:
            pair = open_pair(plan.settings_of(Cell(draft, max(plan.ks), plan.temperatures[0], plan.rules[0])))
            stack.callback(pair.close)
            pairs[draft] = pair
        run = _Run(plan, pairs, given, wait, clock)
        for temperature in plan.temperatures:
            run.at_temperature(temperature, prompts)
        return run.prediction(clock() - began)


class _Run:
    """One prediction while it is made."""

    def __init__(
        self,
        plan: SweepPlan,
        pairs: dict[str, Pair],
        given: bool,
        wait: Wait,
        clock: Callable[[], float],
    ) -> None:
        self._plan, self._given = plan, given
        self._wait, self._clock = wait, clock
        self._pair = next(iter(pairs.values()))
        self._target = self._pair.target
        self._near = without_network(self._target)
        self._scorer = _scorer(self._near)
        self._drafters = {name: pair.drafter for name, pair in pairs.items() if name != PLAIN}
        self._followed = {name: _followable(drafter) for name, drafter in self._drafters.items()}
        self._found = {temperature: _Found() for temperature in plan.temperatures}
        self._left_out: dict[str, str] = {}
        self._seconds = {"writing": 0.0, "timing": 0.0}
        self._texts = self._tokens = 0
        self._conversations = Conversations(wait)

    def at_temperature(self, temperature: float, prompts: Sequence[BenchPrompt]) -> None:
        followed = False
        for number, prompt in enumerate(prompts):
            try:
                before = self._conversations.before(prompt.before, lambda: self._pair, self._plan.settings)
                _, ids = prepare(self._target, self._plan.settings, prompt.text, before)
            except PromptError as exc:
                self._left_out[prompt.id] = exc.message
                continue
            words = f"text {number + 1} of {len(prompts)}" + (f", T = {temperature:g}" if self._many else "")
            for rules in _written_alike(self._plan.rules, temperature, self._given):
                text = self._text(prompt, number, ids, temperature, rules[0], words)
                self._follow(text, temperature, rules, words)
            self._time(text, number, len(prompts), temperature, words)
            followed = True
        if not followed:
            why = next(iter(self._left_out.values()), "There is none.")
            raise SettingsError(f"No prompt can be followed: {why}")

    @property
    def _many(self) -> bool:
        return len(self._plan.temperatures) > 1

    # The text.

    def _text(
        self, prompt: BenchPrompt, number: int, ids: list[int], temperature: float, rule: RuleName, words: str
    ) -> _Text:
        settings = self._plan.settings_of(Cell(PLAIN, 1, temperature, rule))
        budget = min(settings.max_tokens, self._target.capabilities.max_context - len(ids))
        if self._given:
            if not prompt.answer:
                raise SettingsError(f"Prompt {prompt.id} has no answer.", "Let the target write: leave --given out.")
            tokens = tuple(self._target.tokenizer.encode(prompt.answer))[:budget]
            written = _Text((*ids, *tokens), len(ids), budget, own=False)
        else:
            with self._timed("writing"):
                tokens = self._write(settings, ids, number, words)
            written = _Text((*ids, *tokens), len(ids), budget, own=True)
        self._texts += 1
        self._tokens += len(tokens)
        return written

    def _write(self, settings: Settings, ids: list[int], number: int, words: str) -> tuple[int, ...]:
        """Plain decoding, with the draws of a sweep's first repeat."""
        found = self._found[settings.temperature]
        what = f"The target writes {words}"
        self._wait.on_progress(Progress(what, 0, settings.max_tokens, "tokens"))
        seed = derived_seed(settings.seed, number, 0)
        events = session.run_plain(
            self._near, session.EncodedPrompt(ids), settings, seed=seed, wait=self._wait, clock=self._clock
        )
        done, rounds = session.finished(events, what, settings.max_tokens, self._wait)
        for metrics in rounds[1:]:
            found.written_ms.append(metrics.split.wall_ms)
            found.target.other.append(max(0.0, metrics.split.other_ms))
        return done.token_ids

    # What is kept.

    def _follow(self, text: _Text, temperature: float, rules: Sequence[RuleName], words: str) -> None:
        sampling = replace(self._plan.settings.sampling, temperature=temperature)
        tau, found = self._plan.settings.tau, self._found[temperature]
        chances = _Chances(text, self._scorer, sampling, [Rule(name, tau) for name in rules])
        followers = {d: drafter.follow(text.ids, text.start, sampling) for d, drafter in self._followed.items()}
        blocks: dict[tuple[str, RuleName], list[FollowedBlock]] = {(d, rule): [] for d in followers for rule in rules}
        for at in range(len(text.tokens)):
            self._check(Progress(f"Following {words}", at, len(text.tokens), "tokens"))
            for draft, follower in followers.items():
                for rule, block in zip(rules, chances.blocks(draft, follower, at, max(self._plan.ks)), strict=True):
                    blocks[draft, rule].append(block)
        for (draft, rule), along in blocks.items():
            for k in self._plan.ks:
                found.texts.setdefault((draft, k, rule), []).append(expect(along, k, text.budget))

    # Times.

    def _time(self, text: _Text, number: int, texts: int, temperature: float, words: str) -> None:
        """At a few places of some of the texts: one each of about `PLACES`, or several of fewer."""
        if number % max(1, texts // PLACES):
            return
        found = self._found[temperature]
        here = max(1, -(-PLACES // texts)) if texts < PLACES else 1
        seed = derived_seed(self._plan.settings.seed, number)
        room = self._target.capabilities.max_context
        with self._timed("timing"):
            for i in range(min(here, len(text.tokens))):
                at = len(text.tokens) * (i + 1) // (here + 1)
                place = Place(text.ids, text.start, at, *self._rules_of(temperature))
                lengths = [k for k in self._plan.ks if len(place.context) + k < room]
                self._check(Progress(f"Following {words}", unit="tokens"))
                began = self._clock()
                time_target(found.target, self._target, place, lengths, seed, self._clock)
                limit_s = self._clock() - began
                for draft, drafter in self._drafters.items():
                    self._check(Progress(f"Following {words}", unit="tokens"))
                    times = found.drafts.setdefault(draft, DraftTimes())
                    time_draft(times, drafter, place, _few(self._plan.ks), seed, self._clock, limit_s)

    def _rules_of(self, temperature: float) -> tuple[Sampling, Rule]:
        settings = self._plan.settings_of(Cell(PLAIN, 1, temperature, self._plan.rules[0]))
        return settings.sampling, settings.acceptance_rule

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        began = self._clock()
        yield
        self._seconds[what] += self._clock() - began

    def _check(self, progress: Progress) -> None:
        if self._wait.cancelled():
            raise StoppedError("The prediction was stopped.")
        self._wait.on_progress(progress)

    # The result.

    def prediction(self, seconds: float) -> Prediction:
        return Prediction(
            plan=self._plan,
            given=self._given,
            rows=tuple(self._rows()),
            plain_ms={t: found.target.plain_ms for t, found in self._found.items()},
            written_ms={t: float(np.mean(f.written_ms)) for t, f in self._found.items() if f.written_ms},
            verify_ms={t: medians(found.target.calls) for t, found in self._found.items()},
            texts=self._texts,
            tokens=self._tokens,
            seconds=seconds,
            writing_s=self._seconds["writing"],
            timing_s=self._seconds["timing"],
            left_out=self._left_out,
        )

    def _rows(self) -> Iterator[Forecast]:
        for temperature in self._plan.temperatures:
            for rule in self._plan.rules:
                if PLAIN in self._plan.drafts:
                    yield _plain(temperature, rule, self._found[temperature])
                for draft in self._drafters:
                    for k in self._plan.ks:
                        yield _row(draft, k, temperature, rule, self._found[temperature])


class _Chances:
    """The probability that each draft token is kept, at every place of one text.

    The target's rows are computed only where the text alone is not enough.
    """

    def __init__(self, text: _Text, scorer: Scorer, sampling: Sampling, rules: Sequence[Rule]) -> None:
        self._text, self._rules = text, rules
        self._needs_rows = not text.own or (
            sampling.temperature > 0 and any(rule.name in ("probabilistic", "threshold") for rule in rules)
        )
        rows = TextRows(scorer, text.ids, text.start)

        @lru_cache(maxsize=2 * K_MAX)
        def p_behind(count: int) -> Floats:
            return to_probs(rows.behind(count), sampling)

        self._p_behind = p_behind
        self._known: dict[tuple[str, int, int | None], tuple[float, ...]] = {}

    def blocks(self, draft: str, follower: Follower, at: int, k: int) -> list[FollowedBlock]:
        """One per rule: what is drafted if a round begins here."""
        steps = follower(at, k)
        copied = tuple(step.copied for step in steps)
        chances = [self._of(draft, at + j, step) for j, step in enumerate(steps)]
        return [FollowedBlock(tuple(chance[i] for chance in chances), copied) for i in range(len(self._rules))]

    def _of(self, draft: str, index: int, step: Step) -> tuple[float, ...]:
        """By rule. A model has one row at a place; copied tokens may differ from round to round."""
        if index >= len(self._text.tokens):
            return (0.0,) * len(self._rules)  # never reached
        copy = int(step.q.ids[0]) if step.copied and step.q.ids is not None else None
        key = (draft, index, copy)
        if key not in self._known:
            self._known[key] = tuple(self._chance(index, step, rule) for rule in self._rules)
        return self._known[key]

    def _chance(self, index: int, step: Step, rule: Rule) -> float:
        token = self._text.tokens[index]
        if not self._needs_rows:
            return step.q.prob(token)
        p = self._p_behind(self._text.start + index)
        return kept_in_text(p, step.q, token, rule) if self._text.own else keep_probability(p, step.q, rule)


def _written_alike(rules: Sequence[RuleName], temperature: float, given: bool) -> list[tuple[RuleName, ...]]:
    """Rules grouped by the texts that they give: above temperature 0 `greedy` gives other texts than the rest."""
    if given or temperature == 0:
        return [tuple(rules)]
    groups = (tuple(r for r in rules if (r == "greedy") == greedy) for greedy in (True, False))
    return [group for group in groups if group]


def _few(ks: Sequence[int]) -> list[int]:
    """The largest K and one in the middle: the time of a draft is nearly linear in its length."""
    order = sorted(ks)
    return sorted({order[-1], order[(len(order) - 1) // 2]})


def _row(draft: str, k: int, temperature: float, rule: RuleName, found: _Found) -> Forecast:
    texts, expected = found.texts[draft, k, rule], Expected()
    for text in texts:
        expected.add(text)
    draft_ms = found.drafts[draft].round_ms(expected) if draft in found.drafts else None
    verify_ms, plain_ms = found.target.round_ms(expected), found.target.plain_ms
    speedup = None
    if draft_ms is not None and verify_ms and plain_ms and expected.tokens_per_round:
        speedup = plain_ms * expected.tokens_per_round / (draft_ms + verify_ms)
    return Forecast(
        draft, k, temperature, rule,
        acceptance=expected.acceptance,
        accepted_per_round=expected.accepted_per_round,
        tokens_per_round=expected.tokens_per_round,
        tokens_per_round_interval=bootstrap_share([t.tokens for t in texts], [t.rounds for t in texts]),
        drafted_per_round=expected.drafted / expected.rounds if expected.rounds else None,
        speedup=speedup,
        draft_ms=draft_ms,
        verify_ms=verify_ms,
        rounds=expected.rounds,
        reached=tuple(map(float, expected.reached[:k])),
        kept=tuple(map(float, expected.kept[:k])),
    )  # fmt: skip


def _plain(temperature: float, rule: RuleName, found: _Found) -> Forecast:
    """The row of plain decoding: one token a round."""
    return Forecast(PLAIN, 0, temperature, rule, None, 0.0, 1.0, 0.0, 1.0, 0.0, found.target.plain_ms)


def _followable(drafter: Drafter) -> Followable:
    if not isinstance(drafter, Followable):
        raise IncapableError(f"{drafter.name} cannot be followed along a text.", "Run the sweep instead.")
    return drafter


def refuse_remote(settings: Settings) -> None:
    """Refuse a target behind a server before it is called.

    Raises:
        IncapableError: the target is behind a server.
    """
    if parse_target(settings.target).place != "here":
        raise _incapable(settings.target)


def _scorer(target: Target) -> Scorer:
    if not isinstance(target, HasScorer):
        raise _incapable(target.name)
    return target.scorer


def _incapable(target: str) -> IncapableError:
    return IncapableError(
        f"Whole distributions are needed to predict, and {target} does not give them.",
        "Run the sweep instead: python -m specviz bench.",
    )
