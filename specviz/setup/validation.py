"""Refuses settings whose names are unknown, or whose draft and target cannot be a pair, before any work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from specviz.core.errors import PairingError, UnknownModelError, UnsupportedModelError
from specviz.core.names import TOY, TargetName, parse_draft, parse_target
from specviz.core.settings import Settings
from specviz.engines.distilled import check_target, is_distilled, read_description
from specviz.engines.toy import ToyTokenizer
from specviz.setup.catalog import drafts, family_of, targets
from specviz.setup.completions import check as check_remote
from specviz.setup.environment import environment
from specviz.store import sources, store


def check(settings: Settings, variables: Mapping[str, str] | None = None) -> None:
    """Refuse unknown names and pairs that cannot match, before any work.

    Args:
        variables: the environment, which may name a server; None reads the environment.

    Raises:
        SettingsError: a completions target has no address.
        UnknownModelError: no such drafter, target or model.
        UnsupportedModelError: a folder or file on this machine that cannot be used; a distilled draft as target.
        PairingError: the toy with another model; two families; a draft that was distilled for another target.
    """
    target, draft = parse_target(settings.target), parse_draft(settings.draft)
    _check_target(target, settings, environment() if variables is None else variables)
    source = store.inspect(draft.model) if draft.kind == "model" else None
    if draft.kind == "unknown":
        known = ", ".join(c.name for c in drafts(settings.target))
        raise UnknownModelError(
            f"Unknown draft {settings.draft!r}.",
            f"Known: {known}; or model: with a Hugging Face repository, a GGUF model of one (org/name:Q4_K_M), a "
            "folder or a .gguf file; ngram+ in front of any of these puts n-gram lookup first.",
        )
    if draft.kind in ("none", "ngram"):
        return
    named = str(draft.alone)
    # The target's tokenizer follows from its name, or for a completions target from the settings.
    named_tokenizer = settings.tokenizer if target.place != "here" else ""
    toy_tokens = named_tokenizer == TOY if named_tokenizer else target.kind == "toy"
    if source is not None and (folder := _distilled_folder(source)):
        if toy_tokens:
            check_target(named, read_description(folder), ToyTokenizer().vocabulary)
    elif toy_tokens != (draft.kind == "toy"):
        raise PairingError(
            f"Draft {named} and target {settings.target} have different vocabularies: the toy pair has its own.",
            "Use toy with toy, or n-gram lookup, which fits every target.",
        )
    ours, theirs = family_of(draft.model), family_of(named_tokenizer or target.model)
    if ours and theirs and ours != theirs:
        raise PairingError(
            f"Draft {named} and target {settings.target} have different vocabularies: {ours} and {theirs}.",
            "Use a draft of the target's own family, or n-gram lookup, which fits every target.",
        )


def _check_target(target: TargetName, settings: Settings, variables: Mapping[str, str]) -> None:
    if target.kind == "local":
        _refuse_as_target(sources.resolve(target.model))
        store.inspect(target.model)
    elif target.place == "completions":
        check_remote(settings, variables)
        if settings.tokenizer not in ("", TOY):
            sources.resolve(settings.tokenizer)
    elif target.kind != "toy":
        known = ", ".join(c.name for c in targets({}))
        raise UnknownModelError(
            f"Unknown target {settings.target!r}.",
            f"Known: {known}; or local: with a Hugging Face repository, a GGUF model of one (org/name:Q4_K_M), a "
            "folder or a .gguf file; or openai: with the name of a model that a server has.",
        )


def _distilled_folder(source: sources.ModelSource) -> Path | None:
    """The folder of a distilled draft; None for other models, and for a model that is not downloaded yet."""
    folder = Path(source.location)
    return folder if source.kind in ("folder", "package") and is_distilled(folder) else None


def _refuse_as_target(source: sources.ModelSource) -> None:
    if source.kind == "package" or _distilled_folder(source):
        raise UnsupportedModelError(
            f"{source.name} is a distilled draft: it proposes tokens for the target that it was trained for, and "
            "cannot be a target.",
            f"Use it as the draft, model:{source.name}, of its own target.",
        )
