"""Names → drafters and targets. Only `setup` imports `drafters` and `targets`.

A new drafter is one file in `drafters/` and one line in `Builder._drafter`; the same for a target. Heavy modules are
imported only when needed: the lists below load no model library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from specviz.core.connection import Secret, connection
from specviz.core.errors import ModelError, PairingError, SettingsError, UnknownModelError, UnsupportedModelError
from specviz.core.names import (
    ANY_COMPLETIONS,
    NGRAM,
    NONE,
    TOY,
    DraftName,
    TargetName,
    local_name,
    lookup_first,
    model_name,
    parse_draft,
    parse_target,
)
from specviz.core.pair import Pair
from specviz.core.ports import Drafter, Model, Target
from specviz.core.settings import Settings
from specviz.core.vocabulary import Vocabulary
from specviz.core.wait import Wait
from specviz.engines.distilled import check_target, is_distilled, read_description
from specviz.engines.toy import DRAFT_NOISE, ToyModel, ToyTokenizer
from specviz.setup.completions import RemoteBuilder
from specviz.setup.completions import check as check_remote
from specviz.setup.environment import environment
from specviz.setup.remote_tokenizer import RemoteTokenizer
from specviz.store import sources, store, workspace
from specviz.store.known import KNOWN, KnownModel

if TYPE_CHECKING:
    from specviz.drafters.model import ModelDrafter
    from specviz.engines.mlx.distilled_model import DistilledModel
    from specviz.engines.mlx.language_model import LanguageModel
    from specviz.targets.completions.values import Findings


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
    family = _family(parse_target(target).model)
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
        return None  # a list raises no error: `check` does, when the name is used


def _family(model: str) -> str | None:
    """The vocabulary of a known model; None for other models."""
    known = _known_model(model)
    return known.vocabulary if known else None


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
            f"Known: {known}; or model: with a Hugging Face repository, a folder or a .gguf file; ngram+ in front of "
            "any of these puts n-gram lookup first.",
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
    ours, theirs = _family(draft.model), _family(named_tokenizer or target.model)
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
            f"Known: {known}; or local: with a Hugging Face repository, a folder or a .gguf file; or openai: with the "
            "name of a model that a server has.",
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


@dataclass(frozen=True, slots=True, eq=False)
class _Built:
    """A target, and the properties that its drafter needs."""

    target: Target
    stop_ids: frozenset[int]
    vocabulary: Vocabulary
    where: str = ""
    close: Callable[[], None] | None = None


class Builder:
    """Builds pairs, and keeps the models of the last pair loaded. Belongs to the thread that calls it.

    Args:
        variables: the environment, which may hold the address and the key of a completions target; None reads the
            environment again for each pair.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = variables
        self._remote = RemoteBuilder()
        self._loaded: dict[str, LanguageModel] = {}
        self._distilled: dict[str, DistilledModel] = {}

    def build(
        self,
        settings: Settings,
        wait: Wait = Wait(),
        key: Secret | None = None,
    ) -> Pair:
        """Fetch and load what is missing, then check that draft and target have the same vocabulary.

        Args:
            wait: for downloads, and for every later wait of the pair for its server or for a simulated network.
            key: API key of a completions target; default: the one of the environment.

        Raises:
            UnknownModelError, UnsupportedModelError, DownloadError: a model cannot be found, used or fetched.
            PairingError: the vocabularies differ.
            RemoteError: a server does not answer, refuses, or cannot do what the settings ask for.
        """
        variables = environment() if self._variables is None else self._variables
        check(settings, variables)
        wanted = (_in_process(parse_target(settings.target)), parse_draft(settings.draft).model)
        # Memory may not suffice for a third large model.
        self._loaded = {name: model for name, model in self._loaded.items() if name in wanted}
        self._distilled = {name: model for name, model in self._distilled.items() if name in wanted}
        built = self._target(settings, variables, key, wait)
        try:
            drafter = self._drafter(settings, built, wait)
        except BaseException:
            if built.close:
                built.close()
            raise
        pair = Pair(drafter, _behind_network(built.target, settings, wait), built.where)
        return replace(pair, close=built.close) if built.close else pair

    def language_model(self, name: str, wait: Wait = Wait()) -> LanguageModel:
        """An in-process model, kept loaded: see `specviz.setup.loading.load_model`."""
        if name not in self._loaded:
            from specviz.setup.loading import load_model

            self._loaded[name] = load_model(name, wait)
        return self._loaded[name]

    def _distilled_model(self, name: str, wait: Wait) -> DistilledModel:
        if name not in self._distilled:
            from specviz.setup.loading import load_draft

            self._distilled[name] = load_draft(name, wait)
        return self._distilled[name]

    def _target(self, settings: Settings, variables: Mapping[str, str], key: Secret | None, wait: Wait) -> _Built:
        name = parse_target(settings.target)
        if name.place == "completions":
            remote = self._remote.build(settings, variables, key, wait)
            tokens = remote.tokens
            return _Built(remote.target, tokens.stop_ids, tokens.vocabulary, remote.shown, remote.close)
        from specviz.targets.local import LocalTarget

        model: Model = ToyModel() if name.kind == "toy" else self.language_model(name.model, wait)
        return _Built(LocalTarget(settings.target, model), model.stop_ids, model.vocabulary)

    def _drafter(self, settings: Settings, built: _Built, wait: Wait) -> Drafter:
        stop_ids, draft = built.stop_ids, parse_draft(settings.draft)
        if draft.kind == "none":
            from specviz.drafters.none import NoDrafter

            return NoDrafter()
        if draft.kind == "ngram":
            from specviz.drafters.ngram import NgramDrafter

            return NgramDrafter(settings.ngram_max, settings.ngram_min, stop_ids)
        model = self._model_drafter(draft.alone, settings, built, wait)
        if not draft.lookup_first:
            return model
        from specviz.drafters.combined import SHORTEST, CombinedDrafter

        shortest = max(SHORTEST, settings.ngram_min)
        return CombinedDrafter(model, longest=max(shortest, settings.ngram_max), shortest=shortest, stop_ids=stop_ids)

    def _model_drafter(self, draft: DraftName, settings: Settings, built: _Built, wait: Wait) -> ModelDrafter:
        from specviz.drafters.model import ModelDrafter

        target, certain = built.target, settings.min_confidence or 0.0
        if draft.kind == "model" and is_distilled(store.pull(draft.model, wait)):
            distilled = self._distilled_model(draft.model, wait)
            distilled.check_target(built.vocabulary)
            return ModelDrafter(
                str(draft),
                distilled.scorer(),
                target.tokenizer,
                tokens=distilled.vocabulary.tokens.astype(np.int64),
                max_context=distilled.max_context,
                stop_ids=built.stop_ids,
                min_confidence=certain,
            )
        from specviz.core.vocabulary import check_pair

        model: Model = ToyModel(DRAFT_NOISE) if draft.kind == "toy" else self.language_model(draft.model, wait)
        check_pair(model.vocabulary, built.vocabulary)
        return ModelDrafter(
            str(draft),
            model.scorer(),
            model.tokenizer,
            max_context=model.max_context,
            vocab_limit=target.capabilities.vocab_size,
            stop_ids=built.stop_ids,
            min_confidence=certain,
        )


