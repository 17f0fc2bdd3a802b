"""Which engine runs a model in this process."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Literal

from specviz.core.errors import UnsupportedModelError
from specviz.core.settings import EngineWish
from specviz.engines.llama import usable
from specviz.store.sources import ModelSource

EngineName = Literal["mlx", "llama"]
#: Distributions of MLX that compute on an NVIDIA GPU.
_CUDA_WHEELS = ("mlx-cuda", "mlx-cuda-12", "mlx-cuda-13")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine.

    Attributes:
        note: why it is not the one that would be taken here otherwise, as a sentence; empty where it is.
    """

    engine: EngineName
    note: str = ""


def choose(source: ModelSource, wish: EngineWish, is_draft: bool = False) -> EngineChoice:
    """The engine for a model.

    GGUF files run in `llama` where MLX has no GPU, and in `mlx` where it has one. Models in MLX's format run in `mlx`.

    Args:
        wish: of the user; "auto" for none.
        is_draft: a distilled draft, which can be made into a GGUF file.

    Raises:
        UnsupportedModelError: the wanted engine cannot run here, or cannot read the model; or no engine can.
    """
    has_gguf = is_draft or source.as_gguf() is not None
    no_llama = usable.problem()
    no_mlx = "" if find_spec("mlx") else "MLX is not installed, which has no wheel for this system."
    if wish == "llama":
        if not has_gguf:
            raise UnsupportedModelError(
                f"{source.name} is in MLX's format, and the engine llama reads GGUF files only.",
                "Leave --engine out, or give a GGUF file: USER/REPO:QUANT of the Hugging Face hub, or a path.",
            )
        if no_llama:
            raise UnsupportedModelError(no_llama, "Leave --engine out: MLX is used then.")
        return EngineChoice("llama")
    if wish == "mlx":
        if no_mlx:
            raise UnsupportedModelError(no_mlx, "Leave --engine out: GGUF files run in the engine llama.")
        return EngineChoice("mlx")
    if has_gguf and not no_llama and (no_mlx or not gpu()):
        return EngineChoice("llama")
    if not no_mlx:
        return EngineChoice("mlx", f"{no_llama} MLX is used." if has_gguf and not gpu() else "")
    raise UnsupportedModelError(
        f"{source.name} cannot be run on this machine: {no_llama or 'it is in the format of MLX.'} {no_mlx}".strip(),
        "Use a GGUF file, a model behind a server (openai:MODEL), or the toy.",
    )


def gpu() -> str:
    """What MLX computes on here other than the processor: "Metal" or "CUDA"; empty for nothing."""
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return "Metal"
    return "CUDA" if any(_installed(wheel) for wheel in _CUDA_WHEELS) else ""


def _installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True
