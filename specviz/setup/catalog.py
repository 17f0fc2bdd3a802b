"""What can be chosen: a list of targets, and a list of drafts for a target. No model is loaded for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from specviz.core.connection import connection
from specviz.core.errors import ModelError, SettingsError, UnsupportedModelError
from specviz.core.names import ANY_COMPLETIONS, NGRAM, NONE, TOY, local_name, lookup_first, model_name, parse_target
from specviz.core.settings import EngineWish, Settings
from specviz.setup.environment import environment
from specviz.setup.weights import engine_wish, weights_of
from specviz.store import sources
from specviz.store.gguf.file import gguf_here
from specviz.store.gguf.found import FoundModel, found
from specviz.store.gguf.summary import GgufSummary, summary_of
from specviz.store.known import KNOWN, KnownModel

#: Vocabulary of a known model → the name that GGUF has for its rule of splitting text before the merges. Models of
#: other rules have other tokens; those of the same rule mostly have the same.
_RULES = {"smollm2": "smollm", "llama3": "llama-bpe", "qwen2.5": "qwen2"}


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One entry of a list of targets or drafts.

    Attributes:
        name: the name in the settings. title, detail: text for the user.
        available: whether it can be used without a download.
        reason: why it is not available, or what it costs to use it; empty otherwise.
    """

    name: str
    title: str
    detail: str
    available: bool
    reason: str


def targets(variables: Mapping[str, str] | None = None) -> list[CatalogEntry]:
    """Every target that can be chosen by name; contacts no server.

    Args:
        variables: the environment, which may name a server; None reads the environment.
    """
    toy = CatalogEntry(TOY, "Toy", "A table of 294 tokens: instant, no download, made-up sentences.", True, "")
    wish = _wish(variables)
    local = (_model_choice(local_name(model.name), model, wish) for model in KNOWN if not model.distilled_for)
    others = (_found_choice(local_name(model.name), model) for model in _found())
    return [*local, *others, *_remote_choices(variables), toy]


def _remote_choices(variables: Mapping[str, str] | None) -> list[CatalogEntry]:
    """The server that the environment names, if it names one."""
    detail = "A server with a completions API; its abilities are tested when it is used."
    try:
        variables = environment() if variables is None else variables
        if not any(variables.get(name, "").strip() for name in ("TARGET_BASE_URL", "CEREBRAS_API_KEY")):
            return []
        named = Settings.resolve({"target": "openai"}, environment=variables)
        host = connection(named, variables).shown.partition("://")[2].partition("/")[0]
    except SettingsError as exc:
        return [CatalogEntry(ANY_COMPLETIONS, "Remote target", detail, False, str(exc))]
    if not (model := parse_target(named.target).model):
        return [CatalogEntry(ANY_COMPLETIONS, f"A model at {host}", detail, False, "Set TARGET_MODEL to its name.")]
    return [CatalogEntry(named.target, f"{model} at {host}", detail, True, "")]


def drafts(target: str) -> list[CatalogEntry]:
    """Every drafter, with a reason if it cannot be used with this target."""
    is_toy = target == TOY
    family, rule = family_of(parse_target(target).model), _rule_of(parse_target(target).model)
    alone = "" if is_toy else "It has the same vocabulary as the toy target only."
    own, wish = [model for model in KNOWN if model.distilled_for], _wish(None)
    return [
        *(_lookup_first(_distilled_choice(model, target, wish)) for model in own),
        *(_distilled_choice(model, target, wish) for model in own),
        CatalogEntry(
            NGRAM, "n-gram lookup", "Copies what followed last time. Free; helps where text repeats.", True, ""
        ),
        *(_draft_choice(model, is_toy, family, rule, wish) for model in KNOWN if not model.distilled_for),
        *(_found_draft(model, is_toy, rule) for model in _found()),
        CatalogEntry(TOY, "Toy draft", "The toy target with noise.", is_toy, alone),
        CatalogEntry(NONE, "None", "Plain decoding, one token per round.", True, ""),
    ]