def _in_process(target: TargetName) -> str:
    """The in-process model of a target; empty if it has none."""
    return target.model if target.place == "here" else ""


def _behind_network(target: Target, settings: Settings, wait: Wait) -> Target:
    if not settings.simulated_rtt_ms:
        return target
    from specviz.targets.simulated_network import SimulatedNetwork

    rtt_ms, jitter_ms = settings.simulated_rtt_ms, settings.simulated_jitter_ms
    return SimulatedNetwork(target, rtt_ms, jitter_ms, seed=settings.seed, cancelled=wait.cancelled)


def probe_target(
    settings: Settings,
    variables: Mapping[str, str] | None = None,
    key: Secret | None = None,
    wait: Wait = Wait(),
) -> tuple[Findings, RemoteTokenizer, str]:
    """Probe the server of a completions target, ignoring cached findings.

    Returns:
        The findings, the tokenizer of the probe, and the address without secrets.

    Raises:
        SettingsError, ModelError: not a completions target, no address, or no tokenizer.
        RemoteError: the server cannot be reached or refuses.
    """
    variables = environment() if variables is None else variables
    if parse_target(settings.target).place != "completions":
        raise UnknownModelError(
            f"{settings.target} is not a remote target: there is no server to test.", "Give --target openai:MODEL."
        )
    check(settings, variables)
    return RemoteBuilder().probe(settings, variables, key, wait)


def benchmark_folder() -> Path:
    """Where the page saves benchmarks: in the user's cache folder, or SPECVIZ_CACHE."""
    return workspace.cache_dir() / "benchmarks"
