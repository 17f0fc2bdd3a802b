"""Settings of a run: frozen, validated, merged from several sources.

The command line overrides the environment, which overrides `.env`, which overrides the defaults. The caller reads the
environment and the `.env` file (`specviz.setup.environment`); this module takes mappings. Secrets are never settings: a
key stays in the environment and is read when it is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any, Literal, cast, get_args

from msgspec import Meta

from specviz.core.address import without_secrets
from specviz.core.codec import Count, Share
from specviz.core.errors import SettingsError
from specviz.core.names import (
    AUTO,
    completions_name,
    default_draft,
    default_min_confidence,
    draft_name,
    parse_target,
)

RuleName = Literal["probabilistic", "deterministic", "greedy", "threshold"]
RULES: tuple[RuleName, ...] = get_args(RuleName)

K_MAX = 16
TEMPERATURE_MAX = 2.0
#: Above the context of every model in use; the context ends a run.
MAX_TOKENS_MAX = 1_048_576
RTT_MAX_MS = 2000.0
JITTER_MAX_MS = 1000.0

#: How a completions target verifies; "auto" selects the best exact way for the settings.
Verification = Literal["auto", "scoring", "prefixes", "generating"]
VERIFICATIONS: tuple[Verification, ...] = get_args(Verification)

#: What runs a model in this process; "auto" takes the fastest that can.
EngineWish = Literal["auto", "mlx", "llama"]
ENGINES: tuple[EngineWish, ...] = get_args(EngineWish)


@dataclass(frozen=True, slots=True)
class Sampling:
    """From logits to a distribution: temperature, then top-k (0: off), then top-p (1.0: off)."""

    temperature: Annotated[float, Meta(ge=0.0, le=TEMPERATURE_MAX)] = 0.0
    top_k: Count = 0
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] = 1.0


@dataclass(frozen=True, slots=True)
class Rule:
    """The acceptance rule of a run; `tau` is the threshold of rule `threshold`, unused by the others."""

    name: RuleName = "probabilistic"
    tau: Share = 0.3


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a run; none of them is secret.

    Attributes:
        target, draft: names for the catalog, such as `local:smollm2-135m`; `ngram`, `model:NAME`, `ngram+model:NAME`,
            `none`, `toy`. A draft `auto` is replaced by the target's default when settings are created.
        k: tokens drafted per round.
        temperature, top_k, top_p: sampling, the same for draft and target.
        max_tokens: output budget, never exceeded; the context may end a run before.
        rule, tau: acceptance rule, and the threshold of rule `threshold`.
        seed: of every random draw; 0 is a valid seed.
        system: system prompt; empty for the chat template's own default.
        raw: use the prompt without the chat template.
        stop: strings that end the output.
        ngram_max, ngram_min: longest and shortest match of the `ngram` drafter; in front of a model (`ngram+…`) a match
            of a single token is never copied.
        min_confidence: a draft model ends its draft before a token whose estimated probability of being reached and
            kept is below this; 0 always drafts K tokens. None is replaced by the draft's default, which is 0 except for
            the shipped distilled draft.
        remote_model: the model of a completions target: `openai` alone becomes `openai:` with this name.
        base_url: of a completions target's API, without credentials and query, which are not settings. Empty: the one
            of the environment.
        verification: how a completions target verifies a round.
        tokenizer: source of a completions target's tokenizer: a known model, a folder, or a Hugging Face repository.
            Empty: see `specviz.setup.remote_tokenizer`.
        engine: what runs models in this process.
        context: tokens of prompt and output that an engine makes room for; 0 for its default. Only `llama` uses it.
        simulated_rtt_ms: round trip of a network that is simulated in front of an in-process target; 0 for none.
        simulated_jitter_ms: maximum deviation of a single round trip, in both directions; at most `simulated_rtt_ms`,
            so that no round trip is negative and their mean is `simulated_rtt_ms`.
    """

    target: str = "local:smollm2-135m"
    draft: str = AUTO
    k: int = 4
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    max_tokens: int = 128
    rule: RuleName = "probabilistic"
    tau: float = 0.3
    seed: int = 0
    system: str = ""
    raw: bool = False
    stop: tuple[str, ...] = field(default=())
    ngram_max: int = 4
    ngram_min: int = 1
    min_confidence: float | None = None
    remote_model: str = ""
    base_url: str = ""
    verification: Verification = "auto"
    tokenizer: str = ""
    engine: EngineWish = "auto"
    context: int = 0
    simulated_rtt_ms: float = 0.0
    simulated_jitter_ms: float = 0.0

    def __post_init__(self) -> None:
        """Fill in the defaults of `draft` and `min_confidence`, then check every field.

        Raises:
            SettingsError: with the rule, the value and the remedy.
        """
        target = parse_target(self.target)
        if target.kind == "openai" and not target.model and self.remote_model:
            object.__setattr__(self, "target", completions_name(self.remote_model))
        object.__setattr__(self, "base_url", without_secrets(self.base_url))
        if self.verification not in VERIFICATIONS:
            raise SettingsError(
                f"Unknown way to verify {self.verification!r}.", f"Known ways: {', '.join(VERIFICATIONS)}."
            )
        if self.engine not in ENGINES:
            raise SettingsError(f"Unknown engine {self.engine!r}.", f"Known engines: {', '.join(ENGINES)}.")
        _whole("the context", self.context, 0, MAX_TOKENS_MAX)
        if self.draft == AUTO:
            object.__setattr__(self, "draft", default_draft(self.target))
        if self.min_confidence is None:
            object.__setattr__(self, "min_confidence", default_min_confidence(self.draft))
        _whole("K", self.k, 1, K_MAX)
        _number("temperature", self.temperature, 0.0, TEMPERATURE_MAX)
        _whole("top-k", self.top_k, 0, None)
        if not (_finite(self.top_p) and 0 < self.top_p <= 1):
            raise SettingsError(f"top-p must be above 0 and at most 1, not {self.top_p!r}.", "1 switches it off.")
        _whole("max tokens", self.max_tokens, 1, MAX_TOKENS_MAX)
        if self.rule not in RULES:
            raise SettingsError(f"Unknown rule {self.rule!r}.", f"Known rules: {', '.join(RULES)}.")
        if not (_finite(self.tau) and 0 < self.tau <= 1):
            raise SettingsError(f"tau must be above 0 and at most 1, not {self.tau!r}.", "Try 0.3.")
        _whole("seed", self.seed, 0, 2**63 - 1)
        _whole("the shortest n-gram", self.ngram_min, 1, None)
        _whole("the longest n-gram", self.ngram_max, self.ngram_min, 32)
        if not (_finite(self.min_confidence) and 0 <= cast(float, self.min_confidence) < 1):
            raise SettingsError(
                f"min confidence must be at least 0 and below 1, not {self.min_confidence!r}.",
                "0 always drafts K tokens; try 0.3.",
            )
        if not self.target.strip():
            raise SettingsError("The target has no name.", "Try local:smollm2-135m.")
        if not self.draft.strip():
            raise SettingsError("The draft has no name.", "Try ngram, or none for plain decoding.")
        if any(not s for s in self.stop):
            raise SettingsError("A stop string is empty.", "Leave it out, or give at least one character.")
        for what, text in (("system prompt", self.system), *(("stop string", s) for s in self.stop)):
            if not is_text(text):
                raise SettingsError(f"The {what} is not valid text: {text!r}.", "Give it as UTF-8.")
        if self.raw and self.system:
            raise SettingsError(
                "A system prompt is part of the chat template, and a raw prompt is sent without one.",
                "Leave one of the two out.",
            )
        self._check_network()

    def _check_network(self) -> None:
        _number("the simulated RTT in ms", self.simulated_rtt_ms, 0.0, RTT_MAX_MS)
        _number("the simulated jitter in ms", self.simulated_jitter_ms, 0.0, JITTER_MAX_MS)
        if self.simulated_jitter_ms > self.simulated_rtt_ms:
            raise SettingsError(
                f"The simulated jitter must be at most the simulated RTT, {self.simulated_rtt_ms:g} ms, not "
                f"{self.simulated_jitter_ms:g} ms: no round trip can be shorter than 0 ms.",
                "Lower the jitter, or raise the RTT.",
            )
        if self.simulated_rtt_ms and parse_target(self.target).place != "here":
            raise SettingsError(
                f"A network is simulated only in front of a target in this process: {self.target} has a real one.",
                "Leave the simulated RTT and jitter at 0, or use a local: target or toy.",
            )

    @property
    def sampling(self) -> Sampling:
        """The sampling settings."""
        return Sampling(self.temperature, self.top_k, self.top_p)

    @property
    def acceptance_rule(self) -> Rule:
        """The rule with its threshold."""
        return Rule(self.rule, self.tau)

    def without_network(self) -> Settings:
        """The same settings without a simulated network."""
        return replace(self, simulated_rtt_ms=0.0, simulated_jitter_ms=0.0)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict, field by field."""
        return asdict(self) | {"stop": list(self.stop)}

    @classmethod
    def resolve(cls, *sources: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Settings:
        """Merge sources. For each field the first source that has it wins, then the environment, then the default.

        Args:
            sources: field name → value; None means "not given". Values have their final types.
            environment: variable name → text, see `ENVIRONMENT`, with `.env` already merged. Empty text means "not
                given".

        Raises:
            SettingsError: a value breaks its rule; for the environment, the message names the variable.
        """
        chosen: dict[str, Any] = {}
        for source in sources:
            for name, value in source.items():
                if value is not None:
                    chosen.setdefault(name, value)
        for variable, name in ENVIRONMENT.items():
            text = (environment or {}).get(variable, "").strip()
            if text and name not in chosen:
                chosen[name] = _parse(name, text, variable)
        unknown = set(chosen) - {f.name for f in fields(cls)}
        if unknown:
            raise SettingsError(f"Unknown setting {sorted(unknown)[0]!r}.")
        return cls(**chosen)


#: Environment variable → field. The first six names are those of SpeculatoViz and keep their meaning;
#: CEREBRAS_API_KEY is a secret and therefore not listed.
ENVIRONMENT: dict[str, str] = {
    "TARGET_MODEL": "remote_model",
    "CEREBRAS_TARGET_MODEL": "remote_model",
    "DRAFT_MODEL": "draft",
    "SPECULATION_K": "k",
    "TEMPERATURE": "temperature",
    "MAX_TOKENS": "max_tokens",
    "TARGET_BASE_URL": "base_url",
    "TARGET_TOKENIZER": "tokenizer",
    "SPECVIZ_TARGET": "target",
    "SPECVIZ_ENGINE": "engine",
    "SPECVIZ_CONTEXT": "context",
    "SPECVIZ_VERIFICATION": "verification",
    "SPECVIZ_TOP_K": "top_k",
    "SPECVIZ_TOP_P": "top_p",
    "SPECVIZ_RULE": "rule",
    "SPECVIZ_TAU": "tau",
    "SPECVIZ_SEED": "seed",
    "SPECVIZ_SYSTEM": "system",
    "SPECVIZ_MIN_CONFIDENCE": "min_confidence",
    "SPECVIZ_SIMULATED_RTT_MS": "simulated_rtt_ms",
    "SPECVIZ_SIMULATED_JITTER_MS": "simulated_jitter_ms",
}

#: Variables whose values must never appear in anything that specviz writes.
SECRETS: tuple[str, ...] = ("TARGET_API_KEY", "CEREBRAS_API_KEY")

_WHOLE = {"k", "top_k", "max_tokens", "seed", "context"}
_REAL = {"temperature", "top_p", "tau", "min_confidence", "simulated_rtt_ms", "simulated_jitter_ms"}


def _parse(name: str, text: str, variable: str) -> Any:
    try:
        if name in _WHOLE:
            return int(text)
        if name in _REAL:
            return float(text)
    except ValueError:
        kind = "a whole number" if name in _WHOLE else "a number"
        raise SettingsError(
            f"{variable} must be {kind}, not {text!r}.", "Change it in the environment or .env."
        ) from None
    if name == "draft":
        return draft_name(text)
    return text


def is_text(text: str) -> bool:
    """Whether a string can be written as UTF-8. Python decodes invalid bytes of the command line as surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(what: str, value: object, low: float, high: float) -> None:
    if not (_finite(value) and low <= cast(float, value) <= high):
        raise SettingsError(f"{what} must be a number from {low:g} to {high:g}, not {value!r}.")


def _whole(what: str, value: object, low: int, high: int | None) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or cast(int, value) < low or (high is not None and cast(int, value) > high):
        span = f"at least {low}" if high is None else f"from {low} to {high}"
        raise SettingsError(f"{what} must be a whole number {span}, not {value!r}.")
