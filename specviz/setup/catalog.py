"""Names → drafters and targets. The only importer of `drafters` and `targets`, and for a run of `models`.

A new drafter is one file in `drafters/` and one line in `Builder._drafter`; the same for a target. Everything heavy is
imported when it is needed: the lists below cost no model library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from specviz.core.connection import Secret, connection
from specviz.core.errors import ModelError, PairingError, SettingsError, UnknownModelError, UnsupportedModelError
from specviz.core.pair import Pair
from specviz.core.ports import Capabilities, Drafter, OnProgress, Target
from specviz.core.settings import Settings, split_draft
from specviz.core.vocabulary import Vocabulary
from specviz.engines.distilled import check_target, is_distilled, read_description
from specviz.engines.toy import DRAFT_NOISE, ToyModel, ToyTokenizer
from specviz.setup.completions import RemoteBuilder, is_remote, model_of
from specviz.setup.completions import check as check_remote
from specviz.setup.environment import environment
from specviz.setup.remote_tokenizer import TOY, RemoteTokenizer
from specviz.store import sources, store, workspace
from specviz.store.known import KNOWN, KnownModel

if TYPE_CHECKING:
    from specviz.drafters.model import ModelDrafter
    from specviz.engines.mlx.distilled_model import DistilledModel
    from specviz.engines.mlx.language_model import LanguageModel
    from specviz.targets.completions.values import Findings


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One entry of a list to choose from.

    Attributes:
        name: what settings hold. title, detail: for a person.
        available: whether it can be used without fetching anything.
        reason: why it is not available, or what choosing it costs; empty when there is nothing to say.
    """

    name: str
    title: str
    detail: str
    available: bool
    reason: str


def targets(variables: Mapping[str, str] | None = None) -> list[CatalogEntry]:
    """Every target that can be chosen by name; asks no server.

    Args:
        variables: the environment, which may name a server; None reads it.
    """
    toy = CatalogEntry("toy", "Toy", "A table of 294 tokens: instant, no download, made-up sentences.", True, "")
    local = (_model_choice("local:", model) for model in KNOWN if not model.distilled_for)
    return [*local, *_remote_choices(variables), toy]


def _remote_choices(variables: Mapping[str, str] | None) -> list[CatalogEntry]:
    """The server that the environment names, if it names one."""
    detail = "A server with a completions API; what it can do is tried out when it is used."
    try:
        variables = environment() if variables is None else variables
        if not any(variables.get(name, "").strip() for name in ("TARGET_BASE_URL", "CEREBRAS_API_KEY")):
            return []
        named = Settings.resolve({"target": "openai"}, environment=variables)
        host = connection(named, variables).shown.partition("://")[2].partition("/")[0]
    except SettingsError as exc:
        return [CatalogEntry("openai:", "Remote target", detail, False, str(exc))]
    if not (model := model_of(named.target)):
        return [CatalogEntry("openai:", f"A model at {host}", detail, False, "TARGET_MODEL says which.")]
    return [CatalogEntry(named.target, f"{model} at {host}", detail, True, "")]


def drafts(target: str) -> list[CatalogEntry]:
    """Every drafter, with the reason where it cannot serve this target."""
    is_toy = target == "toy"
    family = _family(target)
    alone = "" if is_toy else "It shares its vocabulary with the toy target alone."
    own = [model for model in KNOWN if model.distilled_for]
    return [
        *(_lookup_first(_distilled_choice(model, target)) for model in own),
        *(_distilled_choice(model, target) for model in own),
        CatalogEntry(
            "ngram", "n-gram lookup", "Copies what followed last time. Free; pays where text repeats.", True, ""
        ),
        *(_draft_choice(model, is_toy, family) for model in KNOWN if not model.distilled_for),
        CatalogEntry("toy", "Toy draft", "The toy target with noise.", is_toy, alone),
        CatalogEntry("none", "None", "Plain decoding, one token a round.", True, ""),
    ]


def _model_choice(prefix: str, model: KnownModel) -> CatalogEntry:
    here = store.local_path(model.name) is not None
    reason = "" if here else f"{model.download_bytes / 1e6:,.0f} MB to download"
    return CatalogEntry(prefix + model.name, model.title, model.good_for, here, reason)


