"""Builds the state of a run from its events: tree, text, counts, rates. Live page, replay, benchmark and CLI use it.

A `RunState` holds all data that is drawn, and draws nothing itself. Every change of a node is logged, so a view can
read the changes since its last poll at a cost proportional to the changes, not to the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from specviz.core.errors import TraceError
from specviz.core.events import (
    Alternative,
    Done,
    DraftToken,
    Error,
    Event,
    FinishReason,
    Metrics,
    RunStarted,
    VerifyResult,
    Way,
    Weighed,
)
from specviz.core.guarantee import NOTHING, Guarantee
from specviz.core.known import sum_known

NodeStatus = Literal["pending", "accepted", "rejected", "ignored", "resampled", "bonus"]
#: What a run is compared with: plain decoding in this process (without the simulated network, if the run has one), or
#: by a server, streamed or with one call per token.
Baseline = Literal["plain decoding", "plain decoding without the network", "streaming", "one call per token"]
#: Statuses of the tokens in the output.
EMITTED: frozenset[NodeStatus] = frozenset({"accepted", "resampled", "bonus"})


@dataclass(slots=True)
class Node:
    """One token in the tree.

    Attributes:
        id: index in `RunState.nodes`. parent: id of the token before it, -1 at the start of the output.
        index: position in the output. position: position in its round's block.
        token: printable form. token_bytes: the bytes that it adds to the text.
        entropy: in bits; the target's if known, else the draft's.
        draft_logprob: see `events.DraftToken`. acceptance_prob, p, q, u, target_logprob: see `events.VerifyResult`;
            None until verified.
        draft_alternatives, target_alternatives: most probable tokens here, best first.
        weighed, overlap: see `events.VerifyResult`; for a resampled token they are in its sibling.
        sibling: of a rejected token, the token drawn in its place, and vice versa; None for other tokens.
    """

    id: int
    parent: int
    round: int
    position: int
    index: int
    status: NodeStatus
    token: str
    token_id: int
    token_bytes: bytes
    entropy: float | None = None
    draft_logprob: float | None = None
    target_logprob: float | None = None
    acceptance_prob: float | None = None
    p: float | None = None
    q: float | None = None
    u: float | None = None
    draft_alternatives: Sequence[Alternative] = ()
    target_alternatives: Sequence[Alternative] = ()
    weighed: Sequence[Weighed] = ()
    overlap: float | None = None
    sibling: int | None = None


@dataclass(slots=True)
class Sums:
    """Running sums over the finished rounds of a run, so that a poll need not add up all rounds.

    Attributes:
        billed_prompt, billed_completion: tokens that the server counted; None if it counted none. unbilled: number of
            rounds without such counts.
        requests: calls to the server, over the `asking` rounds that have this count.
    """

    drafted: int = 0
    tested: int = 0
    accepted: int = 0
    emitted: int = 0
    billed_prompt: int | None = None
    billed_completion: int | None = None
    unbilled: int = 0
    requests: int = 0
    asking: int = 0

    def add(self, m: Metrics) -> None:
        """Add one round."""
        self.drafted += m.drafted
        self.tested += m.tested
        self.accepted += m.accepted
        self.emitted += m.emitted
        self.billed_prompt = sum_known((self.billed_prompt, m.billed_prompt_tokens))
        self.billed_completion = sum_known((self.billed_completion, m.billed_completion_tokens))
        self.unbilled += m.billed_tokens is None
        self.requests += m.requests or 0
        self.asking += m.requests is not None


@dataclass(slots=True)
class RunState:
    """The state of one run, built by calling `apply` with its events in order.

    Attributes:
        nodes: every token drafted or emitted, in order of appearance. log: ids of nodes in order of change.
        text: ids of the emitted nodes, in order of the output.
        rounds: one `Metrics` per finished round. sums: over all of them.
        proposed, reached, kept: per position of the block, the number of draft tokens proposed, tested and kept there.
            `proposed` may be longer than the others.
    """

    started: RunStarted | None = None
    done: Done | None = None
    error: Error | None = None
    nodes: list[Node] = field(default_factory=list)
    log: list[int] = field(default_factory=list)
    text: list[int] = field(default_factory=list)
    rounds: list[Metrics] = field(default_factory=list)
    sums: Sums = field(default_factory=Sums)
    proposed: list[int] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    _block: dict[int, int] = field(default_factory=dict)
    _ways: dict[Way, None] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether the run has ended, successfully or not."""
        return self.done is not None or self.error is not None

    @property
    def latest(self) -> Metrics | None:
        """The numbers after the last finished round."""
        return self.rounds[-1] if self.rounds else None

    @property
    def guarantee(self) -> Guarantee | None:
        """The guarantee for the output so far; before the first token, the one that the run begins with."""
        if self.finished and not self.text:
            return NOTHING
        last = self.done or self.latest or self.started
        return last.guarantee if last else None

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the run ended; None while it runs and after a failure."""
        return self.done.finish_reason if self.done else None

    @property
    def baseline(self) -> Baseline:
        """The kind of baseline of this run.

        Behind a simulated network it is plain decoding without the network: a server that streams needs one round trip
        before the first token only, and rates leave the first token out.
        """
        started = self.started
        if started is not None and started.baseline_kind in ("streaming", "per_call"):
            return "streaming" if started.baseline_kind == "streaming" else "one call per token"
        simulated = started is not None and started.simulated_rtt_ms > 0
        return "plain decoding without the network" if simulated else "plain decoding"

    def way_of(self, number: int) -> Way | None:
        """How a completions target verified a round, -1 for the last; for one that has not ended, as the one before.

        None for other targets. A recording without the ways of its rounds has the one that the run began with.
        """
        known = self.rounds[min(number, len(self.rounds) - 1)].way if self.rounds else None
        return known or (self.started.way if self.started else None)

    @property
    def ways(self) -> list[Way]:
        """The ways of all rounds, each once, in order; before the first round, the one that the run begins with."""
        first = self.way_of(-1)
        return list(self._ways) or ([] if first is None else [first])

    def output_bytes(self) -> bytes:
        """The text so far as UTF-8; its end may be part of a character."""
        return b"".join(self.nodes[i].token_bytes for i in self.text)

    def acceptance_by_position(self) -> list[float | None]:
        """Accepted / tested at each position of the block, over the drafts tested there (not over all rounds)."""
        return [k / n if n else None for k, n in zip(self.kept, self.reached, strict=True)]

    def apply(self, event: Event) -> None:
        """Add one event."""
        match event:
            case RunStarted():
                self.started = event
            case DraftToken():
                self._draft(event)
            case VerifyResult():
                self._verify(event)
            case Metrics():
                self.rounds.append(event)
                self.sums.add(event)
                if (way := self.way_of(-1)) is not None:
                    self._ways[way] = None
                self._block.clear()
            case Done():
                self.done = event
            case Error():
                self.error = event

    def apply_all(self, events: Iterable[Event]) -> RunState:
        """Add many events; returns self."""
        for event in events:
            self.apply(event)
        return self

    def _draft(self, e: DraftToken) -> None:
        _grow(self.proposed, e.position)
        self.proposed[e.position] += 1
        parent = self._block.get(e.position - 1, self.text[-1] if self.text else -1)
        self._block[e.position] = self._add(
            Node(
                len(self.nodes), parent, e.round, e.position, e.index, "pending", e.token, e.token_id, e.token_bytes,
                entropy=e.entropy, draft_logprob=e.logprob, draft_alternatives=e.top_tokens,
            )
        )  # fmt: skip

    def _verify(self, e: VerifyResult) -> None:
        drafted = self._block.get(e.position)
        if drafted is None and e.status != "bonus":
            raise TraceError(
                f"Round {e.round} judges a draft token at position {e.position} that was never proposed.",
                "The recording is damaged there.",
            )
        parent = self.nodes[drafted].parent if drafted is not None else (self.text[-1] if self.text else -1)
        if drafted is not None:
            node = self.nodes[drafted]
            if e.status != "bonus":
                node.status = e.status
            node.target_logprob, node.acceptance_prob = e.target_logprob, e.acceptance_prob
            node.p, node.q, node.u = e.p, e.q, e.u
            node.target_alternatives = e.top_tokens
            node.weighed, node.overlap = e.weighed, e.overlap
            node.entropy = e.entropy if e.entropy is not None else node.entropy
            self.log.append(drafted)
            if e.status in ("accepted", "rejected"):
                self._count(e.position, e.status == "accepted")
        if e.status == "accepted" and drafted is not None:
            self.text.append(drafted)
        elif e.status in ("rejected", "bonus") and e.final_token_id is not None:
            final = Node(
                len(self.nodes), parent, e.round, e.position, e.index,
                "resampled" if e.status == "rejected" else "bonus",
                e.final_token or "", e.final_token_id, e.final_token_bytes or b"",
                entropy=e.entropy, target_logprob=e.final_logprob, target_alternatives=e.top_tokens,
            )  # fmt: skip
            if e.status == "bonus":
                final.p, final.weighed = e.p, e.weighed
            elif drafted is not None:
                final.sibling, self.nodes[drafted].sibling = drafted, final.id
            self.text.append(self._add(final))

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        self.log.append(node.id)
        return node.id

    def _count(self, position: int, kept: bool) -> None:
        for counts in (self.reached, self.kept):
            _grow(counts, position)
        self.reached[position] += 1
        self.kept[position] += kept


def _grow(counts: list[int], position: int) -> None:
    counts.extend([0] * (position + 1 - len(counts)))
