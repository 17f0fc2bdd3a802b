from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.llama_rules import check_for_llama
from specviz.engines.llama import trial
from specviz.engines.llama.trial import try_out
from specviz.engines.llama.usable import problem
from tests.engines.raw_gguf import pieces_of
from tests.engines.sound_gguf import write_sound_gguf

pytestmark = pytest.mark.skipif(bool(problem()), reason=problem() or "the library can be used")
LARGEST, INFINITE = 0x7BFF, 0x7C00


def with_scale(path: Path, tensor: str, bits: int) -> Path:
    """A sound file, but for the 16-bit scale of one block of weights."""
    file = pieces_of(write_sound_gguf(path))
    changed = file.tensor(tensor)
    changed.data = struct.pack("<H", bits) + changed.data[2:]
    path.write_bytes(file.encoded())
    check_for_llama(path)
    return path


def test_a_sound_file_and_one_without_a_tokenizer(tmp_path: Path) -> None:
    path = write_sound_gguf(tmp_path / "sound.gguf")
    try_out(path)
    file = pieces_of(path)
    file.entries = [entry for entry in file.entries if not entry.key.startswith("tokenizer.")]
    file.entries.append(type(file.entries[0])("tokenizer.ggml.model", 8, "no_vocab"))
    path.write_bytes(file.encoded())
    try_out(path, tokenizer=False)


def test_infinite_weights(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="'blk.1.ffn_up.weight' has invalid data"):
        try_out(with_scale(tmp_path / "infinite.gguf", "blk.1.ffn_up.weight", INFINITE))


def test_keys_that_do_not_fit_the_cache_end_no_process(tmp_path: Path) -> None:
    """The library's fused attention would abort."""
    with pytest.raises(UnsupportedModelError, match="large.gguf gives scores that are no numbers"):
        try_out(with_scale(tmp_path / "large.gguf", "blk.0.attn_k.weight", LARGEST))


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")
def test_a_file_that_ends_the_process_ends_the_trial_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\necho 'x.cpp:1: GGML_ASSERT(n > 0) failed' >&2\nkill -ABRT $$\n")
    dying.chmod(0o755)
    path = write_sound_gguf(tmp_path / "bad.gguf")
    monkeypatch.setattr("sys.executable", str(dying))
    with pytest.raises(UnsupportedModelError, match=r"bad.gguf ends the GGUF engine .*GGML_ASSERT\(n > 0\) failed"):
        try_out(path)


def test_a_file_on_which_the_library_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_START_S", 0)
    with pytest.raises(UnsupportedModelError, match="hangs in the GGUF engine: 0 s passed"):
        try_out(write_sound_gguf(tmp_path / "slow.gguf"))


def test_what_the_check_refuses_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", None)
    path = tmp_path / "cut.gguf"
    path.write_bytes(write_sound_gguf(tmp_path / "sound.gguf").read_bytes()[:5000])
    with pytest.raises(UnsupportedModelError, match="not a complete GGUF file"):
        try_out(path)
