from __future__ import annotations

import struct
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.forms import FORMS
from specviz.engines.gguf.read import read_gguf, read_metadata
from tests.engines.raw_gguf import LLAMA, entry, header, tensor, text
from tests.engines.sound_gguf import write_sound_gguf


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sound_gguf(tmp_path_factory.mktemp("sound") / "sound.gguf", {"attn_q": "F16", "ffn_up": "Q5_0"})


def refusal(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "odd.gguf"
    path.write_bytes(data)
    with pytest.raises(UnsupportedModelError) as caught:
        read_gguf(path)
    assert caught.value.remedy
    return caught.value.message


def test_all_is_read_as_the_reader_of_llama_cpp_reads_it(sound: Path) -> None:
    import gguf

    theirs, ours = gguf.GGUFReader(sound), read_gguf(sound)
    values = {key: field.contents() for key, field in theirs.fields.items() if not key.startswith("GGUF.")}
    assert ours.metadata == values
    assert [(t.name, t.shape, t.form.name, t.begin, t.nbytes) for t in ours.tensors.values()] == [
        (t.name, tuple(t.shape), t.tensor_type.name, t.data_offset, t.n_bytes) for t in theirs.tensors
    ]
    assert ours.types["tokenizer.ggml.tokens"] == "list of text"
    assert ours.types["llama.block_count"] == "u32"


def test_forms_have_the_sizes_of_llama_cpp() -> None:
    from gguf import GGML_QUANT_SIZES

    sizes = {kind.name: size for kind, size in GGML_QUANT_SIZES.items()}
    ours = {form.name: (form.values, form.block_bytes) for form in FORMS.values()}
    shared = sizes.keys() & ours.keys()
    # Both are formats of a computation only, and differ in the two libraries.
    differing = {"Q8_1", "Q8_K"}
    assert len(shared) > 25
    assert {name: sizes[name] for name in shared - differing} == {name: ours[name] for name in shared - differing}


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (0, b"\xff", 255),
        (1, b"\xff", -1),
        (2, b"\xff\xff", 65535),
        (3, b"\xff\xff", -1),
        (4, struct.pack("<I", 2**32 - 1), 2**32 - 1),
        (5, struct.pack("<i", -5), -5),
        (6, struct.pack("<f", 0.5), 0.5),
        (7, b"\x01", True),
        (8, text("später".encode()), "später"),
        (8, text(b"a\xffb"), "a\ufffdb"),
        (10, struct.pack("<Q", 2**64 - 1), 2**64 - 1),
        (11, struct.pack("<q", -(2**63)), -(2**63)),
        (12, struct.pack("<d", 1e300), 1e300),
        (9, struct.pack("<IQ", 7, 2) + b"\x01\x00", [True, False]),
        (9, struct.pack("<IQ", 8, 2) + text(b"") + text(b"b\0"), ["", "b\0"]),
        (9, struct.pack("<IQ", 6, 0), []),
    ],
)
def test_values_of_all_types(tmp_path: Path, kind: int, value: bytes, read: object) -> None:
    path = tmp_path / "values.gguf"
    path.write_bytes(header(0, 2, LLAMA + entry(b"x", kind, value)))
    found = read_metadata(path)["x"]
    assert found == read and type(found) is type(read)


