"""What the loop talks to: drafters, targets and tokenizers, and the values that pass between them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from specviz.core.events import Alternative, Guarantee, Way, Weighed
from specviz.core.sampling import Logits, Row, Status
from specviz.core.settings import Rule, Sampling


@dataclass(frozen=True, slots=True)
class Candidate:
    """A block of draft tokens, each with the q that it was drawn from.

    Attributes:
        token_ids: (K,); may be shorter than asked for, or empty.
        q: (K,) rows; `q[i]` is what `token_ids[i]` was drawn from.
        logprobs: (K,) natural log of the draft's untempered probability; None where the drafter has none (n-gram).
        entropies: (K,) bits, of the untruncated distribution at temperature 1; None where there is none.
        alternatives: (K,) the draft's most probable tokens at each position, best first.
        times_ms: (K,) what each token took.
        note: why the drafter cannot draft what it was asked for, in words for a person; empty when all is well.
    """

    token_ids: tuple[int, ...]
    q: tuple[Row, ...]
    logprobs: tuple[float | None, ...]
    entropies: tuple[float | None, ...]
    alternatives: tuple[tuple[Alternative, ...], ...]
    times_ms: tuple[float, ...]
    note: str = ""


NO_PROPOSAL = Candidate((), (), (), (), (), ())


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a wait has come: a download, a conversion, a load, a baseline.

    Attributes:
        what: for a person, as in "Downloading SmolLM2-135M-Instruct"; empty where a wait is over.
        done, total: in `unit`; total None while it is unknown.
        unit: "bytes", "tokens", "steps" or "s".
    """

    what: str
    done: int = 0
    total: int | None = None
    unit: str = "steps"


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one position of a round.

    Attributes:
        status: accepted, rejected, ignored (behind the first rejection: the rule never reached it) or bonus.
        draft_id: the draft token; None for the bonus.
        final_id: the token that stands here now; None when ignored.
        p, q: target and draft probability of the draft token after the sampling settings (of the bonus token, for
            the bonus; its q is None).
        acceptance: the probability with which the draft token was to be kept; None for ignored and bonus.
        u: the uniform draw that decided, where the rule draws one.
        draft_logprob_target: natural log of the target's untempered probability of the draft token (of the bonus
            token, for the bonus).
        final_logprob: the same for `final_id`.
        entropy: bits, of the target's untruncated distribution at temperature 1.
        alternatives: the target's most probable tokens here, best first.
        candidates, overlap: see `events.VerifyResult`.
    """

    status: Status
    draft_id: int | None
    final_id: int | None
    p: float | None = None
    q: float | None = None
    acceptance: float | None = None
    u: float | None = None
    draft_logprob_target: float | None = None
    final_logprob: float | None = None
    entropy: float | None = None
    alternatives: tuple[Alternative, ...] = ()
    candidates: tuple[Weighed, ...] = ()
    overlap: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one verification. Times in ms, None where they cannot be known.

    Attributes:
        decisions: one per draft token, then the bonus if every one was kept.
        token_ids: what the round emits: kept tokens and the resampled or bonus token.
        compute_ms: the target model's forward pass. network_ms, queue_ms: 0.0 in-process.
        rule_ms: probabilities, the rule, and what is recorded about it.
        call_ms: what is left of calls to a server, where it does not say what was network and what computing.
        sent_bytes, received_bytes, billed_prompt_tokens, billed_completion_tokens, requests: None where not applicable.
    """

    decisions: tuple[Decision, ...]
    token_ids: tuple[int, ...]
    guarantee: Guarantee
    compute_ms: float | None
    rule_ms: float | None
    network_ms: float | None = 0.0
    queue_ms: float | None = 0.0
    call_ms: float = 0.0
    sent_bytes: int | None = None
    received_bytes: int | None = None
    billed_prompt_tokens: int | None = None
    billed_completion_tokens: int | None = None
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a target can do, and its limits.

    Attributes:
        full_rows: it sees whole distributions, so every rule is exact where the rule is.
        vocab_size: ids at or beyond it are never sent.
        max_context: tokens, prompt and output together.
        stop_ids: tokens that end a generation.
        way: how it verifies a round.
    """

    full_rows: bool
    vocab_size: int
    max_context: int
    stop_ids: frozenset[int] = field(default_factory=frozenset)
    way: Way = "rows"


class Scorer(Protocol):
    """A language model with a cache of its own, as drafters and in-process targets use it."""

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        """Logits (rows, V) after each of the last `rows` ids of the whole context; -inf for ids that must not be.

        The cache is kept by longest common prefix with the last call, so a rewind cannot be forgotten.
        """
        ...

    def reset(self) -> None:
        """Forget the cache."""
        ...


#: What was asked and what was answered, earlier in a conversation.
Exchange = tuple[str, str]


class Tokenizer(Protocol):
    """Text to ids and back. Ids are the truth: generated text is never encoded again."""

    def encode(self, text: str) -> list[int]:
        """Ids of a text, special tokens in it parsed as such; adds none of its own."""
        ...

    def chat(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
        """The text to encode for one user turn, by the model's chat template; the prompt itself where it has none.

        An empty `system` leaves the template's own default in place. `before`: the conversation up to the prompt.
        """
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of a whole id sequence; special tokens are left out, incomplete characters become U+FFFD."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """What one token adds to the text, as UTF-8; may be part of a character; empty for a special token."""
        ...

    def token_name(self, token_id: int) -> str:
        """A printable form of any one token: " the", "<|im_end|>", escaped bytes for part of a character."""
        ...


class Drafter(Protocol):
    """Proposes tokens. One file in `drafters/` and one line in the catalog make a new one."""

    name: str
    max_context: int | None

    def propose(
        self, context_ids: Sequence[int], k: int, sampling: Sampling, rng: np.random.Generator, n: int = 1
    ) -> list[Candidate]:
        """At most n candidate blocks of at most k tokens that continue the whole context."""
        ...

    def reset(self) -> None:
        """Forget caches: the next call starts as the first one did."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One position of a block that was not drafted but followed.

    Attributes:
        q: what the drafter would have drawn its token from.
        copied: it was copied from the context, which costs next to nothing, and not drawn from a model.
    """

    q: Row
    copied: bool = False


#: Given where in a text a round starts and K: the steps of the block that would be drafted there, if every draft token
#: turned out to be the text's own. Those for a smaller K are the first of them. Called from front to back.
Follower = Callable[[int, int], Sequence[Step]]


@runtime_checkable
class Followable(Protocol):
    """A drafter that can tell what it would have done along a text that is already there."""

    def follow(self, ids: Sequence[int], start: int, sampling: Sampling) -> Follower:
        """What it would draft at each place of a text.

        Args:
            ids: prompt and text. start: where the text begins; the places of the follower count from there.
        """
        ...


@runtime_checkable
class HasScorer(Protocol):
    """A target whose whole distributions can be had."""

    @property
    def scorer(self) -> Scorer:
        """The model, with the target's own cache."""
        ...


