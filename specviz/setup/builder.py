"""Settings → pairs of a drafter and a target. Only `setup` imports `drafters` and `targets`.

A new drafter is one file in `drafters/` and one line in `Builder._drafter`; the same for a target. Heavy modules are
imported only when needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from specviz.core.connection import Secret
from specviz.core.errors import UnknownModelError
from specviz.core.names import DraftName, TargetName, parse_draft, parse_target
from specviz.core.pair import Pair
from specviz.core.ports import Drafter, Model, Target
from specviz.core.settings import Settings
from specviz.core.vocabulary import Vocabulary
from specviz.core.wait import Wait
from specviz.engines.distilled_model import DistilledModel
from specviz.engines.toy import DRAFT_NOISE, ToyModel
from specviz.setup.completions import RemoteBuilder
from specviz.setup.engines import choose
from specviz.setup.environment import environment
from specviz.setup.loading import Loading, is_draft, load_draft, load_model
from specviz.setup.remote_tokenizer import RemoteTokenizer
from specviz.setup.validation import check
from specviz.store import sources

if TYPE_CHECKING:
    from specviz.drafters.model import ModelDrafter
    from specviz.targets.completions.values import Findings


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
        self._loaded: dict[tuple[str, Loading], Model] = {}
        self._distilled: dict[tuple[str, Loading], DistilledModel] = {}

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
        how = Loading(settings.engine, settings.context)
        names = (_in_process(parse_target(settings.target)), parse_draft(settings.draft).model)
        wanted = [(name, how) for name in names]
        # Memory may not suffice for a third large model.
        self._loaded = {key: model for key, model in self._loaded.items() if key in wanted}
        self._distilled = {key: model for key, model in self._distilled.items() if key in wanted}
        built = self._target(settings, variables, key, wait)
        try:
            drafter = self._drafter(settings, built, wait)
        except BaseException:
            if built.close:
                built.close()
            raise
        pair = Pair(drafter, _behind_network(built.target, settings, wait), built.where)
        return replace(pair, close=built.close) if built.close else pair

    def language_model(self, name: str, wait: Wait = Wait(), how: Loading = Loading()) -> Model:
        """An in-process model, kept loaded: see `specviz.setup.loading.load_model`."""
        if (name, how) not in self._loaded:
            self._loaded[name, how] = load_model(name, wait, how)
        return self._loaded[name, how]

    def _distilled_model(self, name: str, wait: Wait, how: Loading) -> DistilledModel:
        if (name, how) not in self._distilled:
            self._distilled[name, how] = load_draft(name, wait, how)
        return self._distilled[name, how]

    def _target(self, settings: Settings, variables: Mapping[str, str], key: Secret | None, wait: Wait) -> _Built:
        name = parse_target(settings.target)
        if name.place == "completions":
            remote = self._remote.build(settings, variables, key, wait)
            tokens = remote.tokens
            return _Built(remote.target, tokens.stop_ids, tokens.vocabulary, remote.shown, remote.close)
        from specviz.targets.local import LocalTarget

        how, note = Loading(settings.engine, settings.context), ""
        if name.kind == "toy":
            model: Model = ToyModel()
        else:
            model = self.language_model(name.model, wait, how)
            note = choose(sources.resolve(name.model), settings.engine).note
        return _Built(LocalTarget(settings.target, model, note), model.stop_ids, model.vocabulary)

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
        how = Loading(settings.engine, settings.context)
        if draft.kind == "model" and is_draft(draft.model, wait):
            distilled = self._distilled_model(draft.model, wait, how)
            distilled.check_target(built.vocabulary)
            return ModelDrafter(
                str(draft),
                distilled.scorer(),
                target.tokenizer,
                tokens=distilled.vocabulary.tokens.astype(np.int64),
                max_context=distilled.max_context,
                stop_ids=built.stop_ids,
                min_confidence=certain,
                engine=distilled.engine,
            )
        from specviz.core.vocabulary import check_pair

        model: Model = ToyModel(DRAFT_NOISE) if draft.kind == "toy" else self.language_model(draft.model, wait, how)
        check_pair(model.vocabulary, built.vocabulary)
        return ModelDrafter(
            str(draft),
            model.scorer(),
            model.tokenizer,
            max_context=model.max_context,
            vocab_limit=target.capabilities.vocab_size,
            stop_ids=built.stop_ids,
            min_confidence=certain,
            engine=model.engine,
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
