"""Weights of a GGUF file in memory, and what the file says."""

from __future__ import annotations

import ctypes
import weakref
from pathlib import Path

from specviz.core.errors import UnsupportedModelError
from specviz.engines.llama.library import forget_words, last_words, library


class Handle:
    """Weights in memory, freed with the last object that holds this.

    Args:
        path: the file; of a split model its first part.
        tokenizer_only: without the weights.
        check_weights: read all weights, and refuse those that are infinite or no number.

    Attributes:
        pointer: of the library.
        path: the file; of a split model its first part.

    Raises:
        UnsupportedModelError: the library cannot load it.
    """

    def __init__(self, path: Path, tokenizer_only: bool = False, check_weights: bool = False) -> None:
        api = library()
        forget_words()
        parameters = api.llama_model_default_params()
        parameters.vocab_only = tokenizer_only
        parameters.check_tensors = check_weights
        self.path = path
        self.pointer: int | None = api.llama_model_load_from_file(bytes(path), parameters)
        if not self.pointer:
            raise UnsupportedModelError(
                f"{path.name} cannot be loaded by the GGUF engine. {last_words()}".rstrip(),
                "Use another file, or the same model as an MLX folder with --engine mlx.",
            )
        weakref.finalize(self, api.llama_free_model, self.pointer).atexit = False

    @property
    def vocab_size(self) -> int:
        """Logits in a row."""
        size: int = library().llama_n_vocab(self.pointer)
        return size

    @property
    def has_encoder(self) -> bool:
        """Whether it is an encoder, or an encoder and a decoder."""
        return bool(library().llama_model_has_encoder(self.pointer))

    @property
    def precision(self) -> str:
        """The number format of most weights, as the library names it: "Q8_0", "Q4_K - Medium"."""
        buffer = ctypes.create_string_buffer(256)
        library().llama_model_desc(self.pointer, buffer, len(buffer))
        words = buffer.value.decode("utf-8", errors="replace").split(maxsplit=2)
        return words[2] if len(words) == 3 else "as stored"

    @property
    def window(self) -> int:
        """The sliding window that the metadata name, in tokens; 0 for none."""
        text = self.metadata(f"{self.metadata('general.architecture')}.attention.sliding_window")
        return int(text) if text.isdigit() else 0

    def metadata(self, key: str) -> str:
        """The value of a key as text; empty where the file does not have it."""
        api, name = library(), key.encode()
        count = api.llama_model_meta_val_str(self.pointer, name, None, 0)
        if count <= 0:
            return ""
        buffer = ctypes.create_string_buffer(count + 1)
        api.llama_model_meta_val_str(self.pointer, name, buffer, count + 1)
        return buffer.value.decode("utf-8", errors="replace")
