"""Folders as Ollama, LM Studio, llama.cpp and the client of the Hugging Face hub leave them, with tiny GGUF files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import gguf

COMMIT = "c" * 40


def write_gguf(
    path: Path, architecture: str = "llama", file_type: int = 15, pre: str = "llama-bpe", **entries: Any
) -> Path:
    """A GGUF file without weights that says these things of itself.

    Args:
        file_type: 15 is Q4_K_M. pre: rule of splitting text. entries: "_" stands for "." in their names, once.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_file_type(file_type)
    for key, value in entries.items():
        name = key.replace("_", ".", 1)
        writer.add_uint32(name, value) if isinstance(value, int) else writer.add_string(name, value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(["a", "b", "c"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def in_hub_cache(cache: Path, repo: str, *names: str, **entries: Any) -> Path:
    """Files of a repository; returns the folder of its snapshot."""
    folder = cache / f"models--{repo.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True, exist_ok=True)
    (folder / "refs" / "main").write_text(COMMIT)
    for name in names:
        write_gguf(folder / "snapshots" / COMMIT / name, **entries)
    return folder / "snapshots" / COMMIT


def in_ollama(models: Path, name: str, tag: str, *extra_layers: str, host: str = "", **entries: Any) -> Path:
    """A model of Ollama's; returns its blob.

    Args:
        name: `library/llama3.2`. extra_layers: what they are, as in "projector".
    """
    blob = write_gguf(models / "new", **entries)
    digest = hashlib.sha256(blob.read_bytes() + name.encode() + tag.encode()).hexdigest()
    (models / "blobs").mkdir(exist_ok=True)
    blob = blob.rename(models / "blobs" / f"sha256-{digest}")
    layers = [{"mediaType": f"application/vnd.ollama.image.{kind}", "digest": f"sha256:{'0' * 64}", "size": 1}
              for kind in ("template", "params", *extra_layers)]  # fmt: skip
    layers.insert(0, {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}", "size": 1})
    write_manifest(models, name, tag, {"schemaVersion": 2, "config": {}, "layers": layers}, host)
    return blob


def write_manifest(models: Path, name: str, tag: str, content: Any, host: str = "") -> None:
    file = models / "manifests" / (host or "registry.ollama.ai") / name / tag
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
