"""What ik_llama.cpp takes for granted in a GGUF file: it ends the process where one of these rules is broken.

Rules that it checks itself (a missing key, a tensor of another shape) are left to it: its own words are in the error. A
rule here holds for every architecture that the library knows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.parts import read_model
from specviz.engines.gguf.read import GgufFile

#: Forms that the library knows but cannot multiply by, or does not know.
_NO_WEIGHTS = frozenset(
    "I8 I16 I32 I64 F64 Q8_1 Q8_K Q8_K16 Q8_K32 Q8_K64 Q8_K128 Q8_KR8 Q8_0_X4 Q8_1_X4 Q8_2_X4 Q8_K_R16 Q4_0_4X4 "
    "Q4_0_4X8 Q4_0_8X8 TQ1_0 TQ2_0 NVFP4".split()
)
#: They multiply blocks of eight times their 64 values.
_WIDE, _WIDE_MIN = ("IQ1_BN", "IQ2_BN", "IQ2_BN_R4"), 512
_ENCODERS = frozenset(
    "bert modern-bert nomic-bert nomic-bert-moe neo-bert jina-bert-v2 jina-bert-v3 eurobert gemma-embedding t5 "
    "t5encoder clip wavtokenizer-dec".split()
)
_ROPE_SCALINGS = ("none", "linear", "yarn")
_EXPERTS_MAX = 512
_LAYERS_MAX = 512
_CONTEXT_MAX = (1 << 31) - 1
#: Products of these are computed in 32 bits.
_HEADS_MAX, _LENGTH_MAX = 1 << 12, 1 << 19
_LENGTHS = ("embedding_length", "feed_forward_length", "attention.key_length", "attention.value_length")
#: Sizes that a file may give for each layer, and numbers that it may.
_WHOLE_LISTS = frozenset(
    "feed_forward_length attention.head_count attention.head_count_kv attention.sliding_window_pattern "
    "rope.dimension_sections rope.dimension_count_per_layer".split()
)
_FLOAT_LISTS = frozenset(
    "rope.freq_base_per_layer swiglu_clamp_exp swiglu_clamp_shexp swiglu_limits swiglu_limits_shared".split()
)
_WHOLE = ("list of u32", "list of i32", "list of bool")
_TOKENIZERS_WITHOUT_TEXT = (None, "none", "no_vocab", "bert", "rwkv")
#: Tokenizer → the highest id that the library takes for a special token where the file names none.
_DEFAULT_IDS = {"llama": 2, "gpt2": 11, "plamo2": 3}


def check_for_llama(path: Path, tokenizer: bool = True) -> GgufFile:
    """Check that a file is sound, and has nothing on which ik_llama.cpp would end the process.

    Args:
        path: of a split model the first part; the others are checked too.
        tokenizer: whether it must have one.

    Raises:
        UnsupportedModelError: see `read_model`; or it breaks a rule of the library.
    """
    file = read_model(path)
    for why in _broken(file, tokenizer):
        raise UnsupportedModelError(f"{path.name} cannot be run by the GGUF engine: {why}.", "Use another file.")
    return file


def _broken(file: GgufFile, tokenizer: bool) -> Iterator[str]:
    """Why a file cannot be run, if it cannot."""
    architecture = file.metadata.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        yield f"its 'general.architecture' is {architecture!r}, and must be the name of an architecture"
    elif architecture in _ENCODERS:
        yield f"its architecture {architecture!r} writes no text"
    else:
        yield from _numbers(file, architecture)
    if file.types.get("general.file_type", "u32") != "u32":
        yield f"its 'general.file_type' has the type {file.types['general.file_type']}, and must have u32"
    yield from _weights(file)
    if tokenizer:
        yield from _vocabulary(file)


def _numbers(file: GgufFile, architecture: str) -> Iterator[str]:
    """The sizes of the model."""
    own = {
        key.removeprefix(f"{architecture}."): value
        for key, value in file.metadata.items()
        if key.startswith(f"{architecture}.")
    }
    for key, value in own.items():
        values = value if isinstance(value, list) else [value]
        if any(isinstance(v, float) and not math.isfinite(v) for v in values):
            yield f"its '{architecture}.{key}' is {value!r}, which is no number"
        kind = file.types[f"{architecture}.{key}"]
        if kind.startswith("list") and (
            (key in _WHOLE_LISTS and kind not in _WHOLE) or (key in _FLOAT_LISTS and kind != "list of f32")
        ):
            yield f"its '{architecture}.{key}' is a {kind}"
        if key.endswith(("epsilon", "rope.freq_base")) and not (isinstance(value, int | float) and value > 0):
            yield f"its '{architecture}.{key}' is {value!r}, and must be above 0"

    def whole(key: str, default: int = 0) -> int:
        value = own.get(key, default)
        return value if isinstance(value, int) else default

    for key, most in (("block_count", _LAYERS_MAX), ("context_length", _CONTEXT_MAX)):
        if not 1 <= whole(key, 1) <= most:
            yield f"its '{architecture}.{key}' is {own[key]}, and must be from 1 to {most:,}"
    for keys, most in ((("attention.head_count", "attention.head_count_kv"), _HEADS_MAX), (_LENGTHS, _LENGTH_MAX)):
        for key in keys:
            value = own.get(key, 0)
            if any(isinstance(v, int) and not 0 <= v <= most for v in (value if isinstance(value, list) else [value])):
                yield f"its '{architecture}.{key}' is {value}, and must be at most {most:,}"
    heads = whole("attention.head_count")
    head = whole("attention.key_length", whole("embedding_length") // heads if heads else 0)
    turned = whole("rope.dimension_count")
    if turned % 2 or (head and turned > head):
        yield f"it turns {turned} of the {head} numbers of a head by the position"
    experts, used = whole("expert_count"), whole("expert_used_count")
    if not 0 <= experts <= _EXPERTS_MAX or not min(experts, 1) <= used <= experts:
        yield f"it uses {used} of {experts} experts"
    scaling = own.get("rope.scaling.type", "none")
    if scaling not in _ROPE_SCALINGS:
        yield f"it scales positions by {scaling!r}, and only {', '.join(_ROPE_SCALINGS)} are known"


def _weights(file: GgufFile) -> Iterator[str]:
    for tensor in file.tensors.values():
        form = tensor.form.name
        if form in _NO_WEIGHTS:
            yield f"it stores {tensor.name} as {form}, which cannot be computed with"
        if form in _WIDE and tensor.shape[0] < _WIDE_MIN:
            yield f"it stores {tensor.name} as {form}, and its rows have less than {_WIDE_MIN} values"
        if form == "Q8_KV" and tensor.name == "token_embd.weight":
            yield f"it stores {tensor.name} as {form}, of which no row can be read alone"
        if form != "F32" and (len(tensor.shape) < 2 or "norm" in tensor.name or tensor.name.endswith(".bias")):
            yield f"it stores {tensor.name} as {form}, and must store it as F32"


def _vocabulary(file: GgufFile) -> Iterator[str]:
    def of(key: str) -> tuple[object, str]:
        return file.metadata.get(f"tokenizer.ggml.{key}"), file.types.get(f"tokenizer.ggml.{key}", "")

    model = of("model")[0]
    if model in _TOKENIZERS_WITHOUT_TEXT:
        yield f"its 'tokenizer.ggml.model' is {model!r}, which splits no text of a language model"
    tokens, kind = of("tokens")
    if not isinstance(tokens, list) or kind != "list of text" or not tokens:
        yield "its 'tokenizer.ggml.tokens' must be a list of texts"
        return
    size = len(tokens)
    for key, forms in (("scores", ("list of f32",)), ("token_type", ("list of i32", "list of u32"))):
        values, kind = of(key)
        if values is not None and kind not in forms:
            yield f"its 'tokenizer.ggml.{key}' has the type {kind}, and must be a {forms[0]}"
        elif isinstance(values, list) and len(values) != size:
            yield f"its 'tokenizer.ggml.{key}' has {len(values)} values for {size} tokens"
    merges, kind = of("merges")
    if merges is not None and kind != "list of text":
        yield f"its 'tokenizer.ggml.merges' has the type {kind}, and must be a list of texts"
    elif isinstance(merges, list) and (odd := [merge for merge in merges if not _two_parts(merge)]):
        yield f"its merge {odd[0]!r} has no two parts"
    if (kind := of("precompiled_charsmap")[1]) not in ("", "list of i8", "list of u8"):
        yield f"its 'tokenizer.ggml.precompiled_charsmap' has the type {kind}, and must be a list of bytes"
    if (embedding := file.tensors.get("token_embd.weight")) and embedding.shape[-1] != size:
        yield f"it has {size} tokens, and token_embd.weight has {embedding.shape[-1]} rows"
    if size <= (default := _DEFAULT_IDS.get(str(model), 0)):
        yield f"it has {size} tokens, and its tokenizer {model!r} has more than {default}"
    # The library reads texts up to their first zero byte, and gives empty ones a name.
    texts = [text.partition("\0")[0] or f"[EMPTY_{i}]" for i, text in enumerate(tokens)]
    if len(set(texts)) != size:
        first: dict[str, int] = {}
        again = next(i for i, text in enumerate(texts) if first.setdefault(text, i) != i)
        yield f"its tokens {first[texts[again]]} and {again} are both {texts[again]!r}"
    if model == "llama" and (missing := _missing_bytes(set(texts))):
        yield f"its tokenizer has no token for {len(missing)} of the 256 bytes, such as {missing[0]}"


def _two_parts(merge: str) -> bool:
    """A space behind the first character, and something behind it."""
    return 0 < merge.find(" ", 1) < len(merge) - 1


def _missing_bytes(texts: set[str]) -> list[str]:
    """A text that the vocabulary does not have is split into bytes."""
    return [
        name
        for byte in range(256)
        if (name := f"<0x{byte:02X}>") not in texts and not (byte < 128 and chr(byte) in texts)
    ]
