"""How much memory a GGUF model takes, and how much there is."""

from __future__ import annotations

from pathlib import Path

from specviz.engines.gguf.read import GgufFile

_NUMBER_BYTES = 2  # of the cache, which holds 16-bit floats
_PASS, _SCORE_BYTES = 128, 4  # tokens of the largest pass, each with a score for every token of vocabulary and context
_CGROUP = Path("/sys/fs/cgroup")


def needed(file: GgufFile, context: int) -> int:
    """Bytes that a model takes with one cache: its weights, keys and values of a full context, and scores of a pass.

    Args:
        file: see `specviz.engines.gguf.parts.read_model`.
        context: tokens.
    """
    embedding = file.tensors.get("token_embd.weight")
    vocabulary = embedding.shape[-1] if embedding else 0
    scores = min(context, _PASS) * (vocabulary + context * _heads(file)) * _SCORE_BYTES
    return file.file_bytes + context * cache_bytes(file) + scores


def _heads(file: GgufFile) -> int:
    """Heads of a layer; 0 where the file does not say."""
    value = file.metadata.get(f"{file.metadata.get('general.architecture')}.attention.head_count", 0)
    return max([v for v in (value if isinstance(value, list) else [value]) if isinstance(v, int)], default=0)


def cache_bytes(file: GgufFile) -> int:
    """Bytes of keys and values that one token takes in a cache; 0 where the file does not say."""
    architecture = file.metadata.get("general.architecture")

    def numbers(key: str, default: int = 0) -> list[int]:
        value = file.metadata.get(f"{architecture}.{key}", default)
        return [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, int)] or [default]

    layers = numbers("block_count")[0]
    heads = max(numbers("attention.head_count"))
    if not layers or not heads:
        return 0
    head = numbers("embedding_length")[0] // heads
    lengths = numbers("attention.key_length", head)[0] + numbers("attention.value_length", head)[0]
    kv_heads = numbers("attention.head_count_kv", heads)
    in_all = sum(kv_heads) if len(kv_heads) == layers else max(kv_heads) * layers
    return in_all * lengths * _NUMBER_BYTES


def available() -> int:
    """Bytes that a process can still take without swapping: of the machine, or of the container if that has less."""
    import psutil

    machine = int(psutil.virtual_memory().available)
    container = _of_container()
    return machine if container is None else min(machine, container)


def _of_container() -> int | None:
    """What a limit of cgroups leaves, in bytes; pages of files that are only cached can be given back."""
    try:
        limit, used = ((_CGROUP / f"memory.{what}").read_text(encoding="ascii") for what in ("max", "current"))
        counts = (_CGROUP / "memory.stat").read_text(encoding="ascii").split()
        return max(0, int(limit) - int(used) + int(counts[counts.index("inactive_file") + 1]))
    except (OSError, ValueError):  # no limit is the word "max"
        return None
