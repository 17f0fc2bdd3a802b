"""The completions target: chooses a way to verify, keeps the owed tokens, and states the guarantee of its output."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from specviz.core.errors import LackingError, PairingError, RefusedError
from specviz.core.events import Way
from specviz.core.guarantee import Guarantee, worst
from specviz.core.ports import Arrival, Capabilities, Tokenizer
from specviz.core.rounds import Round, Verdict
from specviz.core.settings import Rule, Sampling, Verification
from specviz.targets.completions.choice import choose
from specviz.targets.completions.costs import Cost, Metered
from specviz.targets.completions.owed import Owed, settle
from specviz.targets.completions.reading.model_names import other_model
from specviz.targets.completions.reading.texts import exact_text
from specviz.targets.completions.server import Server
from specviz.targets.completions.values import Completions, Findings, Prompt, Request
from specviz.targets.completions.ways import generating, prefixes, scoring
from specviz.targets.completions.ways.draws import Judged

#: HTTP statuses of servers that do not support what was requested.
_CANNOT = (400, 413, 422, 501)
_LONGEST = 200
#: The cost of a round without a call.
_FREE = Cost(0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Count:
    """The number of tokens that the server must count in a prompt, if it encodes its own text as it generated it."""

    context_ids: tuple[int, ...] = ()
    tokens: int = 0


class RemoteTarget:
    """Verifies rounds by calls to a server.

    Args:
        name: as in the settings.
        api: the server. findings: what the probe found that it can do.
        tokenizer: the target's own, or another one where `Findings.same_tokens` is false.
        capabilities: its limits; `way` is set here.
        verification: the way to verify, or `auto`.
        sampling, rule: of the run, for `capabilities.way`.
        forget: called when the findings turn out to be wrong; it drops them from the cache of findings.

    Raises:
        IncapableError: the server cannot verify in that way.
    """

    def __init__(
        self,
        name: str,
        api: Completions,
        findings: Findings,
        tokenizer: Tokenizer,
        capabilities: Capabilities,
        verification: Verification,
        sampling: Sampling,
        rule: Rule,
        *,
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        self.name, self.tokenizer = name, tokenizer
        self._api, self._verification, self._forget = Metered(api), verification, forget
        self._findings = findings
        other = other_model(findings.model, findings.answers_as)
        self._notes: tuple[str, ...] = (other,) if other else ()
        way, _ = choose(findings, verification, sampling, rule, capabilities.vocab_size)
        self.capabilities = replace(capabilities, way=way, server=findings.identity)
        self._owed, self._count = Owed(), _Count()
        self._worst: Guarantee | None = None

    @property
    def findings(self) -> Findings:
        """What the server can do, as far as is known now."""
        return self._findings

    def guarantee(self, sampling: Sampling, rule: Rule) -> Guarantee:
        """What may be promised; not more than the worst guarantee of this run so far."""
        return self._noted(worst(self._chosen(sampling, rule)[1], self._worst))

    def verify(self, round: Round) -> Verdict:
        """Compare the draft with the owed tokens, then let the server verify the rest. No call where nothing is left.

        Raises:
            ValueError: more than one candidate.
            PairingError: an id is outside the target's vocabulary.
            RemoteError: the server failed, or lacks an ability that it was found to have and that has no substitute.
        """
        if len(round.draft.candidates) > 1:
            raise ValueError(f"a completions target verifies one candidate a round, not {len(round.draft.candidates)}")
        context, draft = round.context_ids, round.draft.first
        self._check_ids(context, draft.token_ids)
        lens = self._server.lens(generating.in_force(round.sampling, round.rule))
        settled, rest = settle(self._owed.behind(context), draft, lens)
        if rest is None:
            judged = settled.judged(self.guarantee(round.sampling, round.rule), rule_ms=0.0)
            judged = replace(judged, **_FREE.as_fields())
        else:
            judged = self._ask(round.behind(settled.token_ids, rest))
            judged = replace(
                judged,
                decisions=(*settled.decisions, *judged.decisions),
                token_ids=(*settled.token_ids, *judged.token_ids),
            )
        self._owed = Owed((*context, *judged.token_ids), judged.owed)
        self._worst = self._noted(worst(self._chosen(round.sampling, round.rule)[1], self._worst, judged.guarantee))
        return replace(judged, guarantee=self._worst)

    def stream_plain(self, context_ids: Sequence[int], sampling: Sampling, max_tokens: int) -> Generator[Arrival]:
        """One streamed answer, for the baseline: see `ports.Streaming`.

        Raises:
            RemoteError: the server failed.
            StoppedError: the run was stopped while it waited.
        """
        prompt: Prompt = tuple(context_ids)
        if generating.takes_text(self._findings):
            prompt = exact_text(context_ids, self.tokenizer, self._findings.bos_added).text
        request = Request((prompt,), max_tokens, sampling.temperature, sampling.top_k, sampling.top_p, past_stop=True)
        for piece in self._api.stream(request, engine=self._findings.engine):
            yield Arrival(piece.at, piece.tokens, piece.text)

    def reset(self) -> None:
        """Forget the owed tokens and the guarantee of the last run. What the server turned out to lack stays known."""
        self._owed, self._count, self._worst = Owed(), _Count(), None

    @property
    def _vocab_size(self) -> int:
        return self.capabilities.vocab_size

    def _check_ids(self, context: Sequence[int], draft: Sequence[int]) -> None:
        for what, ids in (("context", context), ("draft", draft)):
            for i in ids:
                if not 0 <= i < self._vocab_size:
                    raise PairingError(
                        f"The {what} has token id {i}, but the target's vocabulary has only {self._vocab_size} tokens. "
                        "Nothing was sent.",
                        "Choose a draft that shares the target's vocabulary.",
                    )

    def _chosen(self, sampling: Sampling, rule: Rule) -> tuple[Way, Guarantee]:
        return choose(self._findings, self._verification, sampling, rule, self._vocab_size)

    # One round.

    def _ask(self, round: Round) -> Judged:
        lost = Cost()
        self._api.lost()
        while True:
            way, _ = self._chosen(round.sampling, round.rule)
            used: Way = way if round.draft.candidates else "generating"
            try:
                judged = _WAYS[used](self._server, round)
                break
            except (LackingError, RefusedError) as exc:
                self._demote(used, exc, round.sampling, round.rule)
                lost += self._api.lost()
        judged = replace(judged, **_with(judged, lost))
        doubts = (self._read_back(round.context_ids, judged), self._changed())
        return replace(judged, guarantee=worst(judged.guarantee, *doubts))

    @property
    def _server(self) -> Server:
        """With its abilities as far as they are known now."""
        return Server(self._api, self._findings, self.tokenizer, self._vocab_size, self.capabilities.stop_ids)

    def _changed(self) -> Guarantee | None:
        """Check that one model answers all the time: what was found out about another one does not hold for it."""
        tested, answered = self._findings.answers_as, self._api.models
        first, *others = dict.fromkeys([*([tested] if tested else []), *answered]) or ("",)
        if not others:
            return None
        self._forget()
        return Guarantee(
            "UNKNOWN",
            f"The server has answered as {first} and as {others[0]}: the text may be of both, and what was tested of "
            "one does not hold for the other.",
        )

    def _read_back(self, context: tuple[int, ...], judged: Judged) -> Guarantee | None:
        """Check that the server counts as many tokens in its own text as it generated; None where nothing is wrong.

        Where a server does not give ids, this is the only possible check of how it encodes its own text.
        """
        before = self._count
        self._count = _Count()
        if judged.prompt_tokens is None or judged.drawn is None:
            return None
        written = (*context, *judged.token_ids, *judged.owed)
        self._count = _Count(written, judged.prompt_tokens + judged.drawn)
        if before.context_ids != context or before.tokens == judged.prompt_tokens:
            return None
        return Guarantee(
            "UNKNOWN",
            f"The server encodes its own text as other tokens than it generated: {judged.prompt_tokens} instead of "
            f"{before.tokens}.",
        )

    # When the server lacks an ability that the probe found.

    def _demote(self, way: Way, exc: LackingError | RefusedError, sampling: Sampling, rule: Rule) -> None:
        """Continue without the ability that turned out to be missing. This happens at most once per ability.

        Raises:
            SpecvizError: `exc`, where it does not show a missing ability, or no other way is left. IncapableError,
                where the settings demand this way.
        """
        without = _without(way, self._findings)
        refused = isinstance(exc, RefusedError)
        if without is None or (refused and (way == "generating" or exc.status not in _CANNOT)):
            raise exc
        draws = way == "scoring" or (way == "prefixes" and not self._findings.ids_out)
        if draws and not refused and sampling.temperature > 0:
            # The answer may be unusable because of the drawn token itself: the bonus, or the replacement of a rejected
            # token. To draw again then favours other tokens.
            self._worst = worst(
                Guarantee("UNKNOWN", "A draw could not be used, so the server had to repeat it."), self._worst
            )
        shown = exc.message if len(exc.message) <= _LONGEST else exc.message[: _LONGEST - 1] + "…"
        note = f"{_LOST[way]} failed during the run: {shown}"
        self._findings = replace(without, notes=(note, *without.notes))
        self._notes = (*self._notes, note)
        self._forget()
        now, _ = self._chosen(sampling, rule)
        self.capabilities = replace(self.capabilities, way=now)

    def _noted(self, guarantee: Guarantee) -> Guarantee:
        """With the notes about the model that answers, and about what failed during the run."""
        missing = [note for note in self._notes if note not in guarantee.reason]
        return replace(guarantee, reason=" ".join([guarantee.reason, *missing]))


def _without(way: Way, findings: Findings) -> Findings | None:
    """Findings without the ability that only this way needs; None where no way is left."""
    if way == "scoring":
        return replace(findings, scores=False)
    if way == "prefixes":
        return replace(findings, batch=False)
    if findings.top:
        return replace(findings, top=0)
    return replace(findings, ids_out=False) if findings.ids_out else None


_LOST: dict[Way, str] = {
    "scoring": "Scoring",
    "prefixes": "A batch of prefixes",
    "generating": "An answer with more than text",
}


def _scored(server: Server, round: Round) -> Judged:
    verdict = scoring.verify(server, round)
    return Judged(*(getattr(verdict, f.name) for f in fields(verdict)))


_WAYS: dict[Way, Callable[[Server, Round], Judged]] = {
    "scoring": _scored,
    "prefixes": prefixes.verify,
    "generating": generating.verify,
}


def _with(judged: Judged, lost: Cost) -> dict[str, Any]:
    """The cost of a round, including the calls whose answers could not be used."""
    own = Cost(**{f.name: getattr(judged, f.name) for f in fields(Cost)})
    return (own + lost).as_fields()
