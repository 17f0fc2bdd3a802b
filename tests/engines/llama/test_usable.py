"""Whether the library is used, before it is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from specviz.core.errors import UnsupportedModelError
from specviz.engines.llama import usable
from specviz.setup import engines
from specviz.setup.engines import choose
from specviz.store.sources import ModelSource, resolve
from tests.engines.tiny import write_tiny_model

WHEEL = resolve("smollm2-135m")


@pytest.fixture
def fresh() -> Iterator[None]:
    usable.problem.cache_clear()
    yield
    usable.problem.cache_clear()


def without(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor of x86-64 that lacks a flag."""
    flags = " ".join(name for name in ("fpu", "avx", "avx2", "fma", "sse4_2") if name != flag)
    text = f"processor : 0\nflags\t\t: {flags}\n"
    real = Path.read_text
    monkeypatch.setattr(
        Path, "read_text", lambda self, *a, **k: text if str(self) == "/proc/cpuinfo" else real(self, *a, **k)
    )
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("sys.platform", "linux")
    usable.problem.cache_clear()


@pytest.mark.parametrize("flag", ["avx2", "fma"])
def test_a_processor_without_a_flag_never_loads_the_library(
    flag: str, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(flag, monkeypatch)
    monkeypatch.setattr(usable, "library", lambda: pytest.fail("it would end the process"))
    choice = choose(WHEEL, "auto")
    assert choice.engine == "mlx"
    assert choice.note == f"The processor lacks {flag.upper()}, for which the GGUF engine is built. MLX is used."
    with pytest.raises(UnsupportedModelError, match=f"lacks {flag.upper()}"):
        choose(WHEEL, "llama")


def test_a_library_that_cannot_be_loaded_gives_way_to_mlx(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise OSError("libc.musl-x86_64.so.1: cannot open shared object file")

    monkeypatch.setattr(usable, "library", missing)
    choice = choose(WHEEL, "auto")
    assert choice.engine == "mlx" and "musl" in choice.note and choice.note.endswith("MLX is used.")


def test_here_gguf_files_run_in_llama_and_mlx_folders_in_mlx(tmp_path: Path) -> None:
    folder = ModelSource("tiny", "folder", str(write_tiny_model(tmp_path / "tiny")))
    assert choose(WHEEL, "auto").engine == "llama" and choose(WHEEL, "mlx").engine == "mlx"
    assert choose(folder, "auto").engine == "mlx" and choose(folder, "auto").note == ""
    with pytest.raises(UnsupportedModelError, match="MLX's format"):
        choose(folder, "llama")


@pytest.mark.parametrize("gpu", ["Metal", "CUDA"])
def test_where_mlx_has_a_gpu_it_runs_gguf_files_too(gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "gpu", lambda: gpu)
    assert choose(WHEEL, "auto").engine == "mlx" and choose(WHEEL, "auto").note == ""
    assert choose(WHEEL, "llama").engine == "llama"


def test_where_mlx_is_not_installed(fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert choose(WHEEL, "auto").engine == "llama"
    folder = ModelSource("tiny", "folder", str(tmp_path))
    with pytest.raises(UnsupportedModelError, match="in the format of MLX.*MLX is not installed"):
        choose(folder, "auto")
    without("fma", monkeypatch)
    with pytest.raises(UnsupportedModelError, match="lacks FMA.*MLX is not installed"):
        choose(WHEEL, "auto")
