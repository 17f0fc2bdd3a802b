"""What the loop talks to: drafters, targets and tokenizers, and the values that pass between them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, runtime_checkable

from specviz.core.codec import Amount, Count, Position, Share, TokenId
from specviz.core.events import Alternative, Guarantee, Way, Weighed
from specviz.core.names import Place
from specviz.core.noise import Noise
from specviz.core.sampling import Logits, Row, Status
from specviz.core.settings import Rule, Sampling
from specviz.core.vocabulary import Vocabulary

#: How the tokens of a candidate came to be. iid: drawn one by one, each from its own q. distinct_first: the same, but
#: the first tokens of the candidates of one draft were drawn without replacement. one_hot: chosen, not drawn.
Drawn = Literal["iid", "distinct_first", "one_hot"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One block of draft tokens, each with the q that it was drawn from.

    Attributes:
        token_ids: (K,); may be shorter than asked for.
        q: (K,) rows; `q[i]` is what `token_ids[i]` was drawn from.
        logprobs: (K,) natural log of the draft's untempered probability; None where the drafter has none (n-gram).
        entropies: (K,) bits, of the untruncated distribution at temperature 1; None where there is none.
        alternatives: (K,) the draft's most probable tokens at each position, best first.
        times_ms: (K,) what each token took.
        drafter: name of the drafter that proposed it.
        drawn: how. `q` alone says of each token what it was drawn from; this says whether the candidates of one draft
            depend on each other.
    """

    token_ids: tuple[TokenId, ...]
    q: tuple[Row, ...]
    logprobs: tuple[float | None, ...]
    entropies: tuple[Amount | None, ...]
    alternatives: tuple[tuple[Alternative, ...], ...]
    times_ms: tuple[Amount, ...]
    drafter: str = ""
    drawn: Drawn = "iid"

    def __len__(self) -> int:
        return len(self.token_ids)

    def behind(self, start: int) -> Candidate:
        """The same without its first `start` tokens."""
        return replace(
            self,
            token_ids=self.token_ids[start:],
            q=self.q[start:],
            logprobs=self.logprobs[start:],
            entropies=self.entropies[start:],
            alternatives=self.alternatives[start:],
            times_ms=self.times_ms[start:],
        )


#: A block of no tokens.
EMPTY = Candidate((), (), (), (), (), ())


@dataclass(frozen=True, slots=True)
class Draft:
    """What a drafter proposes for a round.

    Attributes:
        candidates: in the order drawn, none of them empty; none at all where there was nothing to draft.
        note: why the drafter cannot draft what it was asked for, in words for a person; empty when all is well.
    """

    candidates: tuple[Candidate, ...] = ()
    note: str = ""

    @property
    def first(self) -> Candidate:
        """The first candidate; `EMPTY` where there is none."""
        return self.candidates[0] if self.candidates else EMPTY


NO_DRAFT = Draft()

#: Which stream the target's own draws come from: one per round, or one per position. See `specviz.core.noise`.
Stream = Literal["target", "shared"]


@dataclass(frozen=True, slots=True)
class Round:
    """What a target is asked to judge.

    Attributes:
        context_ids: everything in front of the draft, the prompt included.
        draft: what was proposed; no candidate means one plain decoding step.
        sampling, rule: of the run.
        noise: every random draw of the round.
        stream: of the target's own draws. Plain decoding without a drafter draws by position, so that its text does
            not depend on how many rounds there were.
    """

    context_ids: tuple[TokenId, ...]
    draft: Draft
    sampling: Sampling
    rule: Rule
    noise: Noise
    stream: Stream = "target"

    def behind(self, token_ids: Sequence[int], rest: Candidate) -> Round:
        """The same round, with some more ids in front of what is left of its only candidate."""
        draft = replace(self.draft, candidates=(rest,) if rest.token_ids else ())
        return replace(self, context_ids=(*self.context_ids, *token_ids), draft=draft)


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
class Wait:
    """Somebody waits: for a download, a server, a measurement. They are told how far it is, and may give it up.

    Attributes:
        on_progress: told often. cancelled: asked often; true ends what is waited for.
    """

    on_progress: OnProgress = lambda progress: None
    cancelled: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one position of a candidate.

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
        weighed, overlap: see `events.VerifyResult`.
        candidate: whose position this is.
    """

    status: Status
    draft_id: TokenId | None
    final_id: TokenId | None
    p: Share | None = None
    q: Share | None = None
    acceptance: Share | None = None
    u: Share | None = None
    draft_logprob_target: float | None = None
    final_logprob: float | None = None
    entropy: Amount | None = None
    alternatives: tuple[Alternative, ...] = ()
    weighed: tuple[Weighed, ...] = ()
    overlap: Share | None = None
    candidate: Position = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one verification. Times in ms, None where they cannot be known.

    Attributes:
        decisions: one per draft token of each candidate, then the bonus if every token of the winner was kept.
        token_ids: what the round emits: kept tokens and the resampled or bonus token.
        compute_ms: the target model's forward pass. network_ms, queue_ms: 0.0 in-process.
        rule_ms: probabilities, the rule, and what is recorded about it.
        call_ms: what is left of calls to a server, where it does not say what was network and what computing.
        sent_bytes, received_bytes, billed_prompt_tokens, billed_completion_tokens, requests: None where not applicable.
        winner: number of the candidate that the emitted ids are of.
    """

    decisions: tuple[Decision, ...]
    token_ids: tuple[TokenId, ...]
    guarantee: Guarantee
    compute_ms: Amount | None
    rule_ms: Amount | None
    network_ms: Amount | None = 0.0
    queue_ms: Amount | None = 0.0
    call_ms: Amount = 0.0
    sent_bytes: Count | None = None
    received_bytes: Count | None = None
    billed_prompt_tokens: Count | None = None
    billed_completion_tokens: Count | None = None
    requests: Count | None = None
    winner: Position = 0


