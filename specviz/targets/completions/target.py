"""A target behind an API: chooses how to verify, keeps what is owed, and says how far its output can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from specviz.core.errors import LackingError, PairingError, RefusedError
from specviz.core.events import Guarantee, Way, worst
from specviz.core.ports import Capabilities, Round, Tokenizer, Verdict
from specviz.core.settings import Rule, Sampling, Verification
from specviz.targets.completions.choice import choose
from specviz.targets.completions.costs import Cost, Metered
from specviz.targets.completions.owed import Owed, settle
from specviz.targets.completions.reading.texts import exact_text
from specviz.targets.completions.server import Server
from specviz.targets.completions.values import Completions, Findings, Prompt, Request
from specviz.targets.completions.ways import generating, prefixes, scoring
from specviz.targets.completions.ways.draws import Judged

#: Statuses by which servers say that they do not do what was asked.
_CANNOT = (400, 413, 422, 501)
_LONGEST = 200
#: Of a round that needed no call.
_FREE = Cost(0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Count:
    """How many tokens the server must count in a prompt, if it reads back what it wrote."""

    context_ids: tuple[int, ...] = ()
    tokens: int = 0


class RemoteTarget:
    """Verifies rounds by calls to a server.

    Args:
        name: as the catalog knows it.
        api: the server. findings: what it was found to be able to.
        tokenizer: the target's own, or one that writes the same text (`Findings.same_tokens`).
        capabilities: its limits; `way` is set here.
        verification: how rounds are to be verified.
        sampling, rule: of the run, for `capabilities.way`.
        forget: called when the findings turn out to be wrong, to drop them where they are kept.

    Raises:
        IncapableError: it cannot be verified in that way.
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
        self._notes: tuple[str, ...] = ()
        way, _ = choose(findings, verification, sampling, rule, capabilities.vocab_size)
        self.capabilities = replace(capabilities, way=way)
        self._owed, self._count = Owed(), _Count()
        self._worst: Guarantee | None = None

    @property
    def findings(self) -> Findings:
        """What the server can do, as far as is known by now."""
        return self._findings

    def guarantee(self, sampling: Sampling, rule: Rule) -> Guarantee:
        """What may be promised, and never more than what the run has shown so far."""
        return self._noted(worst(self._chosen(sampling, rule)[1], self._worst))

    def verify(self, round: Round) -> Verdict:
        """Judge a draft against what is owed, then ask the server for the rest; no call where nothing is left.

        Raises:
            ValueError: more than one candidate.
            PairingError: an id is outside the target's vocabulary.
            RemoteError: the server failed, or cannot do it after all.
        """
        if len(round.draft.candidates) > 1:
            raise ValueError(f"a completions target judges one candidate a round, not {len(round.draft.candidates)}")
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

    def stream_plain(
        self, context_ids: Sequence[int], sampling: Sampling, max_tokens: int
    ) -> Generator[tuple[float, int | None]]:
        """One streamed answer, for the baseline: see `ports.Streaming`.

        Raises:
            RemoteError: the server failed.
            StoppedError: the wait was ended.
        """
        prompt: Prompt = tuple(context_ids)
        if generating.takes_text(self._findings):
            prompt = exact_text(context_ids, self.tokenizer, self._findings.bos_added).text
        request = Request((prompt,), max_tokens, sampling.temperature, sampling.top_k, sampling.top_p, past_stop=True)
        for piece in self._api.stream(request, engine=self._findings.engine):
            yield piece.at, piece.tokens

    def reset(self) -> None:
        """Forget what is owed and how far the last run could be trusted. What the server cannot do stays known."""
        self._owed, self._count, self._worst = Owed(), _Count(), None

    @property
    def _vocab_size(self) -> int:
        return self.capabilities.vocab_size

    def _check_ids(self, context: Sequence[int], draft: Sequence[int]) -> None:
        for what, ids in (("context", context), ("draft", draft)):
            for i in ids:
                if not 0 <= i < self._vocab_size:
                    raise PairingError(
                        f"The {what} has token id {i}, and the target's vocabulary has {self._vocab_size}: never sent.",
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
        return replace(judged, guarantee=worst(judged.guarantee, self._read_back(round.context_ids, judged)))

    @property
    def _server(self) -> Server:
        """As far as its abilities are known by now."""
        return Server(self._api, self._findings, self.tokenizer, self._vocab_size, self.capabilities.stop_ids)

    def _read_back(self, context: tuple[int, ...], judged: Judged) -> Guarantee | None:
        """Whether the server counts its own text, as it gets it back, as the tokens that it wrote.

        Where it does not give ids this is all that can be seen of it.
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
            f"The server reads its own text as other tokens than it wrote: {judged.prompt_tokens} instead of "
            f"{before.tokens}.",
        )

    # When the server cannot do what it was found to do.

    def _demote(self, way: Way, exc: LackingError | RefusedError, sampling: Sampling, rule: Rule) -> None:
        """Go on without what turned out to be missing; once per ability.

        Raises:
            SpecvizError: `exc`, where nothing less is left or it shows no missing ability; IncapableError, where the
                way was asked for.
        """
        without = _without(way, self._findings)
        refused = isinstance(exc, RefusedError)
        if without is None or (refused and (way == "generating" or exc.status not in _CANNOT)):
            raise exc
        draws = way == "scoring" or (way == "prefixes" and not self._findings.ids_out)
        if draws and not refused and sampling.temperature > 0:
            # What was drawn may be why it could not be used: a token behind the block, or in a refused one's place.
            self._worst = worst(
                Guarantee("UNKNOWN", "A draw of the server's could not be used, and was repeated."), self._worst
            )
        shown = exc.message if len(exc.message) <= _LONGEST else exc.message[: _LONGEST - 1] + "…"
        note = f"{_LOST[way]} failed on the way: {shown}"
        self._findings = replace(without, notes=(note, *without.notes))
        self._notes = (*self._notes, note)
        self._forget()
        now, _ = self._chosen(sampling, rule)
        self.capabilities = replace(self.capabilities, way=now)

    def _noted(self, guarantee: Guarantee) -> Guarantee:
        """With what failed on the way."""
        missing = [note for note in self._notes if note not in guarantee.reason]
        return replace(guarantee, reason=" ".join([guarantee.reason, *missing]))


def _without(way: Way, findings: Findings) -> Findings | None:
    """Findings without what a way needs that others do not; None where there is nothing left to do without."""
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
    "generating": "Telling more than text",
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
    """The cost of a round, with that of calls whose answers could not be used."""
    own = Cost(**{f.name: getattr(judged, f.name) for f in fields(Cost)})
    return (own + lost).as_fields()
