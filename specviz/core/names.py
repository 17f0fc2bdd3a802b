"""The names of targets and drafts, as users type them and settings store them. They are parsed only in this module.

    targets   local:NAME  openai:MODEL  verifier:URL  toy
    drafts    none  ngram  toy  model:NAME  ngram+model:NAME  ngram+toy

NAME is a known model, a Hugging Face repository, a GGUF model of one (USER/REPO:QUANT), a model of Ollama's
(ollama/NAME:TAG), a folder or a .gguf file; MODEL is the server's name for a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Where a target is. here: in this process. verifier: specviz's own server, which also has full distributions.
#: completions: behind a completions API.
Place = Literal["here", "verifier", "completions"]

AUTO = "auto"
NONE, NGRAM, TOY = "none", "ngram", "toy"
#: A completions target without a model name.
ANY_COMPLETIONS = "openai:"

TargetKind = Literal["local", "openai", "verifier", "toy", "unknown"]
DraftKind = Literal["none", "ngram", "toy", "model", "unknown"]

_PLACES: dict[TargetKind, Place] = {"openai": "completions", "verifier": "verifier"}
_LOOKUP_FIRST = "ngram+"


@dataclass(frozen=True, slots=True)
class TargetName:
    """The parsed name of a target.

    Attributes:
        kind: "unknown" for a name that cannot be parsed.
        model: the part after the colon; empty for the toy.
    """

    kind: TargetKind
    model: str = ""

    @property
    def place(self) -> Place:
        """Where a target of this name is. Use this to decide whether a target is remote, never the text of the name."""
        return _PLACES.get(self.kind, "here")

    def __str__(self) -> str:
        return self.kind if self.kind == TOY else f"{self.kind}:{self.model}"


@dataclass(frozen=True, slots=True)
class DraftName:
    """The parsed name of a draft.

    Attributes:
        kind: the drafter, apart from a lookup in front of it; "unknown" for a name that cannot be parsed.
        model: the part after `model:`; empty for other drafters.
        lookup_first: n-gram lookup copies where it finds a match, and the drafter drafts where it does not.
    """

    kind: DraftKind
    model: str = ""
    lookup_first: bool = False

    @property
    def alone(self) -> DraftName:
        """The same drafter without a lookup in front of it."""
        return DraftName(self.kind, self.model)

    def __str__(self) -> str:
        name = f"model:{self.model}" if self.kind == "model" else self.kind
        return _LOOKUP_FIRST + name if self.lookup_first else name


def parse_target(name: str) -> TargetName:
    """Parse the name of a target."""
    kind, _, model = name.strip().partition(":")
    if name.strip() == TOY:
        return TargetName("toy")
    if kind in ("local", "verifier") and model:
        return TargetName("local" if kind == "local" else "verifier", model)
    if kind == "openai":
        return TargetName("openai", model)
    return TargetName("unknown", name)


def parse_draft(name: str) -> DraftName:
    """Parse the name of a draft."""
    behind = name.strip().removeprefix(_LOOKUP_FIRST)
    lookup_first = behind != name.strip()
    kind, _, model = behind.partition(":")
    if behind == TOY:
        return DraftName("toy", lookup_first=lookup_first)
    if behind in (NONE, NGRAM) and not lookup_first:
        return DraftName("none" if behind == NONE else "ngram")
    if kind == "model" and model:
        return DraftName("model", model, lookup_first)
    return DraftName("unknown", behind, lookup_first)


#: Target → its default draft. Every other target gets n-gram lookup, which works with any target.
_DEFAULT_DRAFTS = {"local:smollm2-135m": "ngram+model:smollm2-draft"}
#: Draft models that end early by default. 0.4 was the best value from 0 to 0.5 in a simulation on held-out answers;
#: `python -m tests.benchmarks.draft --min-confidence 0 0.4` measures it.
_DEFAULT_MIN_CONFIDENCE = {"model:smollm2-draft": 0.4}


def default_draft(target: str) -> str:
    """The draft for a target when the settings choose none."""
    return _DEFAULT_DRAFTS.get(target, NGRAM)


def default_min_confidence(draft: str) -> float:
    """The `min_confidence` of a draft when the settings choose none."""
    return _DEFAULT_MIN_CONFIDENCE.get(str(parse_draft(draft).alone), 0.0)


def draft_name(text: str) -> str:
    """A draft's name as settings store it: `model:` is added to a bare model name, as DRAFT_MODEL may hold."""
    parsed = parse_draft(text)
    bare = parsed.model if parsed.kind == "unknown" else ""
    if bare and _is_bare(bare) and "+" not in bare and bare not in (AUTO, NONE, NGRAM):
        return model_name(bare, parsed.lookup_first)
    return text.strip()


def target_name(text: str) -> str:
    """A target's name as settings store it: `local:` is added to a bare model name."""
    text = text.strip()
    return text if text == TOY or not _is_bare(text) else f"local:{text}"


def _is_bare(text: str) -> bool:
    """Whether a name has no kind in front of it. The colon of USER/REPO:QUANT comes behind a slash."""
    kind, colon, _ = text.partition(":")
    return not colon or "/" in kind


def local_name(model: str) -> str:
    """The target name of a model in this process."""
    return f"local:{model}"


def model_name(model: str, lookup_first: bool = False) -> str:
    """The draft name of a model in this process."""
    return str(DraftName("model", model, lookup_first))


def lookup_first(draft: str) -> str:
    """The draft that puts n-gram lookup in front of another one."""
    return _LOOKUP_FIRST + draft


def completions_name(model: str) -> str:
    """The target name of a model behind a completions API."""
    return f"{ANY_COMPLETIONS}{model}"
