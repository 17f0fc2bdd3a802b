"""A trial of a GGUF file in a process of its own.

The library ends the process where a file breaks one of its many assumptions, and some of these belong to a single
architecture or only show in a pass: a model with infinite weights, sizes that fit each other and no graph. The rules of
`specviz.engines.gguf.llama_rules` cannot know them all, so a file is used once where nothing else can be lost.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from specviz.core.errors import SpecvizError, UnsupportedModelError
from specviz.engines.gguf.llama_rules import check_for_llama
from specviz.engines.llama.handle import Handle
from specviz.engines.llama.model import prepare
from specviz.engines.llama.scorer import LlamaScorer
from specviz.engines.llama.threads import Threads
from specviz.engines.llama.tokenizer import GgufTokenizer

#: Texts with what tokenizers stumble over, and how many ids are put through a pass.
_TEXTS = ("the sky", "\n", " ", "\x00\x01", "äöü 😀 \u200d", "<|im_start|> 12,345.67\r\n\t[INST]")
_IDS = 64
_REFUSED = 3
_ALL = "all"
#: In front of the error: the library writes to standard output too.
_ANSWER = b"trial: "
_WHY_MAX = 300
_START_S, _BYTES_PER_S = 60, 20_000_000
_LAST_WORDS = re.compile(r"GGML_ASSERT\(.*\) failed|what\(\): .*|[Ff]atal error.*")
_REMEDY = "Use another file of the model, or the same model as an MLX folder with --engine mlx."


def try_out(path: Path, tokenizer: bool = True) -> None:
    """Load a file, use its tokenizer and compute passes, in a new process.

    Args:
        path: of a split model its first part.
        tokenizer: whether the file must have one.

    Raises:
        UnsupportedModelError: see `check_for_llama`; or the process was refused the model, or it ended or hung.
    """
    file = check_for_llama(path, tokenizer)
    command = [sys.executable, "-P", "-m", "specviz.engines.llama.trial", str(path), _ALL if tokenizer else "weights"]
    # Without a search path the library finds no debugger to start when it gives up.
    surroundings = os.environ | {"PATH": "", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    limit_s = _START_S + file.file_bytes // _BYTES_PER_S
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=surroundings, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired as exc:
        raise UnsupportedModelError(f"{path.name} hangs in the GGUF engine: {limit_s} s passed.", _REMEDY) from exc
    if done.returncode == 0:
        return
    if done.returncode == _REFUSED and (answer := re.search(rb"^" + _ANSWER + rb"(.+)$", done.stdout, re.MULTILINE)):
        message, remedy = json.loads(answer[1])
        raise UnsupportedModelError(message, remedy)
    said = done.stderr.decode("utf-8", errors="replace").strip()
    why = found[0] if (found := _LAST_WORDS.search(said)) else said.rpartition("\n")[2] or "it said nothing"
    raise UnsupportedModelError(
        f"{path.name} ends the GGUF engine that reads it (exit status {done.returncode}): {why.strip()[:_WHY_MAX]}.",
        _REMEDY,
    )


def main(path: Path, tokenizer: bool) -> None:
    """What the new process does. Ends it with `_REFUSED`, and the error as JSON on standard output, on an error."""
    _leave_no_core_file()
    try:
        handle = Handle(path, check_weights=True)
        if tokenizer:
            _use(GgufTokenizer(handle))
        size = handle.vocab_size
        prepare(path.name, handle, size)
        scorer = LlamaScorer(
            path.name, handle, vocab_size=size, width=size, max_context=2 * _IDS, threads=Threads(fixed=1)
        )
        scorer.score([i * size // _IDS for i in range(_IDS)], 1)
    except SpecvizError as exc:
        print(f"\n{_ANSWER.decode()}{json.dumps([exc.message, exc.remedy])}", flush=True)
        sys.exit(_REFUSED)


def _use(tokenizer: GgufTokenizer) -> None:
    for text in _TEXTS:
        tokenizer.encode(text)
    for token in range(tokenizer.vocab_size):
        tokenizer.token_bytes(token)


def _leave_no_core_file() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), tokenizer=sys.argv[2] == _ALL)
