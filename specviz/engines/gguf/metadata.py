"""The metadata of a GGUF file as typed values."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from specviz.core.errors import UnsupportedModelError

Count = Annotated[int, Meta(ge=1)]
TokenId = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
_Form = TypeVar("_Form", bound=Struct)


class TokenizerMetadata(Struct, frozen=True):
    """What a file says about its tokenizer."""

    kind: str = field(name="tokenizer.ggml.model", default="")
    pre: str = field(name="tokenizer.ggml.pre", default="")
    pieces: list[str] = field(name="tokenizer.ggml.tokens", default_factory=list)
    merges: list[str] = field(name="tokenizer.ggml.merges", default_factory=list)
    types: list[int] = field(name="tokenizer.ggml.token_type", default_factory=list)
    bos: TokenId | None = field(name="tokenizer.ggml.bos_token_id", default=None)
    eos: TokenId | None = field(name="tokenizer.ggml.eos_token_id", default=None)
    # Never used for text, and some files have a number outside the vocabulary for "none".
    padding: TokenId | None = field(name="tokenizer.ggml.padding_token_id", default=None)
    unknown: TokenId | None = field(name="tokenizer.ggml.unknown_token_id", default=None)
    add_bos: bool | None = field(name="tokenizer.ggml.add_bos_token", default=None)
    template: str = field(name="tokenizer.chat_template", default="")
    context_length: Count | None = field(name="llama.context_length", default=None)


class LlamaMetadata(Struct, frozen=True):
    """What a file says about a model of the Llama family. Lengths in values, context in tokens."""

    embedding_length: Count = field(name="llama.embedding_length")
    block_count: Count = field(name="llama.block_count")
    feed_forward_length: Count = field(name="llama.feed_forward_length")
    context_length: Count = field(name="llama.context_length")
    head_count: Count = field(name="llama.attention.head_count")
    norm_epsilon: Positive = field(name="llama.attention.layer_norm_rms_epsilon")
    head_count_kv: Count | None = field(name="llama.attention.head_count_kv", default=None)
    key_length: Count | None = field(name="llama.attention.key_length", default=None)
    rope_dimensions: Count | None = field(name="llama.rope.dimension_count", default=None)
    rope_base: Positive = field(name="llama.rope.freq_base", default=10_000.0)
    rope_scaling: str = field(name="llama.rope.scaling.type", default="none")
    rope_factor: Positive | None = field(name="llama.rope.scaling.factor", default=None)


def typed(metadata: Mapping[str, object], form: type[_Form]) -> _Form:
    """The values of one form.

    Args:
        metadata: by key: Python's own values.
        form: one of the classes above; further keys are ignored.

    Raises:
        UnsupportedModelError: a key is missing, or its value is of another type or out of range.
    """
    wanted = msgspec.structs.fields(form)
    values = {f.encode_name: metadata[f.encode_name] for f in wanted if f.encode_name in metadata}
    try:
        return msgspec.convert(values, form)
    except msgspec.ValidationError as exc:
        raise UnsupportedModelError(
            f"The metadata of the GGUF file cannot be used: {str(exc).replace('`$.', '`')}.",
            "Use another file, or the same model as an MLX folder or a Hugging Face repository.",
        ) from exc