@runtime_checkable
class Streaming(Protocol):
    """A target that can also decode plainly in one long answer, which is what a server does best without a draft."""

    def stream_plain(
        self, context_ids: Sequence[int], sampling: Sampling, max_tokens: int
    ) -> Generator[tuple[float, int | None]]:
        """Pieces of one streamed answer, past stop tokens where the server can be told so.

        Yields:
            Seconds of `time.perf_counter` at which a piece came, and how many tokens it brought. None where the server
            does not say; if it tells the sum at the end, a last piece holds that.
        """
        ...


@runtime_checkable
class Distant(Protocol):
    """A target with a simulated network in front of it.

    Attributes:
        near: the same target without that network.
        rtt_ms: what a round trip takes in the mean. jitter_ms: how far a single one may be from it.
    """

    near: Target
    rtt_ms: float
    jitter_ms: float


class Target(Protocol):
    """Judges proposals. Callers always pass the whole context; the cache is the target's own business."""

    name: str
    capabilities: Capabilities
    tokenizer: Tokenizer

    def guarantee(self, sampling: Sampling, rule: Rule) -> Guarantee:
        """What may be promised about output under these settings."""
        ...

    def verify(
        self,
        context_ids: Sequence[int],
        proposals: Sequence[Candidate],
        sampling: Sampling,
        rule: Rule,
        rng: np.random.Generator,
    ) -> Verdict:
        """Score the proposals in one call and decide. No proposal means one plain decoding step."""
        ...

    def reset(self) -> None:
        """Forget caches: the next call starts as the first one did."""
        ...
