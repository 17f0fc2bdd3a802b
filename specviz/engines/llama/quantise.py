"""Another number format for a GGUF file, by the program that comes with the library.

It runs as a process of its own, so a file that it cannot read ends that process alone.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from specviz.core.errors import UnsupportedModelError


def quantise(source: Path, target: Path, form: str) -> None:
    """Write a file in another format; norms stay in float32.

    Args:
        source: a checked GGUF file. Its weights may be quantised already: they are read as they are.
        target: does not exist; may be half-written when this raises.
        form: as llama.cpp names it, such as "Q8_0".

    Raises:
        UnsupportedModelError: the program is missing or failed.
        OSError: it cannot be started.
    """
    from ik_llama_cpp.quantize import find_quantize_bin

    remedy = "Use the model with --engine mlx."
    program = find_quantize_bin()
    if program is None:
        raise UnsupportedModelError("ik-llama-cpp-python was installed without its program llama-quantize.", remedy)
    command = [str(program), "--allow-requantize", str(source), str(target), form]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode or not target.is_file():
        said = done.stdout.decode(errors="replace").strip().rpartition("\n")[2]
        raise UnsupportedModelError(f"{source.name} cannot be converted to {form}: {said or done.returncode}.", remedy)
