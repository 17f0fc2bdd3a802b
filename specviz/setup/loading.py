"""Loads models by name, after fetching those that are not on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.core.errors import UnsupportedModelError
from specviz.core.ports import Model
from specviz.core.settings import EngineWish
from specviz.core.wait import Progress, Wait
from specviz.engines.distilled import is_distilled, read_description
from specviz.engines.distilled_model import DistilledModel
from specviz.setup.engines import choose
from specviz.store import conversion, sources, store

if TYPE_CHECKING:
    from specviz.engines.mlx.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class Loading:
    """How a model is loaded.

    Attributes:
        engine: the user's wish.
        context: tokens, for an engine that makes its cache at once; 0 for the default.
    """

    engine: EngineWish = "auto"
    context: int = 0


def load_model(name: str, wait: Wait = Wait(), how: Loading = Loading()) -> Model:
    """Load a model with its tokenizer.

    Args:
        name: see `specviz.store.sources`.
        wait: for download, conversion and load; only the first two can be cancelled.

    Raises:
        UnknownModelError, DownloadError: see `specviz.store.store.pull`; a converted model whose files have changed
            on the disk is removed, and a `DownloadError` raised.
        UnsupportedModelError: incomplete folder, unknown architecture, or a cache that cannot be rewound.
        SettingsError: a context that is longer than the model's.
    """
    source = sources.resolve(name)
    if source.kind in ("package", "folder"):
        _refuse_draft(name, Path(source.location))
    if choose(source, how.engine).engine == "mlx":
        return load_mlx_model(name, wait)
    from specviz.engines.llama import model
    from specviz.engines.llama.plan import plan
    from specviz.store.gguf.tried import ensure_tried

    file = store.pull_gguf(name, wait)
    planned = plan(name, file, how.context)
    if source.kind != "wheel":  # those are checked by their sum, and known to run
        ensure_tried(file, wait)
    what = f"Loading {name}: {planned.memory}"
    return model.load(name, planned, lambda n: wait.on_progress(Progress(what, n, 2)))


def load_mlx_model(name: str, wait: Wait = Wait()) -> LanguageModel:
    """The same in MLX. Raises: as `load_model`."""
    from specviz.engines.mlx import language_model

    folder = store.pull(name, wait)
    _refuse_draft(name, folder)
    try:
        return language_model.load(name, folder, lambda n: wait.on_progress(Progress(f"Loading {name}", n, 2)))
    except UnsupportedModelError:
        conversion.refuse_damaged(name)
        raise


def load_draft(name: str, wait: Wait = Wait(), how: Loading = Loading()) -> DistilledModel:
    """Load a distilled draft.

    Args: see `load_model`.

    Raises:
        UnknownModelError, DownloadError: see `specviz.store.store.pull`.
        UnsupportedModelError: a file is missing, damaged, of another format, or does not fit the others.
    """
    folder = store.pull(name, wait)
    wait.on_progress(Progress(f"Loading {name}", 0, 1))
    source = sources.resolve(name)
    if choose(source, how.engine, is_draft=True).engine == "mlx":
        from specviz.engines.mlx import distilled_model as in_mlx

        loaded = in_mlx.load(name, folder)
    else:
        from specviz.engines.llama import distilled_model as in_llama
        from specviz.store.gguf.draft import draft_gguf
        from specviz.store.gguf.tried import ensure_tried

        file = draft_gguf(folder, wait)
        if source.kind != "package":
            ensure_tried(file, wait, tokenizer=False)
        loaded = in_llama.load(name, folder, file)
    wait.on_progress(Progress(f"Loading {name}", 1, 1))
    return loaded


def is_draft(name: str, wait: Wait = Wait()) -> bool:
    """Whether a name means a distilled draft. An unknown repository is fetched to find out.

    Raises:
        UnknownModelError, DownloadError: see `specviz.store.store.pull`.
    """
    source = sources.resolve(name)
    if source.is_gguf:
        return False
    if source.known is not None:
        return bool(source.known.distilled_for)
    return is_distilled(store.pull(name, wait))


def _refuse_draft(name: str, folder: Path) -> None:
    if is_distilled(folder):
        raise UnsupportedModelError(
            f"{name} is a distilled draft, which has no tokenizer of its own.",
            f"Use it as the draft of {read_description(folder).target}: model:{name}",
        )
