from __future__ import annotations

import ctypes

import pytest

from specviz.engines.gguf.forms import FORMS
from specviz.engines.llama.library import library
from specviz.engines.llama.usable import problem

#: Forms of llama.cpp that this library does not have.
ELSEWHERE = {"TQ1_0", "TQ2_0", "NVFP4"}


@pytest.mark.skipif(bool(problem()), reason=problem() or "the library can be used")
def test_forms_have_the_sizes_of_the_library() -> None:
    """A wrong size would let a tensor end behind the file, or refuse a sound one."""
    names, row_size = library()._lib.ggml_type_name, library()._lib.ggml_row_size
    names.restype, names.argtypes = ctypes.c_char_p, [ctypes.c_int]
    row_size.restype, row_size.argtypes = ctypes.c_size_t, [ctypes.c_int, ctypes.c_int64]
    checked = {kind: form for kind, form in FORMS.items() if form.name not in ELSEWHERE}
    assert {kind: names(kind).decode().upper() for kind in checked} == {kind: f.name for kind, f in checked.items()}
    sizes = {form.name: form.row_bytes + 1024 // form.values * form.block_bytes for form in checked.values()}
    assert {form.name: row_size(kind, 1024) for kind, form in checked.items()} == sizes