@dataclass(frozen=True, slots=True)
class Capabilities:
    """A target's limits, and what it is.

    Attributes:
        vocab_size: ids at or beyond it are never sent.
        max_context: tokens, prompt and output together.
        stop_ids: tokens that end a generation.
        place: where the target is.
        engine, precision, blas: what runs it in this process, in which number format, on which matrix library; empty
            where that is not known.
        way: how a completions target verifies a round; None for any other.
        simulated_rtt_ms, simulated_jitter_ms: of a network that is simulated in front of it; 0 for none.
    """

    vocab_size: int
    max_context: int
    stop_ids: frozenset[int] = field(default_factory=frozenset)
    place: Place = "here"
    engine: str = ""
    precision: str = ""
    blas: str = ""
    way: Way | None = None
    simulated_rtt_ms: float = 0.0
    simulated_jitter_ms: float = 0.0

    @property
    def full_rows(self) -> bool:
        """Whether whole distributions are seen, so that every rule is as exact as the rule can be."""
        return self.place != "completions"


class Scorer(Protocol):
    """A language model with a cache of its own, as drafters and in-process targets use it."""

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        """Logits (rows, V) after each of the last `rows` ids of the whole context; -inf for ids that must not be.

        The cache is kept by longest common prefix with the last call, so a rewind cannot be forgotten.
        """
        ...

    def score_blocks(self, context_ids: Sequence[int], blocks: Sequence[Sequence[int]]) -> list[Logits]:
        """Rows of several blocks that stand behind the same context: for each (len(block) + 1, V).

        Row i of a block is what follows the context and its first i ids. A class that inherits this gets one pass a
        block; an engine that can judge all of them in one pass has its own.
        """
        return [self.score([*context_ids, *block], len(block) + 1) for block in blocks]

    def reset(self) -> None:
        """Forget the cache."""
        ...


class Model(Protocol):
    """A language model in this process. An engine implements this and `Scorer`, and nothing else."""

    @property
    def name(self) -> str:
        """As it was asked for."""
        ...

    @property
    def engine(self) -> str:
        """What runs it: "mlx" or "toy"."""
        ...

    @property
    def precision(self) -> str:
        """Number format of its weights while it runs, for a person."""
        ...

    @property
    def blas(self) -> str:
        """Library that multiplies its matrices; empty where that is not known."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """Its tokens."""
        ...

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens that end a generation."""
        ...

    @property
    def max_context(self) -> int:
        """Tokens."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """Its own."""
        ...

    def scorer(self) -> Scorer:
        """A new, empty cache over its weights."""
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

    def propose(self, context_ids: Sequence[int], k: int, sampling: Sampling, noise: Noise, n: int = 1) -> Draft:
        """At most n candidates of at most k tokens that continue the whole context."""
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


def without_network(target: Target) -> Target:
    """The target itself, where a network is simulated in front of it."""
    return target.near if isinstance(target, Distant) else target


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
    """

    near: Target


class Target(Protocol):
    """Judges proposals. Callers always pass the whole context; the cache is the target's own business."""

    name: str
    capabilities: Capabilities
    tokenizer: Tokenizer

    def guarantee(self, sampling: Sampling, rule: Rule) -> Guarantee:
        """What may be promised about output under these settings."""
        ...

    def verify(self, round: Round) -> Verdict:
        """Score the draft in one call and decide. No candidate means one plain decoding step."""
        ...

    def reset(self) -> None:
        """Forget caches: the next call starts as the first one did."""
        ...
