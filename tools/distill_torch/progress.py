"""Lines with the time since the start."""

import time

STARTED = time.perf_counter()


def seconds() -> float:
    return time.perf_counter() - STARTED


def log(*words: object) -> None:
    print(f"[{seconds():7.1f} s]", *words, flush=True)
