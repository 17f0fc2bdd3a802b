"""llama-server on a free port of the loopback: the real one, from the wheel `xllamacpp`.

Run as a program, this is the server's process: it prints its address when it answers, and ends when its input ends, so
that it cannot outlive the tests.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.processes import ended

#: The name that it lists its model under.
MODEL = "smollm2-135m"
#: `xllamacpp` has a wheel everywhere but on musl and on Windows for ARM.
HAS_WHEEL = platform.machine() in ("x86_64", "aarch64", "arm64", "AMD64") and (
    sys.platform != "linux" or bool(platform.libc_ver()[0])
)
WITHOUT_WHEEL = f"xllamacpp has no wheel for {platform.system()} on {platform.machine()} with this C library"


@dataclass(frozen=True, slots=True)
class Serving:
    """How to serve.

    Attributes:
        context: tokens of one request, prompt and output together. slots: requests at once.
        threads: one is best where other processes want the cores, since its threads wait without sleeping.
        speculation: its own, a name of `xllamacpp.common_speculative_type`.
        sizes: of that speculation, such as `ngram_simple.size_m`.
    """

    context: int = 2048
    slots: int = 4
    threads: int = 1
    speculation: str = "NONE"
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LlamaServer:
    """A running server. `root`: its address, without a path. `process`: its own."""

    root: str
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        """The base URL of its completions API."""
        return f"{self.root}/v1"


@contextmanager
def llama_server(model: Path, serving: Serving = Serving()) -> Iterator[LlamaServer]:
    """Serve a GGUF file, killed in any case."""
    command = [sys.executable, "-m", "tests.llama_server", str(model.absolute()), json.dumps(asdict(serving))]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=Path(__file__).parents[1]
        )
        with process, ended(process):
            root = process.stdout.readline().strip()
            log.seek(0)
            assert root, f"llama-server did not start: {log.read()[-2000:]}"
            yield LlamaServer(root, process)


def serve(model: str, serving: Serving) -> None:
    """Answer until the input ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = model, {MODEL}
    params.hostnames, params.port, params.verbosity = ["127.0.0.1"], 0, 0
    params.n_ctx, params.n_parallel = serving.context * serving.slots, serving.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = serving.threads
    kind = f"COMMON_SPECULATIVE_TYPE_{serving.speculation}"
    params.speculative.types = [getattr(xllamacpp.common_speculative_type, kind)]
    for name, size in serving.sizes.items():
        part, _, size_of = name.partition(".")
        setattr(getattr(params.speculative, part), size_of, size)
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1], Serving(**json.loads(sys.argv[2])))
