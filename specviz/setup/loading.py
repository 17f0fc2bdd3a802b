"""Loading models by name: they are fetched first where they are not on this machine."""

from __future__ import annotations

from collections.abc import Callable

from specviz.core.errors import UnsupportedModelError
from specviz.core.ports import OnProgress, Progress
from specviz.engines.distilled import is_distilled, read_description
from specviz.engines.mlx import distilled_model, language_model
from specviz.engines.mlx.distilled_model import DistilledModel
from specviz.engines.mlx.language_model import LanguageModel
from specviz.store import conversion, store


def load_model(
    name: str, on_progress: OnProgress = lambda progress: None, cancelled: Callable[[], bool] = lambda: False
) -> LanguageModel:
    """Load a model with its tokenizer.

    Args:
        name: see `specviz.store.sources`.
        on_progress: receives the progress of download, conversion and load.
        cancelled: called during a download; true ends it.

    Raises:
        UnknownModelError, DownloadError: see `specviz.store.store.pull`; a converted model whose files have changed
            on the disk is removed, and a `DownloadError` raised.
        UnsupportedModelError: incomplete folder, unknown architecture, or a cache that cannot be rewound.
    """
    folder = store.pull(name, on_progress, cancelled)
    if is_distilled(folder):
        raise UnsupportedModelError(
            f"{name} is a distilled draft, which has no tokenizer of its own.",
            f"Use it as the draft of {read_description(folder).target}: model:{name}",
        )
    try:
        return language_model.load(name, folder, lambda n: on_progress(Progress(f"Loading {name}", n, 2)))
    except UnsupportedModelError:
        conversion.refuse_damaged(name)
        raise


def load_draft(
    name: str, on_progress: OnProgress = lambda progress: None, cancelled: Callable[[], bool] = lambda: False
) -> DistilledModel:
    """Load a distilled draft.

    Args: see `load_model`.

    Raises:
        UnknownModelError, DownloadError: see `specviz.store.store.pull`.
        UnsupportedModelError: a file is missing, damaged, of another format, or does not fit the others.
    """
    folder = store.pull(name, on_progress, cancelled)
    on_progress(Progress(f"Loading {name}", 0, 1))
    loaded = distilled_model.load(name, folder)
    on_progress(Progress(f"Loading {name}", 1, 1))
    return loaded
