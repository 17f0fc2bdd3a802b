"""Models that are split into several files: what the files say of each other, and the whole model."""

from __future__ import annotations

from pathlib import Path

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.read import GgufFile, TensorInfo, read_gguf

_PARTS_MAX = 9999


def read_model(path: Path) -> GgufFile:
    """What a model says about itself: as `read_gguf`, with the tensors and bytes of all its parts.

    Args:
        path: of a split model the first part; the others lie beside it.

    Raises:
        UnsupportedModelError: see `read_gguf`; or it is another part, a part is missing, or the parts are of different
            models.
    """
    first = read_gguf(path)
    count = _number(first, "split.count", 1)
    if count <= 1:
        return first
    ending = f"-00001-of-{count:05}.gguf"
    if (number := _number(first, "split.no")) != 0:
        raise UnsupportedModelError(
            f"{path.name} is part {number + 1} of {count} of a model.",
            f"Give its first part, whose name ends in {ending}.",
        )
    if not path.name.endswith(ending) or count > _PARTS_MAX:
        raise UnsupportedModelError(
            f"{path.name} is the first of {count} parts of a model, and its name does not end in {ending}.",
            "Give it the name that it had, so that the others are found beside it.",
        )
    return _joined(path, first, [_part(path, ending, n, count) for n in range(1, count)])


def _part(path: Path, ending: str, number: int, count: int) -> GgufFile:
    name = f"{path.name.removesuffix(ending)}-{number + 1:05}-of-{count:05}.gguf"
    part = path.with_name(name)
    if not part.is_file():
        raise UnsupportedModelError(
            f"{path.name} is the first of {count} parts of a model, and {name} is not beside it.",
            "Put all parts into the same folder.",
        )
    file = read_gguf(part)
    found = _number(file, "split.no", -1), _number(file, "split.count", 1)
    if found != (number, count):
        raise UnsupportedModelError(
            f"{name} says that it is part {found[0] + 1} of {found[1]}.", "Fetch all parts of the model again."
        )
    return file


def _joined(path: Path, first: GgufFile, others: list[GgufFile]) -> GgufFile:
    tensors: dict[str, TensorInfo] = {}
    for file in (first, *others):
        if twice := tensors.keys() & file.tensors.keys():
            raise UnsupportedModelError(
                f"Two parts of the model {path.name} have the tensor {min(twice)!r}.",
                "Fetch all parts of the model again.",
            )
        tensors |= file.tensors
    if (count := _number(first, "split.tensors.count", -1)) != len(tensors):
        raise UnsupportedModelError(
            f"{path.name} gives {count} as 'split.tensors.count', and its parts have {len(tensors)} tensors.",
            "Fetch all parts of the model again.",
        )
    return GgufFile(first.metadata, first.types, tensors, sum(file.file_bytes for file in (first, *others)))


def _number(file: GgufFile, key: str, default: int = 0) -> int:
    value = file.metadata.get(key, default)
    return value if isinstance(value, int) else default
