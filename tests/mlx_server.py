"""`mlx_lm.server` with SmolLM2 on a free port of the loopback: a real server, as its users start it.

Its weights are those that the local target computes with: float32, since products with quantised weights take ten times
as long on a CPU. On Linux the fast BLAS is loaded into its process from outside; nothing of the server is changed.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specviz.engines.mlx.blas import use_fast_blas
from specviz.store import store

START_S = 120.0
STOP_S = 20.0


@contextmanager
def mlx_server() -> Iterator[str]:
    """The base URL while it runs; ended in any case."""
    with tempfile.TemporaryDirectory(prefix="specviz-mlx-server-") as temporary:
        folder = float32_copy(store.pull("smollm2-135m"), Path(temporary) / "model")
        log, port = Path(temporary) / "log.txt", free_port()
        command = [sys.executable, "-m", "mlx_lm.server", "--model", str(folder), "--port", str(port)]
        with log.open("wb") as out:
            server = subprocess.Popen(command, env=environment(), stdout=out, stderr=out, stdin=subprocess.DEVNULL)
            try:
                wait_for(f"http://127.0.0.1:{port}/health", server, log)
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                server.terminate()
                try:
                    server.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    server.kill()
                    server.wait(STOP_S)


def float32_copy(model: Path, folder: Path) -> Path:
    """The model with its weights dequantised, as `language_model.load_weights` does."""
    use_fast_blas()
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_lm.utils import dequantize_model, load_model, save_config

    folder.mkdir()
    module, config = load_model(model, lazy=True)
    module.set_dtype(mx.float32)
    module = dequantize_model(module)
    weights = dict(tree_flatten(module.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    config = {name: value for name, value in config.items() if not name.startswith("quantization")}
    save_config(config, folder / "config.json")
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (folder / name).symlink_to(model / name)
    return folder


def environment() -> dict[str, str]:
    """Of the server's process: no network, no key, the fast BLAS."""
    found = {k: v for k, v in os.environ.items() if "KEY" not in k} | {"HF_HUB_OFFLINE": "1"}
    library = use_fast_blas().path
    return found | ({"LD_PRELOAD": library} if library else {})


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    ended, pause = time.monotonic() + START_S, threading.Event()
    while True:
        assert server.poll() is None, f"the server has ended: {log.read_text()[-2000:]}"
        assert time.monotonic() < ended, f"the server does not start: {log.read_text()[-2000:]}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pause.wait(0.1)
