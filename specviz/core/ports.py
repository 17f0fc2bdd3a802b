"""The interfaces of the loop: drafters, targets, tokenizers and models, and the values that pass between them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from specviz.core.events import Way
from specviz.core.guarantee import Guarantee
from specviz.core.names import Place
from specviz.core.noise import Noise
from specviz.core.rounds import Draft, Explain, Round, Verdict
from specviz.core.sampling import Logits, Row
from specviz.core.settings import Rule, Sampling
from specviz.core.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Capabilities:
    """A target's limits and description.

    Attributes:
        vocab_size: ids at or above it are never sent.
        max_context: tokens, prompt and output together.
        stop_ids: tokens that end a generation.
        place: where the target is.
        model_file: name of the file with the weights of an in-process target; empty when unknown.
        engine_note: why the engine is not the usual one, as a sentence; empty when it is.
        engine, precision, blas: the engine of an in-process target, its number format and its matrix library; empty
            when unknown.
        server: what a completions target's server says it is: engine, version, model; empty when unknown.
        way: how a completions target verifies a round; None for other targets.
        simulated_rtt_ms, simulated_jitter_ms: of a network that is simulated in front of it; 0 for none.
    """

    vocab_size: int
    max_context: int
    stop_ids: frozenset[int] = field(default_factory=frozenset)
    place: Place = "here"
    engine: str = ""
    precision: str = ""
    blas: str = ""
    model_file: str = ""
    engine_note: str = ""
    server: str = ""
    way: Way | None = None
    simulated_rtt_ms: float = 0.0
    simulated_jitter_ms: float = 0.0

    @property
    def full_rows(self) -> bool:
        """Whether full distributions are known, so that each rule keeps its own guarantee."""
        return self.place != "completions"


class Scorer(Protocol):
    """A language model with its own cache, as drafters and in-process targets use it."""

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        """Logits (rows, V) after each of the last `rows` ids of the whole context; -inf for ids that must not be drawn.

        The next call may overwrite them: who keeps rows makes a copy.
        The cache is reused up to the longest common prefix with the last call, so callers never rewind it themselves.
        """
        ...

    def score_blocks(self, context_ids: Sequence[int], blocks: Sequence[Sequence[int]]) -> list[Logits]:
        """Logits of several blocks that follow the same context: one (len(block) + 1, V) array per block.

        Row i of a block holds the logits after the context and the first i ids of the block. This default makes one
        pass per block; an engine that can score all blocks in one pass overrides it.
        """
        return [self.score([*context_ids, *block], len(block) + 1) for block in blocks]

    def reset(self) -> None:
        """Empty the cache."""
        ...


class Model(Protocol):
    """A language model in this process. An engine implements this and `Scorer`, and nothing else."""

    @property
    def name(self) -> str:
        """The name under which it was loaded."""
        ...

    @property
    def engine(self) -> str:
        """The engine that runs it: "mlx", "llama" or "toy"."""
        ...

    @property
    def precision(self) -> str:
        """Number format of its weights at run time, as text for the user."""
        ...

    @property
    def blas(self) -> str:
        """Library that multiplies its matrices; empty when unknown."""
        ...

    @property
    def model_file(self) -> str:
        """Name of the file with its weights; empty when it has none."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """Its vocabulary."""
        ...

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens that end a generation."""
        ...

    @property
    def max_context(self) -> int:
        """Maximum number of tokens in the context."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's own tokenizer."""
        ...

    def scorer(self) -> Scorer:
        """A new scorer with these weights and an empty cache."""
        ...


#: An earlier question of a conversation and its answer.
Exchange = tuple[str, str]


class Tokenizer(Protocol):
    """Text to ids and back. Ids are the truth: generated text is never encoded again."""

    def encode(self, text: str) -> list[int]:
        """Ids of a text. Special tokens in the text are parsed as such; none are added."""
        ...

    def chat(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
        """The text to encode for one user turn, by the model's chat template; the prompt itself if there is none.

        With an empty `system` the template's own default is used. `before`: the conversation before the prompt.
        """
        ...

    def chat_ids(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> tuple[str, list[int]]:
        """The text of `chat` and its ids. Names of special tokens in the user's words are text inside a template."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of a complete id sequence; special tokens are left out, incomplete characters become U+FFFD."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes that one token adds to the text; may be part of a character; empty for a special token."""
        ...

    def token_name(self, token_id: int) -> str:
        """A printable form of a token: " the", "<|im_end|>", or escaped bytes for part of a character."""
        ...


class Drafter(Protocol):
    """Proposes tokens. A new drafter is one file in `drafters/` and one line in `setup/builder.py`."""

    name: str
    max_context: int | None

    def propose(
        self,
        context_ids: Sequence[int],
        k: int,
        sampling: Sampling,
        noise: Noise,
        n: int = 1,
        explain: Explain = 2,
    ) -> Draft:
        """At most n candidates of at most k tokens each that continue the context."""
        ...

    def reset(self) -> None:
        """Forget caches: the next call starts as the first one did."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One position of a block that a drafter would have drafted along an existing text.

    Attributes:
        q: the distribution that the drafter would have drawn the token from.
        copied: the token would be copied from the context, at almost no cost, and not drawn from a model.
    """

    q: Row
    copied: bool = False


#: (start of a round in the text, K) → the steps of the block that would be drafted there, if every draft token were
#: the text's own token. The steps for a smaller K are a prefix of these. Must be called with ascending starts.
Follower = Callable[[int, int], Sequence[Step]]


@runtime_checkable
class Followable(Protocol):
    """A drafter that can compute what it would have drafted along an existing text."""

    def follow(self, ids: Sequence[int], start: int, sampling: Sampling) -> Follower:
        """What it would draft at each position of a text.

        Args:
            ids: prompt and text. start: index of the first id of the text; the follower counts from there.
        """
        ...


@runtime_checkable
class HasScorer(Protocol):
    """A target with full distributions."""

    @property
    def scorer(self) -> Scorer:
        """The model with the target's own cache."""
        ...


def without_network(target: Target) -> Target:
    """The target without the network that is simulated in front of it, if there is one."""
    return target.near if isinstance(target, Distant) else target


class Arrival(NamedTuple):
    """A chunk of a streamed answer.

    Attributes:
        at: the `time.perf_counter` value when it came, in seconds.
        tokens: how many it holds; None when the server does not report it.
        text: empty in the last item of a server that reports the total at the end.
    """

    at: float
    tokens: int | None
    text: str = ""


@runtime_checkable
class Streaming(Protocol):
    """A target that can also decode plainly in one streamed answer, the usual way to use a server without a draft."""

    def stream_plain(self, context_ids: Sequence[int], sampling: Sampling, max_tokens: int) -> Generator[Arrival]:
        """Chunks of one streamed answer, continued past stop tokens if the server supports that.

        If the server reports the total number of tokens at the end, a last item holds that.
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
    """Verifies drafts. Callers always pass the whole context; the target manages its own cache."""

    name: str
    capabilities: Capabilities
    tokenizer: Tokenizer

    def guarantee(self, sampling: Sampling, rule: Rule) -> Guarantee:
        """The guarantee for output under these settings."""
        ...

    def verify(self, round: Round) -> Verdict:
        """Score the draft in one call and decide. No candidate means one plain decoding step."""
        ...

    def reset(self) -> None:
        """Forget caches: the next call starts as the first one did."""
        ...