def _model_choice(name: str, model: KnownModel, wish: EngineWish) -> CatalogEntry:
    try:
        weights = weights_of(model.name, wish)
    except UnsupportedModelError as exc:
        return CatalogEntry(name, model.title, model.good_for, False, exc.message)
    here = weights.path is not None
    reason = "" if here else f"{weights.download_bytes / 1e6:,.0f} MB to download"
    return CatalogEntry(name, model.title, model.good_for, here, reason)


def _draft_choice(model: KnownModel, is_toy: bool, family: str | None, rule: str, wish: EngineWish) -> CatalogEntry:
    choice = _model_choice(model_name(model.name), model, wish)
    if family is None:
        return _compared(choice, _RULES[model.vocabulary], rule, is_toy)
    return _compared(choice, model.vocabulary, family, is_toy)


def _found_draft(model: FoundModel, is_toy: bool, rule: str) -> CatalogEntry:
    return _compared(_found_choice(model_name(model.name), model), _split_by(model.summary), rule, is_toy)


def _compared(choice: CatalogEntry, ours: str, theirs: str, is_toy: bool) -> CatalogEntry:
    """A draft; not available where its tokens are not the target's. Both are empty where they are not known."""
    if is_toy:
        return replace(choice, available=False, reason="Its vocabulary is not the toy's.")
    if ours and theirs and ours != theirs:
        reason = f"Its vocabulary is not the target's ({ours}, not {theirs})."
        return replace(choice, available=False, reason=reason)
    return choice


def _wish(variables: Mapping[str, str] | None) -> EngineWish:
    try:
        return engine_wish(environment() if variables is None else variables)
    except SettingsError:  # said where the settings are read
        return "auto"


def _found() -> list[FoundModel]:
    """The models of other programs, without those that have a short name."""
    named = {known.gguf.lower() for known in KNOWN}
    return [model for model in found() if model.name.lower() not in named]


def _found_choice(name: str, model: FoundModel) -> CatalogEntry:
    return CatalogEntry(name, model.name, model.about, True, "")


def _distilled_choice(model: KnownModel, target: str, wish: EngineWish) -> CatalogEntry:
    choice = _model_choice(model_name(model.name), model, wish)
    reason = "" if choice.available else "This installation of specviz lacks its weights."
    known = _known(target)
    title = next(k.title for k in KNOWN if k.name == model.distilled_for)
    if known is None and parse_target(target).place != "here":
        # The model behind another name is unknown until the server is probed.
        return choice if reason else replace(choice, reason=f"For a server that runs {title}.")
    if known is None or known.name != model.distilled_for:
        reason = f"It was distilled for {title} only."
    return replace(choice, available=not reason, reason=reason)


def _lookup_first(choice: CatalogEntry) -> CatalogEntry:
    detail = f"Copies where the text repeats itself, and lets the model draft where it does not. {choice.detail}"
    title = f"n-gram lookup + {choice.title.removesuffix(', distilled')}"
    return replace(choice, name=lookup_first(choice.name), title=title, detail=detail)


def _known(target: str) -> KnownModel | None:
    """The known model of a target's name; None for other models and for unknown names."""
    return _known_model(parse_target(target).model)


def _known_model(model: str) -> KnownModel | None:
    try:
        return sources.resolve(model).known if model else None
    except ModelError:
        return None  # a list raises no error: `validation.check` does, when the name is used


def _rule_of(model: str) -> str:
    """How a target in this process splits text before its merges, by GGUF's name of it; empty where it is not known."""
    try:
        source = sources.resolve(model)
        if source.known:
            return _RULES[source.known.vocabulary]
        path = gguf_here(source) if source.is_gguf else None
    except (ModelError, OSError):
        return ""
    return _split_by(summary_of(path)) if path else ""


def _split_by(summary: GgufSummary | None) -> str:
    return summary.vocabulary[1] if summary and summary.vocabulary else ""


def family_of(model: str) -> str | None:
    """The vocabulary of a known model; None for other models."""
    known = _known_model(model)
    return known.vocabulary if known else None
