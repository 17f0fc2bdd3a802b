from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.llama_rules import check_for_llama
from tests.engines.raw_gguf import FORM_NUMBERS, Entry, RawGguf, pieces_of
from tests.engines.sound_gguf import write_sound_gguf

Change = Callable[[RawGguf], None]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> RawGguf:
    return pieces_of(write_sound_gguf(tmp_path_factory.mktemp("sound") / "sound.gguf"))


@pytest.mark.parametrize(
    "kind",
    [
        {"architecture": "qwen2"},
        {"architecture": "qwen3"},
        {"architecture": "no-such-model"},
        {"experts": 4},
        {"pieces": "llama"},
        {"forms": {"token_embd": "Q5_1", "ffn_down": "BF16", "attn_k": "F16", "attn_v": "Q4_0", "ffn_up": "F32"}},
    ],
    ids=str,
)
def test_sound_files_pass(tmp_path: Path, kind: dict[str, Any]) -> None:
    file = check_for_llama(write_sound_gguf(tmp_path / "sound.gguf", **kind))
    assert file.metadata["general.architecture"] == kind.get("architecture", "llama")


def value(key: str, new: Any) -> Change:
    def change(file: RawGguf) -> None:
        file.entry(key).value = new

    return change


def added(key: str, kind: int, new: Any, items: int | None = None) -> Change:
    def change(file: RawGguf) -> None:
        file.entries = [entry for entry in file.entries if entry.key != key]
        file.entries.append(Entry(key, kind, new, items))

    return change


def without(key: str) -> Change:
    def change(file: RawGguf) -> None:
        file.entries.remove(file.entry(key))

    return change


def stored(name: str, form: str, nbytes: int, shape: tuple[int, ...] = ()) -> Change:
    def change(file: RawGguf) -> None:
        tensor = file.tensor(name)
        tensor.kind, tensor.data, tensor.shape = FORM_NUMBERS[form], bytes(nbytes), shape or tensor.shape

    return change


def token(at: int, new: str) -> Change:
    def change(file: RawGguf) -> None:
        file.entry("tokenizer.ggml.tokens").value[at] = new

    return change


def shorter(key: str) -> Change:
    def change(file: RawGguf) -> None:
        file.entry(key).value.pop()

    return change


