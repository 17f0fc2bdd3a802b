"""The tokenizer inside a GGUF file, written as the two files that Hugging Face tokenizers are made of.

Only byte-level BPE ("gpt2" in GGUF). The file names its pre-tokenizer, the rule that cuts text before merges apply,
but does not hold it: a wrong rule gives ids that the model never saw, silently. So an unknown name is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.metadata import Metadata, flag, optional_id, text, texts, whole, whole_list

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LLAMA3 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_GPT2 = ("gpt-2", "gpt2", "default", "")
PRE_TOKENIZERS = ("smollm", "gpt-2", "llama-bpe", "qwen2")

_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4  # token types of GGUF; 1 is normal, 5 unused, 6 a byte


def write_tokenizer(metadata: Metadata, folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json into `folder`.

    Args:
        metadata: of the GGUF file, as `mx.load` returns it.
        folder: exists.

    Raises:
        UnsupportedModelError: no tokenizer in the file, or one of a kind that cannot be rebuilt exactly.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models

    kind = text(metadata, "tokenizer.ggml.model")
    if kind != "gpt2":
        raise UnsupportedModelError(
            f"The GGUF file has a tokenizer of type {kind!r}; only byte-level BPE ('gpt2') can be rebuilt from GGUF.",
            "Use the same model as a Hugging Face repository or folder.",
        )
    pieces = texts(metadata, "tokenizer.ggml.tokens")
    merges = [(left, right) for left, _, right in (m.partition(" ") for m in texts(metadata, "tokenizer.ggml.merges"))]
    if not pieces or not merges:
        raise UnsupportedModelError("The GGUF file has no vocabulary or no merges.", "Use a complete file.")
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    if len(vocabulary) != len(pieces):
        raise UnsupportedModelError("The GGUF vocabulary lists the same token twice.", "Use another file.")
    pre = text(metadata, "tokenizer.ggml.pre")

    try:
        # Llama 3 takes a whole word that is in the vocabulary before it tries merges.
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=pre == "llama-bpe"))
    except Exception as exc:  # the tokenizers library raises bare Exception for a merge outside the vocabulary
        raise UnsupportedModelError(f"The GGUF merges do not fit its vocabulary: {exc}.", "Use another file.") from exc
    _set_pre_tokenizer(tokenizer, pre)
    tokenizer.decoder = decoders.ByteLevel()
    for piece, token_type in zip(pieces, whole_list(metadata, "tokenizer.ggml.token_type"), strict=False):
        if token_type in (_CONTROL, _UNKNOWN):
            tokenizer.add_special_tokens([AddedToken(piece, special=True, normalized=False)])
        elif token_type == _USER_DEFINED:
            tokenizer.add_tokens([AddedToken(piece, special=False, normalized=False)])
    if tokenizer.get_vocab_size() != len(pieces):
        raise UnsupportedModelError("The GGUF token types do not fit its vocabulary.", "Use another file.")
    ids = special_ids(metadata)
    _add_bos(tokenizer, metadata, pieces)
    tokenizer.save(str(folder / "tokenizer.json"))

    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    for role, token_id in (
        ("bos", ids.get("bos_token_id")),
        ("eos", ids.get("eos_token_id")),
        # Never used here, and some files have a number outside the vocabulary for "none".
        ("pad", _id_of(metadata, "padding")),
        ("unk", _id_of(metadata, "unknown")),
    ):
        if token_id is not None and token_id < len(pieces):
            config[f"{role}_token"] = pieces[token_id]
    if template := text(metadata, "tokenizer.chat_template"):
        config["chat_template"] = template
    if "llama.context_length" in metadata:
        config["model_max_length"] = whole(metadata, "llama.context_length")
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False), encoding="utf-8")


def special_ids(metadata: Metadata) -> dict[str, int]:
    """`bos_token_id` and `eos_token_id` as far as the file gives them.

    Raises:
        UnsupportedModelError: one of them is no token of the file's vocabulary.
    """
    size = len(texts(metadata, "tokenizer.ggml.tokens"))
    ids: dict[str, int] = {}
    for role in ("bos", "eos"):
        token_id = _id_of(metadata, role)
        if token_id is None:
            continue
        if token_id >= size:
            raise UnsupportedModelError(
                f"The GGUF file says tokenizer.ggml.{role}_token_id is {token_id}, but has {size} tokens.",
                "Use another file, or the same model as an MLX folder or a Hugging Face repository.",
            )
        ids[f"{role}_token_id"] = token_id
    return ids


def _id_of(metadata: Metadata, role: str) -> int | None:
    return optional_id(metadata, f"tokenizer.ggml.{role}_token_id")


def _set_pre_tokenizer(tokenizer: Any, pre: str) -> None:
    from tokenizers import Regex, normalizers, pre_tokenizers

    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if pre == "smollm":
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    elif pre in _GPT2:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    elif pre in ("llama-bpe", "qwen2"):
        pattern = Regex(_LLAMA3 if pre == "llama-bpe" else _QWEN2)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(pattern, "isolated"), byte_level])
        if pre == "qwen2":
            tokenizer.normalizer = normalizers.NFC()
    else:
        raise UnsupportedModelError(
            f"The GGUF file cuts text by the rule {pre!r}, which is not known here.",
            f"Known rules: {', '.join(PRE_TOKENIZERS)}. Use the same model as a Hugging Face repository or folder.",
        )


def _add_bos(tokenizer: Any, metadata: Metadata, pieces: list[str]) -> None:
    from tokenizers import processors

    bos = _id_of(metadata, "bos")
    # Llama 3 files leave the flag out and mean yes.
    wants_bos = flag(metadata, "tokenizer.ggml.add_bos_token", text(metadata, "tokenizer.ggml.pre") == "llama-bpe")
    if wants_bos and bos is not None:
        token = pieces[bos]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{token} $A", pair=f"{token} $A {token} $B", special_tokens=[(token, bos)]
        )