def with_alignment(kind: int, value: bytes) -> bytes:
    return header(0, 2, LLAMA + entry(b"general.alignment", kind, value))


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (header(0, 1, LLAMA, version=1), "version is 1"),
        (header(0, 1, LLAMA, version=3 << 24), "version is 50331648"),
        (header(0, 2, LLAMA + LLAMA), "'general.architecture' twice"),
        (header(0, 2, LLAMA + entry(b"x\xff", 4, bytes(4))), "not UTF-8"),
        (header(0, 2, LLAMA + entry(b"x\0", 4, bytes(4))), "zero byte"),
        (header(0, 2, LLAMA + entry(b"x", 13, bytes(4))), "unknown type 13"),
        (header(0, 2, LLAMA + entry(b"x", 9, struct.pack("<IQ", 13, 1) + bytes(4))), "unknown type 13"),
        (header(0, 2, LLAMA + entry(b"x", 9, struct.pack("<IQ", 8, 1) + text(b"\xff"))), "in 'x' is not UTF-8"),
        (header(0, 2, LLAMA + entry(b"x", 7, b"\x02")), "neither 0 nor 1"),
        (with_alignment(4, struct.pack("<I", 24)), "is 24, which is no power of two"),
        (with_alignment(4, struct.pack("<I", 0)), "is 0, which is no power of two"),
        (with_alignment(10, struct.pack("<Q", 32)), "no power of two"),
        (with_alignment(8, text(b"32")), "no power of two"),
        (header(1, 1, LLAMA + tensor(b"a", (1,) * 5)), "5 dimensions"),
        (header(1, 1, LLAMA + tensor(b"a", (4, 0)) + bytes(64)), "shape [4, 0] in F32"),
        (header(1, 1, LLAMA + tensor(b"a", (31,), kind=8) + bytes(64)), "shape [31] in Q8_0"),
        (header(1, 1, LLAMA + tensor(b"a", (32, 6), kind=202) + bytes(200)), "shape [32, 6] in Q4_0_R8"),
        (header(1, 1, LLAMA + tensor(b"a", (4,), kind=4) + bytes(64)), "stores a as type 4"),
        (header(1, 1, LLAMA + tensor(b"a", (4,), offset=8) + bytes(64)), "begins at 8"),
        (header(1, 1, LLAMA + tensor(b"a" * 64, (4,)) + bytes(64)), "too long"),
        (header(1, 1, LLAMA + tensor(b"\xff", (4,)) + bytes(64)), "not UTF-8"),
        (header(2, 1, LLAMA + tensor(b"a", (4,)) * 2 + bytes(99)), "'a' twice"),
        (header(2, 1, LLAMA + tensor(b"a", (9,)) + tensor(b"b", (4,), offset=32) + bytes(99)), "'a' and 'b' overlap"),
    ],
)
def test_what_no_reader_should_see(tmp_path: Path, data: bytes, named: str) -> None:
    assert named in refusal(tmp_path, data)


def test_a_tensor_of_one_value(tmp_path: Path) -> None:
    path = tmp_path / "scalar.gguf"
    path.write_bytes(header(1, 1, LLAMA + tensor(b"a", ()) + bytes(64)))
    assert read_gguf(path).tensors["a"].nbytes == 4


@pytest.mark.parametrize("keep", [0, 3, 4, 23, 40, 5_000, 9_000, -1, -2_000])
def test_a_file_without_its_end(sound: Path, tmp_path: Path, keep: int) -> None:
    message = refusal(tmp_path, sound.read_bytes()[:keep])
    assert ("not a complete GGUF" if keep not in (0, 3) else "not a GGUF") in message


def test_bytes_that_changed_are_refused_or_read(sound: Path, tmp_path: Path) -> None:
    whole, path, refused = sound.read_bytes(), tmp_path / "damaged.gguf", 0
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        at = int(rng.integers(0, 7_000))
        damaged[at : at + 8] = rng.bytes(8)
        path.write_bytes(damaged)
        try:
            read_gguf(path)
        except UnsupportedModelError as exc:
            refused += 1
            assert exc.remedy
    assert refused > 100


A_LIST = LLAMA + text(b"x") + struct.pack("<I", 9)


@pytest.mark.parametrize(
    "data",
    [
        header(0, 2**60, LLAMA),
        header(2**60, 1, LLAMA),
        header(0, 2, A_LIST + struct.pack("<IQ", 4, 2**40)),
        header(0, 2, A_LIST + struct.pack("<IQ", 0, 2**63)),
        header(0, 2, A_LIST + struct.pack("<IQ", 8, 2**40)),
        header(0, 2, A_LIST + struct.pack("<IQQ", 8, 1, 2**63) + bytes(99)),
        header(0, 2, A_LIST + struct.pack("<IQ", 9, 1) * 5000),
        header(0, 2, LLAMA + entry(b"x", 8, struct.pack("<Q", 2**63))),
        header(1, 1, LLAMA + text(b"a") + struct.pack("<I", 2**31)),
        header(1, 1, LLAMA + tensor(b"a", (2**32, 2**32)) + bytes(4096)),
        header(1, 1, LLAMA + tensor(b"a", (8,), offset=2**63) + bytes(4096)),
    ],
    ids=[
        "entries",
        "tensors",
        "numbers in a list",
        "bytes in a list",
        "texts in a list",
        "length of a text in a list",
        "lists in lists",
        "length of a text",
        "dimensions",
        "values that overflow",
        "offset",
    ],
)
def test_a_hostile_number_costs_neither_time_nor_memory(tmp_path: Path, data: bytes) -> None:
    tracemalloc.start()
    begin = time.process_time()
    try:
        assert "not a complete GGUF" in refusal(tmp_path, data)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert time.process_time() - begin < 2


def test_lists_of_millions_of_values_are_no_model(tmp_path: Path) -> None:
    count = (1 << 23) + 1
    assert "more than 8,388,608 values" in refusal(
        tmp_path, header(0, 2, A_LIST + struct.pack("<IQ", 0, count) + bytes(count))
    )
