"""What every server has to keep: the same runs in every way that it can do, live and against its recorded answers.

The drafts need no model, so that a recording can be replayed anywhere: n-gram lookup, and a script that knows the
target's greedy text and plants wrong tokens in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from specviz.core.decoding import autoregressive, speculative
from specviz.core.events import Done, Error, Event, Metrics, VerifyResult, Way
from specviz.core.guarantee import GuaranteeKind
from specviz.core.noise import Noise
from specviz.core.ports import Capabilities, Drafter, Target, Tokenizer
from specviz.core.rounds import Draft, Explain
from specviz.core.sampling import Row, draw
from specviz.core.settings import Sampling, Settings
from specviz.drafters.block import Drafted, draft_of
from specviz.drafters.ngram import NgramDrafter
from specviz.targets.completions.target import RemoteTarget
from specviz.targets.completions.values import Completions, Findings

K, GREEDY_TOKENS, SAMPLED_TOKENS, SEED = 4, 64, 24, 7
#: Nats between the two best tokens, within which two ways to compute the same model may disagree.
TIE = 0.02
#: Nats by which one log-probability may differ between two engines with the same weights in float32.
CLOSE = 0.01
CONTEXT_UNKNOWN = 4096


class ModelTokens(Tokenizer, Protocol):
    """A tokenizer that knows its limits."""

    vocab_size: int
    stop_ids: frozenset[int]
    bos_id: int | None


@dataclass(frozen=True, slots=True)
class Prompt:
    """Attributes:
    chat: through the model's chat template. tokens: of the greedy answer, at most.
    """

    text: str
    chat: bool
    tokens: int = GREEDY_TOKENS

    def ids(self, tokenizer: Tokenizer) -> list[int]:
        return tokenizer.encode(tokenizer.chat(self.text) if self.chat else self.text)


#: Prose; a text that repeats itself, with characters of three tokens; an answer that ends by itself.
PROMPTS: dict[str, Prompt] = {
    "sky": Prompt("Explain why the sky is blue.", True),
    "llamas": Prompt("I like llamas 🦙. I like cats 😀. I like llamas 🦙. I like cats 😀. I like", False),
    "turn": Prompt("Say this three times: I like my llama 🦙!", True, 24),
}


@dataclass(frozen=True, slots=True)
class Reference:
    """Greedy decoding by the local target on the same weights.

    Attributes:
        prompt_ids, token_ids: of the prompt, and what follows it.
        second_ids: the second most probable token at each position. first, second: their log-probabilities.
    """

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    second_ids: tuple[int, ...]
    first: tuple[float, ...]
    second: tuple[float, ...]


def reference(target: Target, prompt: Prompt) -> Reference:
    """What plain decoding gives."""
    ids = prompt.ids(target.tokenizer)
    settings = Settings(draft="none", max_tokens=prompt.tokens)
    events = list(autoregressive(target, ids, settings, seed=0))
    tops = [e.top_tokens[:2] for e in events if isinstance(e, VerifyResult)]
    return Reference(
        tuple(ids),
        done(events).token_ids,
        tuple(two[1].token_id for two in tops),
        tuple(round(two[0].logprob, 4) for two in tops),
        tuple(round(two[1].logprob, 4) for two in tops),
    )


class ScriptedDrafter:
    """Knows the greedy text, and is wrong at every fifth token of it; above temperature 0 it doubts every token."""

    max_context: int | None = None

    def __init__(self, known: Reference, stop_ids: frozenset[int]) -> None:
        self.name = "scripted"
        self._known, self._stop_ids = known, stop_ids

    def propose(
        self, context_ids: Sequence[int], k: int, sampling: Sampling, noise: Noise, n: int = 1, explain: Explain = 2
    ) -> Draft:
        """One candidate; none behind the end of the script."""
        at, rng = len(context_ids) - len(self._known.prompt_ids), noise.draft()
        drafted = [self._token(i, sampling, rng) for i in range(at, min(at + k, len(self._known.token_ids)))]
        ends = next((i + 1 for i, d in enumerate(drafted) if d.token_id in self._stop_ids), len(drafted))
        return draft_of(self.name, drafted[:ends])

    def reset(self) -> None:
        """Nothing is kept."""

    def _token(self, at: int, sampling: Sampling, rng: np.random.Generator) -> Drafted:
        right, wrong = self._known.token_ids[at], self._known.second_ids[at]
        if sampling.temperature == 0:
            return Drafted.copy(wrong if at % 5 == 3 else right, 0.0)
        ids = np.array(sorted((right, wrong)), dtype=np.int64)
        q = Row(np.where(ids == right, 0.75, 0.25), ids)
        token_id = int(ids[draw(q.probs, rng)])
        return Drafted(token_id, q, q.prob(token_id), 0.0)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run."""

    way: Way
    temperature: float
    prompt: str
    draft: Literal["ngram", "scripted"]

    @property
    def name(self) -> str:
        return f"{self.way} T={self.temperature:g} {self.prompt} {self.draft}"

    @property
    def settings(self) -> Settings:
        tokens = PROMPTS[self.prompt].tokens if self.temperature == 0 else SAMPLED_TOKENS
        return Settings(draft="none", k=K, temperature=self.temperature, max_tokens=tokens, seed=SEED)


