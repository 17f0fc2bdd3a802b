"""What can be chosen: a list of targets, and a list of drafts for a target. No model library is loaded for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from specviz.core.connection import connection
from specviz.core.errors import ModelError, SettingsError
from specviz.core.names import ANY_COMPLETIONS, NGRAM, NONE, TOY, local_name, lookup_first, model_name, parse_target
from specviz.core.settings import Settings
from specviz.setup.environment import environment
from specviz.store import sources, store
from specviz.store.known import KNOWN, KnownModel


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
    local = (_model_choice(local_name(model.name), model) for model in KNOWN if not model.distilled_for)
    return [*local, *_remote_choices(variables), toy]


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
    family = family_of(parse_target(target).model)
    alone = "" if is_toy else "It has the same vocabulary as the toy target only."
    own = [model for model in KNOWN if model.distilled_for]
    return [
        *(_lookup_first(_distilled_choice(model, target)) for model in own),
        *(_distilled_choice(model, target) for model in own),
        CatalogEntry(
            NGRAM, "n-gram lookup", "Copies what followed last time. Free; helps where text repeats.", True, ""
        ),
        *(_draft_choice(model, is_toy, family) for model in KNOWN if not model.distilled_for),
        CatalogEntry(TOY, "Toy draft", "The toy target with noise.", is_toy, alone),
        CatalogEntry(NONE, "None", "Plain decoding, one token per round.", True, ""),
    ]


def _model_choice(name: str, model: KnownModel) -> CatalogEntry:
    here = store.local_path(model.name) is not None
    reason = "" if here else f"{model.download_bytes / 1e6:,.0f} MB to download"
    return CatalogEntry(name, model.title, model.good_for, here, reason)


def _draft_choice(model: KnownModel, is_toy: bool, family: str | None) -> CatalogEntry:
    choice = _model_choice(model_name(model.name), model)
    if is_toy or (family is not None and model.vocabulary != family):
        what = "the toy's" if is_toy else f"the target's ({model.vocabulary}, not {family})"
        return CatalogEntry(choice.name, choice.title, choice.detail, False, f"Its vocabulary is not {what}.")
    return choice


def _distilled_choice(model: KnownModel, target: str) -> CatalogEntry:
    choice = _model_choice(model_name(model.name), model)
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


def family_of(model: str) -> str | None:
    """The vocabulary of a known model; None for other models."""
    known = _known_model(model)
    return known.vocabulary if known else None
