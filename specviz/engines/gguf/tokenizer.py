"""The tokenizer of a GGUF file, written as the two files of a Hugging Face tokenizer.

Only byte-level BPE ("gpt2" in GGUF). The file names its pre-tokenizer, the rule that splits text before the merges, but
does not contain it. A wrong rule gives ids that the model never saw, without an error, so an unknown name is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.metadata import TokenizerMetadata

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LLAMA3 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_GPT2 = ("gpt-2", "gpt2", "default", "")
PRE_TOKENIZERS = ("smollm", "gpt-2", "llama-bpe", "qwen2")

_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4  # token types of GGUF; 1 is normal, 5 unused, 6 a byte


def write_tokenizer(metadata: TokenizerMetadata, folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json into `folder`, which exists.

    Raises:
        UnsupportedModelError: no tokenizer in the file, or one of a kind that cannot be rebuilt exactly.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models

    if metadata.kind != "gpt2":
        raise UnsupportedModelError(
            f"The GGUF file has a tokenizer of type {metadata.kind!r}; only byte-level BPE ('gpt2') can be rebuilt "
            "from GGUF.",
            "Use the same model as a Hugging Face repository or folder.",
        )
    pieces, pre = metadata.pieces, metadata.pre
    merges = [(left, right) for left, _, right in (merge.partition(" ") for merge in metadata.merges)]
    if not pieces or not merges:
        raise UnsupportedModelError("The GGUF file has no vocabulary or no merges.", "Use a complete file.")
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    if len(vocabulary) != len(pieces):
        raise UnsupportedModelError("The GGUF vocabulary lists the same token twice.", "Use another file.")

    try:
        # Llama 3 takes a whole word that is in the vocabulary before it tries merges.
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=pre == "llama-bpe"))
    except Exception as exc:  # the tokenizers library raises bare Exception for a merge outside the vocabulary
        raise UnsupportedModelError(f"The GGUF merges do not fit its vocabulary: {exc}.", "Use another file.") from exc
    _set_pre_tokenizer(tokenizer, pre)
    tokenizer.decoder = decoders.ByteLevel()
    for piece, token_type in zip(pieces, metadata.types, strict=False):
        if token_type in (_CONTROL, _UNKNOWN):
            tokenizer.add_special_tokens([AddedToken(piece, special=True, normalized=False)])
        elif token_type == _USER_DEFINED:
            tokenizer.add_tokens([AddedToken(piece, special=False, normalized=False)])
    if tokenizer.get_vocab_size() != len(pieces):
        raise UnsupportedModelError("The GGUF token types do not fit its vocabulary.", "Use another file.")
    _check_ends(metadata)
    _add_bos(tokenizer, metadata)
    tokenizer.save(str(folder / "tokenizer.json"))

    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    for role, token_id in (
        ("bos", metadata.bos),
        ("eos", metadata.eos),
        ("pad", metadata.padding),
        ("unk", metadata.unknown),
    ):
        if token_id is not None and token_id < len(pieces):
            config[f"{role}_token"] = pieces[token_id]
    if metadata.template:
        config["chat_template"] = metadata.template
    if metadata.context_length:
        config["model_max_length"] = metadata.context_length
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False), encoding="utf-8")


def special_ids(metadata: TokenizerMetadata) -> dict[str, int]:
    """`bos_token_id` and `eos_token_id`, those that the file has."""
    ids = {"bos_token_id": metadata.bos, "eos_token_id": metadata.eos}
    return {role: token_id for role, token_id in ids.items() if token_id is not None}


def _check_ends(metadata: TokenizerMetadata) -> None:
    size = len(metadata.pieces)
    for role, token_id in special_ids(metadata).items():
        if token_id >= size:
            raise UnsupportedModelError(
                f"The GGUF file has {token_id} as tokenizer.ggml.{role}, and a vocabulary of {size} tokens.",
                "Use another file, or the same model as an MLX folder or a Hugging Face repository.",
            )


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
            f"The GGUF file splits text by the rule {pre!r}, which specviz does not know.",
            f"Known rules: {', '.join(PRE_TOKENIZERS)}. Use the same model as a Hugging Face repository or folder.",
        )


def _add_bos(tokenizer: Any, metadata: TokenizerMetadata) -> None:
    from tokenizers import processors

    # Llama 3 files leave the flag out and mean yes.
    wanted = metadata.pre == "llama-bpe" if metadata.add_bos is None else metadata.add_bos
    if wanted and metadata.bos is not None:
        token = metadata.pieces[metadata.bos]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{token} $A", pair=f"{token} $A {token} $B", special_tokens=[(token, metadata.bos)]
        )