_GREEDY: tuple[tuple[str, Literal["ngram", "scripted"]], ...] = (
    ("sky", "ngram"),
    ("sky", "scripted"),
    ("llamas", "ngram"),
    ("llamas", "scripted"),
    ("turn", "scripted"),
)
_SAMPLED: tuple[tuple[str, Literal["ngram", "scripted"]], ...] = (("sky", "scripted"), ("llamas", "ngram"))


def scenarios(ways: Sequence[Way]) -> Iterator[Scenario]:
    """Every way, greedy and sampled."""
    for way in ways:
        yield from (Scenario(way, 0.0, prompt, draft) for prompt, draft in _GREEDY)
        yield from (Scenario(way, t, prompt, draft) for t in (1.0, 0.7) for prompt, draft in _SAMPLED)


def remote(api: Completions, findings: Findings, tokens: ModelTokens, scenario: Scenario) -> RemoteTarget:
    """The target, forced into the scenario's way."""
    settings = scenario.settings
    limits = Capabilities(
        tokens.vocab_size, findings.max_context or CONTEXT_UNKNOWN, tokens.stop_ids, place="completions"
    )
    return RemoteTarget(
        "openai:real", api, findings, tokens, limits, scenario.way, settings.sampling, settings.acceptance_rule
    )


def run(scenario: Scenario, target: RemoteTarget, known: Reference) -> list[Event]:
    """The whole run; every random number is the seed's."""
    stops = target.capabilities.stop_ids
    drafter: Drafter = ScriptedDrafter(known, stops) if scenario.draft == "scripted" else NgramDrafter(stop_ids=stops)
    return list(speculative(drafter, target, known.prompt_ids, scenario.settings))


def done(events: Sequence[Event]) -> Done:
    """How it ended."""
    last = events[-1]
    assert not isinstance(last, Error), f"{last.kind}: {last.message} {last.remedy}"
    assert isinstance(last, Done)
    return last


def requests_of(events: Sequence[Event]) -> int:
    """How many calls a run made."""
    return sum(e.requests or 0 for e in events if isinstance(e, Metrics))


# What is checked.


def numerical_tie(token_ids: Sequence[int], known: Reference) -> str:
    """ "" where two greedy texts are one; where they part at a near-tie, that it is one, with the gap.

    Raises:
        AssertionError: they part elsewhere.
    """
    at = next((i for i, (one, other) in enumerate(zip(token_ids, known.token_ids, strict=False)) if one != other), None)
    if at is None:
        assert len(token_ids) == len(known.token_ids), f"{len(token_ids)} tokens, not {len(known.token_ids)}"
        return ""
    gap = known.first[at] - known.second[at]
    told = f"token {at}: {token_ids[at]} in place of {known.token_ids[at]}, gap {gap:.4f} nats"
    assert token_ids[at] == known.second_ids[at] and gap <= TIE, f"the greedy texts part at {told}"
    return f"NUMERICAL TIE at {told}"


def check_logprobs(events: Sequence[Event], known: Reference) -> int:
    """Compare what the server says about the greedy text with what the local target computes; how many were compared.

    Raises:
        AssertionError: one is off.
    """
    compared = 0
    for event in events:
        if not isinstance(event, VerifyResult) or event.final_logprob is None or event.index >= len(known.first):
            continue
        if event.final_token_id != known.token_ids[event.index]:
            break
        assert abs(event.final_logprob - known.first[event.index]) < CLOSE, (event.index, event.final_logprob)
        compared += 1
    return compared


def promised(scenario: Scenario, findings: Findings) -> tuple[GuaranteeKind, ...]:
    """What a run may say of itself."""
    if scenario.way == "scoring" and scenario.temperature not in (0.0, 1.0):
        return ("BOUNDED",)
    # As text it may read back as other ids than were drawn; a greedy text of these prompts does not.
    as_text = not findings.ids_in and scenario.temperature > 0
    return ("EXACT", "UNKNOWN") if as_text else ("EXACT",)


def check(scenario: Scenario, events: Sequence[Event], findings: Findings, known: Reference) -> str:
    """The contract, for one run; says where there was a near-tie.

    Raises:
        AssertionError: it is broken.
    """
    ended = done(events)
    assert ended.guarantee.kind in promised(scenario, findings), repr(ended.guarantee)
    assert ended.total_rounds <= ended.total_tokens and requests_of(events) >= 1
    if scenario.temperature > 0:
        assert ended.total_tokens == SAMPLED_TOKENS or ended.finish_reason == "stop_token"
        return ""
    tie = numerical_tie(ended.token_ids, known)
    if not tie:
        compared = check_logprobs(events, known)
        # Rows tell the log-probability of what was kept in every way, where the server gives them.
        assert compared or not findings.top
        assert ended.total_accepted > 0
    return tie
