"""What MLX can run of a GGUF file."""

from __future__ import annotations

from pathlib import Path

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.read import GgufFile, read_gguf

#: Forms of weights that MLX reads without loss.
_MLX_FORMS = ("F32", "F16", "Q4_0", "Q4_1", "Q8_0")


def check_for_mlx(path: Path) -> GgufFile:
    """Check that a file is sound, and of a kind that MLX can run.

    Raises:
        UnsupportedModelError: see `read_gguf`; another architecture, or weights in a form that MLX does not read.
    """
    file = read_gguf(path)
    architecture = file.metadata.get("general.architecture", "")
    if architecture != "llama":
        raise UnsupportedModelError(
            f"{path.name} has the architecture {architecture!r}; MLX reads GGUF files of the Llama family only.",
            "Use the same model as an MLX folder or a Hugging Face repository.",
        )
    if file.metadata.get("split.count", 1) != 1:
        raise UnsupportedModelError(
            f"{path.name} is one part of a model that is split; MLX reads GGUF files that are whole.",
            "Use the same model as an MLX folder or a Hugging Face repository.",
        )
    if double := [key for key, kind in file.types.items() if kind.endswith("f64")]:
        raise UnsupportedModelError(
            f"{path.name} has the entry {double[0]!r} with 64-bit floats, on which MLX's reader ends the process.",
            "Use the same model as an MLX folder or a Hugging Face repository.",
        )
    for tensor in file.tensors.values():
        if tensor.form.name not in _MLX_FORMS or not tensor.shape:
            raise UnsupportedModelError(
                f"{path.name} stores {tensor.name} as {tensor.form.name}; MLX reads only {', '.join(_MLX_FORMS)}.",
                "Take a file in Q4_0, Q4_1, Q8_0 or F16, or the same model as an MLX repository.",
            )
    return file
