"""Scripted runs: events without models."""

from __future__ import annotations

from dataclasses import dataclass, field

from specviz.core.events import (
    BaselineKind,
    Done,
    DraftToken,
    Error,
    Event,
    FinishReason,
    RunStarted,
    Setting,
    TimeSplit,
    VerifyResult,
    Way,
    Weighed,
)
from specviz.core.guarantee import Guarantee
from specviz.core.rounds import Verdict
from specviz.core.tally import Tally
from specviz.record.state import RunState

#: What decides in a story, unless it is a server's.
TERMS: dict[str, Setting] = {"rule": "probabilistic", "temperature": 0.8}
EXACT = Guarantee("EXACT", "Rejection sampling: every token is distributed as the target's own.")


@dataclass(frozen=True)
class Special:
    """A token that adds nothing to the text."""

    name: str


Token = str | bytes | Special


def token_bytes(token: Token) -> bytes:
    return b"" if isinstance(token, Special) else token if isinstance(token, bytes) else token.encode()


def token_name(token: Token) -> str:
    if isinstance(token, Special):
        return token.name
    if isinstance(token, bytes):
        try:
            return token.decode()
        except UnicodeDecodeError:
            return "".join(f"\\x{b:02x}" for b in token)
    return token


def _rows(acceptance: float) -> tuple[list[float], list[float]]:
    """p and q over five tokens, of which the first is drafted and kept with this probability."""
    q = [0.5, 0.1, 0.2, 0.15, 0.05]
    left = 1 - q[0] * acceptance
    return [q[0] * acceptance, 0.5 * left, 0.25 * left, 0.15 * left, 0.1 * left], q


def _weighed(
    draft: Token | None, at: int, final: Token | None, p: list[float] | None, q: list[float] | None
) -> tuple[Weighed, ...]:
    """The drafted token and four others; the second one is drawn in its place where it is rejected."""
    if draft is None or p is None or q is None:
        return ()
    second = (200 + at, token_name(final)) if final is not None else (301, " other")
    tokens = [(100 + at, token_name(draft)), second, (302, "<b>third</b>"), (303, "\u202efourth"), (304, "x" * 300)]
    return tuple(Weighed(i, name, pi, qi) for (i, name), pi, qi in zip(tokens, p, q, strict=True))


@dataclass
class Story:
    """Writes a run's events round by round.

    Attributes:
        way: makes it a run of a completions target, whose calls nobody divides into network and computing.
        billed: prompt and output tokens of each of its rounds, which takes one call.
        network: round trip and jitter of a network that is simulated in front of the target, in ms.
    """

    baseline_tps: float | None = 20.0
    guarantee: Guarantee = EXACT
    way: Way | None = None
    per_call_tps: float | None = None
    billed: tuple[int, int] | None = None
    prompt_text: str = "Hello"
    target: str = "toy"
    draft: str = "toy"
    network: tuple[float, float] = (0.0, 0.0)
    events: list[Event] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    written: bytes = b""

    def __post_init__(self) -> None:
        self.tally = Tally(self.baseline_tps)
        self.events.append(
            RunStarted(
                "scripted", self.target, self.draft, dict(TERMS), self.guarantee, 300, 4096, (1, 2),
                self.prompt_text, 0.0, self.baseline_tps, self.per_call_tps, self._baseline_kind(),
                "here" if self.way is None else "completions", way=self.way,
                simulated_rtt_ms=self.network[0], simulated_jitter_ms=self.network[1],
            )
        )  # fmt: skip

    def _baseline_kind(self) -> BaselineKind | None:
        if self.baseline_tps is None or self.way is None:
            return None if self.baseline_tps is None else "separate_run"
        return "per_call" if self.baseline_tps == self.per_call_tps else "streaming"

    def round(
        self, drafts: list[Token], accepted: int, final: Token | None, *, acceptance: float = 0.8, note: str = "",
        entropy: float | None = 1.5, logprob: float | None = -0.5,
    ) -> Story:  # fmt: skip
        """One round: the first `accepted` of `drafts` kept, then `final` for the next, or as the bonus (None: none)."""
        number, start = self.tally.rounds, len(self.ids)
        for i, token in enumerate(drafts):
            name, data = token_name(token), token_bytes(token)
            self.events.append(DraftToken(number, i, start + i, name, 100 + i, data, logprob, entropy, (), 1.0))
        rejected = accepted < len(drafts)
        for i in range(len(drafts) + (not rejected and final is not None)):
            behind = "ignored" if i > accepted else "rejected" if rejected else "bonus"
            status = "accepted" if i < accepted else behind
            draft = drafts[i] if i < len(drafts) else None
            kept = draft if status == "accepted" else final if status in ("rejected", "bonus") else None
            judged = status in ("accepted", "rejected")
            p, q = _rows(acceptance) if judged and self.way is None else (None, None)
            self.events.append(
                VerifyResult(
                    number, i, start + i, status, None if draft is None else token_name(draft), 100 + i,  # type: ignore[arg-type]
                    None if kept is None else token_name(kept), None if kept is None else 200 + i,
                    None if kept is None else token_bytes(kept), logprob, logprob, logprob,
                    acceptance if judged else None, p[0] if p else None, q[0] if q else None,
                    (acceptance / 2 if status == "accepted" else (1 + acceptance) / 2) if p else None, entropy, (), 5.0,
                    _weighed(draft, i, kept if status == "rejected" else None, p, q),
                    sum(map(min, p, q)) if p and q else None,
                )
            )  # fmt: skip
            if kept is not None:
                self.ids.append(200 + i)
                self.written += token_bytes(kept)
        rtt_ms = self.network[0]
        split = TimeSplit(50.0 + rtt_ms, 10.0, rtt_ms, 0.0, 30.0, 6.0)
        if self.way is not None:
            split = TimeSplit(50.0, 10.0, None, None, None, 6.0, call_ms=30.0)
        self.events.append(
            self.tally.add(
                drafted=len(drafts), tested=accepted + rejected, accepted=accepted, emitted=len(self.ids) - start,
                split=split, guarantee=self.guarantee, note=note, verdict=self._cost(),
            )
        )  # fmt: skip
        return self

    def _cost(self) -> Verdict | None:
        if self.billed is None:
            return None
        prompt, output = self.billed
        return Verdict(
            (), (), self.guarantee, None, None, None, None,
            billed_prompt_tokens=prompt, billed_completion_tokens=output, requests=1,
        )  # fmt: skip

    def done(self, reason: FinishReason = "max_tokens") -> Story:
        t = self.tally
        self.events.append(
            Done(
                len(self.ids), t.accepted, t.drafted, t.tested, t.rounds, self.written.decode("utf-8", "replace"),
                tuple(self.ids), reason, t.total, t.tokens_per_second, t.baseline_tps, t.speedup, self.guarantee,
            )
        )  # fmt: skip
        return self

    def failed(self, message: str, remedy: str = "", kind: str = "RunError") -> Story:
        self.events.append(Error(kind, message, remedy))
        return self

    def state(self) -> RunState:
        return RunState().apply_all(self.events)