TEXT, U32, F32, I32, LIST = 8, 4, 6, 5, 9
BROKEN: dict[str, tuple[Change, str]] = {
    "no architecture": (without("general.architecture"), "'general.architecture' is None"),
    "an encoder": (value("general.architecture", "bert"), "'bert' writes no text"),
    "layers": (value("llama.block_count", 0), "'llama.block_count' is 0, and must be from 1 to 512"),
    "context": (value("llama.context_length", 2**32 - 1), "'llama.context_length' is 4294967295"),
    "epsilon": (value("llama.attention.layer_norm_rms_epsilon", 0.0), "is 0.0, and must be above 0"),
    "heads": (value("llama.attention.head_count_kv", 2**27 + 1), "is 134217729, and must be at most 4,096"),
    "heads of a layer": (added("llama.attention.head_count", LIST, [2, 2**31], U32), "must be at most 4,096"),
    "width": (value("llama.embedding_length", 2**31), "is 2147483648, and must be at most 524,288"),
    "base of positions": (value("llama.rope.freq_base", -1.0), "'llama.rope.freq_base' is -1.0"),
    "no number": (value("llama.rope.freq_base", math.nan), "'llama.rope.freq_base' is nan, which is no number"),
    "experts": (added("llama.expert_count", U32, 4), "uses 0 of 4 experts"),
    "more experts than there are": (added("llama.expert_used_count", U32, 2), "uses 2 of 0 experts"),
    "thousands of experts": (added("llama.expert_count", U32, 1000), "of 1000 experts"),
    "scaling": (added("llama.rope.scaling.type", TEXT, "longrope"), "scales positions by 'longrope'"),
    "odd rotation": (value("llama.rope.dimension_count", 3), "turns 3 of the 64 numbers"),
    "wide rotation": (value("llama.rope.dimension_count", 128), "turns 128 of the 64 numbers"),
    "heads as fractions": (added("llama.attention.head_count", LIST, [2.0, 2.0], F32), "is a list of f32"),
    "form of the file": (added("general.file_type", TEXT, "Q8_0"), "'general.file_type' has the type text"),
    "norm in 16 bits": (stored("output_norm.weight", "F16", 256), "output_norm.weight as F16"),
    "unknown form": (stored("blk.0.attn_q.weight", "I32", 65536), "blk.0.attn_q.weight as I32"),
    "narrow rows": (stored("blk.0.attn_q.weight", "IQ1_BN", 128 * 28), "less than 512 values"),
    "rows that cannot be read alone": (stored("token_embd.weight", "Q8_KV", 300 * 136), "as Q8_KV"),
    "no tokenizer": (without("tokenizer.ggml.model"), "'tokenizer.ggml.model' is None"),
    "tokenizer without text": (value("tokenizer.ggml.model", "no_vocab"), "'no_vocab'"),
    "no tokens": (without("tokenizer.ggml.tokens"), "'tokenizer.ggml.tokens' must be a list of texts"),
    "tokens as numbers": (added("tokenizer.ggml.tokens", LIST, [1, 2], I32), "must be a list of texts"),
    "types as text": (added("tokenizer.ggml.token_type", LIST, ["1"] * 300, TEXT), "the type list of text"),
    "too few types": (shorter("tokenizer.ggml.token_type"), "has 299 values for 300 tokens"),
    "scores as one number": (added("tokenizer.ggml.scores", F32, 1.0), "the type f32"),
    "merges as numbers": (added("tokenizer.ggml.merges", LIST, [1], I32), "has the type list of i32"),
    "a merge of one part": (added("tokenizer.ggml.merges", LIST, ["t h", "th"], TEXT), "its merge 'th' has no"),
    "map as text": (added("tokenizer.ggml.precompiled_charsmap", TEXT, "x"), "precompiled_charsmap"),
    "rows": (
        stored("token_embd.weight", "F32", 200 * 128 * 4, (128, 200)),
        "300 tokens, and token_embd.weight has 200",
    ),
    "the same token twice": (token(7, "$"), "its tokens 6 and 7 are both '$'"),
    "the same up to a zero byte": (token(7, "$\0more"), "its tokens 6 and 7 are both '$'"),
    "no bytes": (value("tokenizer.ggml.model", "llama"), "no token for 162 of the 256 bytes, such as <0x00>"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_file_on_which_the_library_would_end_the_process(tmp_path: Path, sound: RawGguf, broken: str) -> None:
    change, named = BROKEN[broken]
    entries = [Entry(e.key, e.kind, list(e.value) if e.items is not None else e.value, e.items) for e in sound.entries]
    file = RawGguf(entries, [type(t)(t.name, t.shape, t.kind, t.data) for t in sound.tensors])
    change(file)
    path = tmp_path / "broken.gguf"
    path.write_bytes(file.encoded())
    with pytest.raises(UnsupportedModelError) as caught:
        check_for_llama(path)
    assert named in caught.value.message
    assert caught.value.remedy


def test_few_tokens(tmp_path: Path, sound: RawGguf) -> None:
    """The library takes 11 for the end of text where a byte-level tokenizer does not name one."""
    file = RawGguf([Entry(e.key, e.kind, e.value, e.items) for e in sound.entries], [])
    for key in ("tokens", "token_type"):
        file.entry(f"tokenizer.ggml.{key}").value = file.entry(f"tokenizer.ggml.{key}").value[:11]
    path = tmp_path / "few.gguf"
    path.write_bytes(file.encoded())
    with pytest.raises(UnsupportedModelError, match="has 11 tokens"):
        check_for_llama(path)


def test_a_draft_with_the_tokens_of_its_target_needs_no_tokenizer(tmp_path: Path, sound: RawGguf) -> None:
    file = RawGguf([entry for entry in sound.entries if not entry.key.startswith("tokenizer.")], sound.tensors)
    path = tmp_path / "draft.gguf"
    path.write_bytes(file.encoded())
    assert check_for_llama(path, tokenizer=False)
    with pytest.raises(UnsupportedModelError):
        check_for_llama(path)
