"""The shared library of ik_llama.cpp: the functions of llama.h that are used.

The package `ik-llama-cpp-python` brings the library and binds a part of llama.h. The rest is bound here, so its version
is pinned: another version may have other structures.
"""

from __future__ import annotations

import ctypes
import functools
import logging
from collections import deque
from typing import Any

logger = logging.getLogger(__name__)

_P, _I, _B, _S = ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool, ctypes.c_char_p
#: Functions that the package does not bind: arguments and result.
_MORE: dict[str, tuple[list[Any], Any]] = {
    "llama_get_logits": ([_P], ctypes.POINTER(ctypes.c_float)),
    "llama_set_n_threads": ([_P, ctypes.c_uint32, ctypes.c_uint32], None),
    "llama_kv_cache_seq_rm": ([_P, _I, _I, _I], _B),
    "llama_kv_cache_seq_cp": ([_P, _I, _I, _I, _I], None),
    "llama_n_vocab": ([_P], _I),
    "llama_model_has_encoder": ([_P], _B),
    "llama_model_meta_val_str": ([_P, _S, ctypes.c_char_p, ctypes.c_size_t], _I),
    "llama_vocab_type": ([_P], _I),
    "llama_token_get_text": ([_P, _I], _S),
    "llama_token_get_attr": ([_P, _I], _I),
    "llama_token_bos": ([_P], _I),
    "llama_token_eos": ([_P], _I),
    "llama_add_bos_token": ([_P], _I),
}


def last_words() -> str:
    """What the library wrote last about an error; empty if it wrote nothing."""
    return " ".join(_errors)


def forget_words() -> None:
    """Empty `last_words`."""
    _errors.clear()


@functools.cache
def library() -> Any:
    """The package's module with all functions bound; ask `specviz.engines.llama.usable.problem` first."""
    from ik_llama_cpp import _ctypes_api as api

    bound: Any = api
    for name, (arguments, result) in _MORE.items():
        function = getattr(bound._lib, name)
        function.argtypes, function.restype = arguments, result
        setattr(bound, name, function)
    bound._lib.llama_log_set.argtypes, bound._lib.llama_log_set.restype = [_Log, _P], None
    bound._lib.llama_log_set(_log, None)
    bound.llama_backend_init()
    return bound


_errors: deque[str] = deque(maxlen=3)
_Log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_ERROR = 4


def _keep(level: int, text: bytes | None, _: int | None) -> None:
    """Keeps the library from writing to standard error."""
    line = (text or b"").decode("utf-8", errors="replace").strip(" .\n")
    if not line:
        return
    logger.debug("%s", line)
    if level == _ERROR:
        _errors.append(f"{line}.")


#: Held for ever: the library calls it.
_log = _Log(_keep)