def _draft_choice(model: KnownModel, is_toy: bool, family: str | None) -> CatalogEntry:
    choice = _model_choice("model:", model)
    if is_toy or (family is not None and model.vocabulary != family):
        what = "the toy's" if is_toy else f"the target's ({model.vocabulary}, not {family})"
        return CatalogEntry(choice.name, choice.title, choice.detail, False, f"Its vocabulary is not {what}.")
    return choice


def _distilled_choice(model: KnownModel, target: str) -> CatalogEntry:
    choice = _model_choice("model:", model)
    reason = "" if choice.available else "This copy of specviz lacks its weights."
    known = _known(target)
    title = next(k.title for k in KNOWN if k.name == model.distilled_for)
    if known is None and is_remote(target):
        # What runs there under another name is not known before it was asked.
        return choice if reason else replace(choice, reason=f"For a server that runs {title}.")
    if known is None or known.name != model.distilled_for:
        reason = f"It was distilled for {title} alone."
    return replace(choice, available=not reason, reason=reason)


def _lookup_first(choice: CatalogEntry) -> CatalogEntry:
    detail = f"Copies where the text repeats itself, and lets the model draft where it does not. {choice.detail}"
    title = f"n-gram lookup + {choice.title.removesuffix(', distilled')}"
    return replace(choice, name=f"ngram+{choice.name}", title=title, detail=detail)


def _known(name: str) -> KnownModel | None:
    """The known model that a name with its prefix means; None for any other, and for one that means nothing."""
    kind, _, model = name.partition(":")
    if kind not in ("local", "model", "openai") or not model:
        return None
    try:
        return sources.resolve(model).known
    except ModelError:
        return None  # a list is no place for an error: `check` says it when the name is used


def _family(name: str) -> str | None:
    """The vocabulary of a known model, by its name with its prefix; None for any other."""
    known = _known(name)
    return known.vocabulary if known else None


def check(settings: Settings, variables: Mapping[str, str] | None = None) -> None:
    """Refuse names that mean nothing, before any work.

    Args:
        variables: the environment, which may name a server; None reads it.

    Raises:
        SettingsError: a remote target has no address.
        UnknownModelError: no such drafter, target or model.
        UnsupportedModelError: a folder or file on this machine that cannot be used; a distilled draft as target.
        PairingError: the toy with another model; two families; a draft that was distilled for another target.
    """
    kind, _, name = settings.target.partition(":")
    if kind == "local" and name:
        _refuse_as_target(sources.resolve(name))
        store.inspect(name)
    elif is_remote(settings.target):
        check_remote(settings, environment() if variables is None else variables)
        if settings.tokenizer not in ("", TOY):
            sources.resolve(settings.tokenizer)
    elif settings.target != "toy":
        known = ", ".join(c.name for c in targets({}))
        raise UnknownModelError(
            f"Unknown target {settings.target!r}.",
            f"Known: {known}; or local: with a Hugging Face repository, a folder or a .gguf file; or openai: with the "
            "name of a model that a server has.",
        )
    lookup_first, draft = split_draft(settings.draft)
    kind, _, name = draft.partition(":")
    source = store.inspect(name) if kind == "model" and name else None
    if source is None and draft not in (("toy",) if lookup_first else ("none", "ngram", "toy")):
        known = ", ".join(c.name for c in drafts(settings.target))
        raise UnknownModelError(
            f"Unknown draft {settings.draft!r}.",
            f"Known: {known}; or model: with a Hugging Face repository, a folder or a .gguf file; ngram+ in front of "
            "any of these puts n-gram lookup first.",
        )
    if draft in ("none", "ngram"):
        return
    speaks = _speaks(settings)
    if source is not None and (folder := _distilled_folder(source)):
        if speaks == "toy":
            check_target(draft, read_description(folder), ToyTokenizer().vocabulary)
    elif (speaks == "toy") != (draft == "toy"):
        raise PairingError(
            f"Draft {draft} and target {settings.target} have different vocabularies: the toy pair has one of its own.",
            "Use toy with toy, or n-gram lookup, which fits every target.",
        )
    ours, theirs = _family(draft), _family(speaks)
    if ours and theirs and ours != theirs:
        raise PairingError(
            f"Draft {draft} and target {settings.target} have different vocabularies: {ours} and {theirs}.",
            "Take a draft of the target's own family, or n-gram lookup, which fits every target.",
        )


