"""Settings of a run: frozen, validated, with one order of sources.

Command line over environment over `.env` over defaults. Reading the environment and the `.env` file is the caller's
business (`specviz.setup.environment`); this module takes mappings. Secrets are never settings: a key lives in the
environment and is read where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any, Literal, cast, get_args
from urllib.parse import urlsplit, urlunsplit

from msgspec import Meta

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
MAX_TOKENS_MAX = 1024
RTT_MAX_MS = 2000.0
JITTER_MAX_MS = 1000.0

#: How a remote target verifies; "auto" takes the best exact way for the settings.
Verification = Literal["auto", "scoring", "prefixes", "generating"]
VERIFICATIONS: tuple[Verification, ...] = get_args(Verification)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a row of logits becomes a distribution: temperature, then top-k (0: off), then top-p (1.0: off)."""

    temperature: Annotated[float, Meta(ge=0.0, le=TEMPERATURE_MAX)] = 0.0
    top_k: Count = 0
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] = 1.0


@dataclass(frozen=True, slots=True)
class Rule:
    """The acceptance rule in force; `tau` is the bar of `threshold` and unused by the others."""

    name: RuleName = "probabilistic"
    tau: Share = 0.3


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that shapes a run, and nothing secret.

    Attributes:
        target, draft: names for the catalog, such as `local:smollm2-135m`; `ngram`, `model:NAME`, `ngram+model:NAME`,
            `none`, `toy`. A draft of `auto` becomes the target's default at once: no settings hold that word.
        k: tokens drafted per round.
        temperature, top_k, top_p: sampling, the same for draft and target.
        max_tokens: output budget, met exactly.
        rule, tau: acceptance rule, and the bar of `threshold`.
        seed: of every random draw; 0 is a seed like any other.
        system: system prompt; empty for the chat template's own default.
        raw: send the prompt as it is, without the chat template.
        stop: strings that end the output.
        ngram_max, ngram_min: longest and shortest match of the `ngram` drafter; in front of a model (`ngram+…`) a match
            of a single token is never copied.
        min_confidence: a draft model ends its draft before a token that, by its own estimate, is less likely than this
            to be reached and kept; 0 always drafts K tokens. None becomes the draft's default at once, which is 0 for
            all but distilled ones.
        remote_model: the model behind a remote target: `openai` alone becomes `openai:` with this name.
        base_url: of a remote target's API, without credentials and query, which are no settings. Empty: what the
            environment names.
        verification: how a remote target verifies a round.
        tokenizer: where a remote target's tokenizer comes from: a known model, a folder, or a Hugging Face repository.
            Empty: see `specviz.setup.remote_tokenizer`.
        simulated_rtt_ms: round trip of a network that is simulated in front of a target in this process; 0 is none.
        simulated_jitter_ms: how far a single round trip may be from that, either way; at most all of it, so that none
            is below 0 and the mean is the round trip that was asked for.
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
    simulated_rtt_ms: float = 0.0
    simulated_jitter_ms: float = 0.0

    def __post_init__(self) -> None:
        """Put defaults where the draft and its early end are left open, then check every field.

        Raises:
            SettingsError: naming the rule, the value and the remedy.
        """
        target = parse_target(self.target)
        if target.kind == "openai" and not target.model and self.remote_model:
            object.__setattr__(self, "target", completions_name(self.remote_model))
        object.__setattr__(self, "base_url", without_secrets(self.base_url))
        if self.verification not in VERIFICATIONS:
            raise SettingsError(
                f"Unknown way to verify {self.verification!r}.", f"Known ways: {', '.join(VERIFICATIONS)}."
            )
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
                f"{self.simulated_jitter_ms:g} ms: no round trip takes less than no time.",
                "Lower the jitter, or raise the RTT.",
            )
        if self.simulated_rtt_ms and parse_target(self.target).place != "here":
            raise SettingsError(
                f"A network is simulated in front of a target in this process only: {self.target} has a real one.",
                "Leave the simulated RTT and jitter at 0, or take a local: target or toy.",
            )

    @property
    def sampling(self) -> Sampling:
        """What turns logits into probabilities."""
        return Sampling(self.temperature, self.top_k, self.top_p)

    @property
    def acceptance_rule(self) -> Rule:
        """The rule with its bar."""
        return Rule(self.rule, self.tau)

    def without_network(self) -> Settings:
        """The same without a simulated network."""
        return replace(self, simulated_rtt_ms=0.0, simulated_jitter_ms=0.0)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict, field by field."""
        return asdict(self) | {"stop": list(self.stop)}

    @classmethod
    def resolve(cls, *sources: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Settings:
        """Merge sources, the first that has a field wins; then the environment; then defaults.

        Args:
            sources: field name → value, None meaning "not given". Values are typed already.
            environment: variable name → text, see `ENVIRONMENT`; `.env` already merged below it. Empty text counts as
                not given.

        Raises:
            SettingsError: a value breaks its rule; a text from the environment is named with its variable.
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
#: CEREBRAS_API_KEY is a secret, hence not here.
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

#: Variables whose values must appear in nothing that specviz writes.
SECRETS: tuple[str, ...] = ("TARGET_API_KEY", "CEREBRAS_API_KEY")

_WHOLE = {"k", "top_k", "max_tokens", "seed"}
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


def without_secrets(url: str) -> str:
    """A base URL without what may be secret in it: user, password, query and fragment; no slash at its end.

    Raises:
        SettingsError: it is no http or https URL.
    """
    if not url.strip():
        return ""
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        parts, port = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        # The text itself stays out of the message: a URL that was mistyped may hold a key all the same.
        raise SettingsError(
            "The base URL is no http:// or https:// address.",
            "Try http://127.0.0.1:8000/v1, or https://api.cerebras.ai/v1.",
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return urlunsplit((parts.scheme, host + port, parts.path.rstrip("/"), "", ""))


def is_text(text: str) -> bool:
    """Whether a string can be written as UTF-8: the command line hands over bytes that are none as surrogates."""
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
