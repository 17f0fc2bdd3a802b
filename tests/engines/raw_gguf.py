"""Pieces of a GGUF file as bytes, so that a test can put together files that no writer would write."""

from __future__ import annotations

import struct


def header(tensors: int, entries: int, rest: bytes, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entries) + rest


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def entry(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: bytes, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


LLAMA = entry(b"general.architecture", 8, text(b"llama"))