def _speaks(settings: Settings) -> str:
    """The name of what has the target's tokens: the target itself, or what the settings say of a remote one."""
    if not is_remote(settings.target) or not settings.tokenizer:
        return settings.target
    return TOY if settings.tokenizer == TOY else f"model:{settings.tokenizer}"


def _distilled_folder(source: sources.ModelSource) -> Path | None:
    """Where a distilled draft lies; None for any other model, and for one that is still to be fetched."""
    folder = Path(source.location)
    return folder if source.kind in ("folder", "package") and is_distilled(folder) else None


def _refuse_as_target(source: sources.ModelSource) -> None:
    if source.kind == "package" or _distilled_folder(source):
        raise UnsupportedModelError(
            f"{source.name} is a distilled draft: it proposes tokens for the target that it was trained for, and "
            "cannot be a target.",
            f"Take it as the draft, model:{source.name}, of its own target.",
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Built:
    """A target, and what a drafter has to fit."""

    target: Target
    stop_ids: frozenset[int]
    vocabulary: Vocabulary
    where: str = ""
    close: Callable[[], None] | None = None


class Builder:
    """Makes pairs, and keeps the models of the last one loaded. Belongs to the thread that calls it.

    Args:
        variables: the environment, where the address of a remote target and its key may stand; None reads it anew for
            each pair.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = variables
        self._remote = RemoteBuilder()
        self._loaded: dict[str, LanguageModel] = {}
        self._distilled: dict[str, DistilledModel] = {}

    def build(
        self,
        settings: Settings,
        on_progress: OnProgress = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
        key: Secret | None = None,
    ) -> Pair:
        """Fetch and load what is missing, then check that draft and target fit.

        Args:
            on_progress, cancelled: of this wait, and of every wait of the pair for its server or for a simulated
                network.
            key: opens a remote target; without one, the environment's does.

        Raises:
            UnknownModelError, UnsupportedModelError, DownloadError: a model cannot be had.
            PairingError: the vocabularies differ.
            RemoteError: a server does not answer, refuses, or cannot do what the settings ask for.
        """
        variables = environment() if self._variables is None else self._variables
        check(settings, variables)
        target = "" if is_remote(settings.target) else settings.target
        wanted = [name.partition(":")[2] for name in (target, settings.draft)]
        # Two large models may not fit beside a third.
        self._loaded = {name: model for name, model in self._loaded.items() if name in wanted}
        self._distilled = {name: model for name, model in self._distilled.items() if name in wanted}
        built = self._target(settings, variables, key, on_progress, cancelled)
        try:
            drafter = self._drafter(settings, built, on_progress, cancelled)
        except BaseException:
            if built.close:
                built.close()
            raise
        pair = Pair(drafter, _behind_network(built.target, settings, cancelled), built.where)
        return replace(pair, close=built.close) if built.close else pair

    def language_model(
        self, name: str, on_progress: OnProgress = lambda _: None, cancelled: Callable[[], bool] = lambda: False
    ) -> LanguageModel:
        """A model of this machine that stays loaded: see `specviz.setup.loading.load_model`."""
        if name not in self._loaded:
            from specviz.setup.loading import load_model

            self._loaded[name] = load_model(name, on_progress, cancelled)
        return self._loaded[name]

    def _distilled_model(self, name: str, on_progress: OnProgress, cancelled: Callable[[], bool]) -> DistilledModel:
        if name not in self._distilled:
            from specviz.setup.loading import load_draft

            self._distilled[name] = load_draft(name, on_progress, cancelled)
        return self._distilled[name]

    def _target(
        self,
        settings: Settings,
        variables: Mapping[str, str],
        key: Secret | None,
        on_progress: OnProgress,
        cancelled: Callable[[], bool],
    ) -> _Built:
        if is_remote(settings.target):
            remote = self._remote.build(settings, variables, key, on_progress, cancelled)
            tokens = remote.tokens
            return _Built(remote.target, tokens.stop_ids, tokens.vocabulary, remote.shown, remote.close)
        from specviz.targets.local import LocalTarget

        if settings.target == "toy":
            toy = ToyModel()
            limits = Capabilities(True, toy.tokenizer.vocab_size, toy.max_context, toy.stop_ids)
            return _Built(LocalTarget("toy", toy.scorer(), toy.tokenizer, limits), toy.stop_ids, toy.vocabulary)
        model = self.language_model(settings.target.partition(":")[2], on_progress, cancelled)
        tokenizer = model.tokenizer
        limits = Capabilities(True, tokenizer.vocab_size, model.max_context, tokenizer.stop_ids)
        local = LocalTarget(settings.target, model.scorer(), tokenizer, limits)
        return _Built(local, tokenizer.stop_ids, tokenizer.vocabulary)

    def _drafter(
        self, settings: Settings, built: _Built, on_progress: OnProgress, cancelled: Callable[[], bool]
    ) -> Drafter:
        stop_ids = built.stop_ids
        lookup_first, draft = split_draft(settings.draft)
        if draft == "none":
            from specviz.drafters.none import NoDrafter

            return NoDrafter()
        if draft == "ngram":
            from specviz.drafters.ngram import NgramDrafter

            return NgramDrafter(settings.ngram_max, settings.ngram_min, stop_ids)
        model = self._model_drafter(draft, settings, built, on_progress, cancelled)
        if not lookup_first:
            return model
        from specviz.drafters.combined import SHORTEST, CombinedDrafter

        shortest = max(SHORTEST, settings.ngram_min)
        return CombinedDrafter(model, longest=max(shortest, settings.ngram_max), shortest=shortest, stop_ids=stop_ids)

    def _model_drafter(
        self,
        draft: str,
        settings: Settings,
        built: _Built,
        on_progress: OnProgress,
        cancelled: Callable[[], bool],
    ) -> ModelDrafter:
        from specviz.drafters.model import ModelDrafter

        target, stop_ids = built.target, built.stop_ids
        certain = settings.min_confidence or 0.0
        if draft == "toy":
            toy = ToyModel(DRAFT_NOISE)
            return ModelDrafter(
                "toy",
                toy.scorer(),
                toy.tokenizer,
                max_context=toy.max_context,
                stop_ids=stop_ids,
                min_confidence=certain,
            )
        name = draft.partition(":")[2]
        if is_distilled(store.pull(name, on_progress, cancelled)):
            distilled = self._distilled_model(name, on_progress, cancelled)
            distilled.check_target(built.vocabulary)
            return ModelDrafter(
                draft,
                distilled.scorer(),
                target.tokenizer,
                tokens=distilled.vocabulary.tokens.astype(np.int64),
                max_context=distilled.max_context,
                stop_ids=stop_ids,
                min_confidence=certain,
            )
        from specviz.core.vocabulary import check_pair

        model = self.language_model(name, on_progress, cancelled)
        check_pair(model.tokenizer.vocabulary, built.vocabulary)
        return ModelDrafter(
            draft,
            model.scorer(),
            model.tokenizer,
            max_context=model.max_context,
            vocab_limit=target.capabilities.vocab_size,
            stop_ids=stop_ids,
            min_confidence=certain,
        )


def _behind_network(target: Target, settings: Settings, cancelled: Callable[[], bool]) -> Target:
    if not settings.simulated_rtt_ms:
        return target
    from specviz.targets.simulated_network import SimulatedNetwork

    rtt_ms, jitter_ms = settings.simulated_rtt_ms, settings.simulated_jitter_ms
    return SimulatedNetwork(target, rtt_ms, jitter_ms, seed=settings.seed, cancelled=cancelled)


def probe_target(
    settings: Settings,
    variables: Mapping[str, str] | None = None,
    key: Secret | None = None,
    on_progress: OnProgress = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[Findings, RemoteTokenizer, str]:
    """What the server of a remote target can do, tried out anew.

    Returns:
        The findings; the tokenizer that it was asked with, and whose that is; the address, as it may be shown.

    Raises:
        SettingsError, ModelError: the target is no remote one, has no address, or its tokenizer cannot be had.
        RemoteError: the server cannot be reached or refuses.
    """
    variables = environment() if variables is None else variables
    if not is_remote(settings.target):
        raise UnknownModelError(
            f"{settings.target} is no remote target: there is no server to try out.", "Give --target openai:MODEL."
        )
    check(settings, variables)
    return RemoteBuilder().probe(settings, variables, key, on_progress, cancelled)


def benchmark_folder() -> Path:
    """Where the page saves benchmarks: in the user's cache folder, or SPECVIZ_CACHE."""
    return workspace.cache_dir() / "benchmarks"
