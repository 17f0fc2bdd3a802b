"""Loads models by name, after fetching those that are not on this machine."""

from __future__ import annotations

from specviz.core.errors import UnsupportedModelError
from specviz.core.wait import Progress, Wait
from specviz.engines.distilled import is_distilled, read_description
from specviz.engines.mlx import distilled_model, language_model
from specviz.engines.mlx.distilled_model import DistilledModel
from specviz.engines.mlx.language_model import LanguageModel
from specviz.store import conversion, store


def load_model(name: str, wait: Wait = Wait()) -> LanguageModel:
    """Load a model with its tokenizer.

    Args:
        name: see `specviz.store.sources`.
        wait: for download, conversion and load; only the first two can be cancelled.

    Raises:
        UnknownModelError, DownloadError: see `specviz.store.store.pull`; a converted model whose files have changed
            on the disk is removed, and a `DownloadError` raised.
        UnsupportedModelError: incomplete folder, unknown architecture, or a cache that cannot be rewound.
    """
    folder = store.pull(name, wait)
    if is_distilled(folder):
        raise UnsupportedModelError(
            f"{name} is a distilled draft, which has no tokenizer of its own.",
            f"Use it as the draft of {read_description(folder).target}: model:{name}",
        )
    try:
        return language_model.load(name, folder, lambda n: wait.on_progress(Progress(f"Loading {name}", n, 2)))
    except UnsupportedModelError:
        conversion.refuse_damaged(name)
        raise


def load_draft(name: str, wait: Wait = Wait()) -> DistilledModel:
    """Load a distilled draft.

    Args: see `load_model`.

    Raises:
        UnknownModelError, DownloadError: see `specviz.store.store.pull`.
        UnsupportedModelError: a file is missing, damaged, of another format, or does not fit the others.
    """
    folder = store.pull(name, wait)
    wait.on_progress(Progress(f"Loading {name}", 0, 1))
    loaded = distilled_model.load(name, folder)
    wait.on_progress(Progress(f"Loading {name}", 1, 1))
    return loaded
