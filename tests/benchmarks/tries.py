"""Many tries of the command line: settings × surroundings × inputs, `python -m tests.benchmarks.tries --count 200`.

Each try is a process of its own. What must hold: no traceback and no "bug"; an exit code that is documented; where
something fails, a sentence that names one of the things that are wrong in this try, and where nothing is wrong, none;
the key nowhere in the output, in a written file, or at a listener other than the target's own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from specviz.core.settings import ENVIRONMENT, SECRETS
from specviz.engines.toy import ToyScorer, ToyTokenizer
from tests.targets.completions.toyserver import ToyServer, serve

ROOT = Path(__file__).parents[2]
KEY = "sk-tries-4c1b9e"
#: Failed work, bad input, Ctrl-C; and the end by a signal that was sent.
CODES = (0, 1, 2, 130, 143, 129)
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Part:
    """One choice of a dimension.

    Attributes:
        words: what is wrong with it, as a failure would say it, one of them; empty where nothing is.
        must_fail: whether no run can succeed with it.
    """

    name: str
    words: tuple[str, ...] = ()
    must_fail: bool = False
    arguments: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()
    streams: str = ""


@dataclass
class Outcome:
    """One try, and what was wrong with it."""

    number: int
    parts: tuple[Part, ...]
    code: int
    faults: list[str]
    errors: str


@dataclass
class Places:
    """Files and servers of the tries."""

    folder: Path
    target: str
    proxy: str
    heard: dict[str, list[bytes]] = field(default_factory=dict)


@contextmanager
def listener(heard: list[bytes]) -> Iterator[str]:
    """A proxy that hears everything and cannot do anything: 502."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        server.settimeout(0.1)
        ended = threading.Event()

        def answer() -> None:
            while not ended.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.settimeout(2)
                    try:
                        heard.append(connection.recv(65536))
                        connection.sendall(
                            b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"
                        )
                    except OSError:
                        continue

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()


def write_inputs(folder: Path) -> None:
    """Prompt files, suites and recordings, good ones and others."""
    prompt = "the model drafts a token"
    trace = folder / "good.jsonl"
    made = [sys.executable, "-m", "specviz", "generate", "--target", "toy", "--draft", "toy", "--prompt", prompt]
    subprocess.run([*made, "--max-tokens", "12", "--no-baseline", "--trace", str(trace)], check=True, cwd=ROOT,
                   capture_output=True)  # fmt: skip
    lines = trace.read_text().splitlines(keepends=True)
    broken = json.loads(lines[2]) | {"position": -1}
    texts: dict[str, bytes] = {
        "prompt.txt": prompt.encode(),
        "prompt-bom.txt": b"\xef\xbb\xbf" + prompt.encode() + b"\r\n",
        "prompt-utf16.txt": prompt.encode("utf-16"),
        "empty.txt": b"",
        "binary.txt": bytes(range(256)) * 4,
        "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 1234\n",
        "page.html": b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>",
        "archive.gz": gzip.compress(prompt.encode()),
        "utf16.jsonl": trace.read_text().encode("utf-16"),
        "crlf.jsonl": trace.read_bytes().replace(b"\n", b"\r\n"),
        "two.jsonl": trace.read_bytes() * 2,
        "cut.jsonl": trace.read_bytes()[:-20],
        "position.jsonl": "".join([*lines[:2], json.dumps(broken) + "\n", *lines[3:]]).encode(),
        "suite.jsonl": b'\xef\xbb\xbf{"prompt": "the model drafts"}\n{"prompt": "the target keeps"}\n',
        "suite.csv": "\ufeffprompt\nthe model drafts\n".encode(),
    }
    for name, data in texts.items():
        (folder / name).write_bytes(data)
    pq.write_table(pa.table({"question": ["the model drafts"], "answer": ["a token"]}), folder / "suite.parquet")
    (folder / "folder").mkdir()


def jobs(places: Places) -> list[Part]:
    """What is done, with which input."""
    at = places.folder
    toy = ("generate", "--target", "toy", "--draft", "toy", "--max-tokens", "10")
    remote = (
        "generate",
        "--target",
        "openai:toy",
        "--draft",
        "ngram",
        "--tokenizer",
        "toy",
        "--max-tokens",
        "6",
        "--prompt",
        "the model",
    )
    other_kind = ("Git LFS", "web page", "HTML", "gzip", "Parquet", "empty", "text", "folder", "directory", "UTF-8",
                  "No such file", "archive", "byte")  # fmt: skip
    prompt = [
        Part(f"prompt file {name}", (), False, (*toy, "--prompt-file", str(at / name)))
        for name in ("prompt.txt", "prompt-bom.txt", "prompt-utf16.txt")
    ] + [
        Part(f"prompt file {name}", other_kind, name != "page.html", (*toy, "--prompt-file", str(at / name)))
        for name in ("empty.txt", "binary.txt", "lfs", "page.html", "archive.gz", "suite.parquet", "folder", "missing")
    ]
    replay = [
        Part(f"replay {name}", (), False, ("replay", str(at / name)))
        for name in ("good.jsonl", "utf16.jsonl", "crlf.jsonl", "cut.jsonl")
    ] + [
        Part(
            f"replay {name}",
            (*other_kind, "second", "two", "position", "Line 3", "trace", "header"),
            True,
            ("replay", str(at / name)),
        )  # fmt: skip
        for name in ("two.jsonl", "position.jsonl", "lfs", "page.html", "archive.gz", "empty.txt", "folder", "missing")
    ]
    sweep = ("bench", "--target", "toy", "--draft", "toy", "--k", "2", "--max-tokens", "6", "--per-domain", "1")
    bench = [
        Part(f"bench {name}", (), False, (*sweep, "--suite", str(at / name)))
        for name in ("suite.jsonl", "suite.csv", "suite.parquet")
    ] + [
        Part(f"bench {name}", other_kind, True, (*sweep, "--suite", str(at / name)))
        for name in ("lfs", "page.html", "archive.gz", "folder", "missing")
    ]
    port = places.target.rpartition(":")[2].partition("/")[0]
    address = [
        Part("server", (), False, (*remote, "--base-url", places.target)),
        Part(
            "doctor",
            (),
            False,
            ("doctor", "--target", "openai:toy", "--tokenizer", "toy", "--base-url", places.target),
        ),  # fmt: skip
    ] + [
        Part(f"address {base!r}", words, True, (*remote, "--base-url", base))
        for base, words in (
            (f"https://127.0.0.1:{port}/v1", ("speaks http",)),
            (f"127.0.0.1:{port}/v1", ("http://",)),
            ("http://:8000/v1", ("host",)),
            ("http://127.0.0.1:0/v1", ("port",)),
            ("http://127.0.0.1:99999/v1", ("port",)),
            (f"{places.target}/completions", ("completions",)),
            ("http://127.0.0.1:9/v1", ("Nothing", "listens", "refused")),
            ("http://no-such-host.invalid/v1", ("no address", "could read the key", "proxy", "Nothing answers")),
            (f"ftp://127.0.0.1:{port}/v1", ("http",)),
        )
    ]
    models = [
        Part("models list", (), False, ("models", "list")),
        Part("models path", (), False, ("models", "path", str(at / "folder"))),
        Part("model of a pointer", ("Git LFS",), True, (*toy[:1], "--prompt", "x", "--target", f"local:{at / 'lfs'}")),
        Part("usage", ("usage",), True, ("generate",)),
    ]
    return [*prompt, *replay, *bench, *address, *models]


def settings() -> list[Part]:
    """Settings of a run; they are added to `generate` alone."""
    good = [
        ("defaults", ()),
        ("sampled", ("--temperature", "0.8", "--seed", "3", "--k", "16")),
        ("deterministic", ("--rule", "deterministic", "--temperature", "1")),
        ("threshold", ("--rule", "threshold", "--tau", "0.2", "--top-k", "5")),
        ("json", ("--json", "--no-baseline")),
        ("raw, stop", ("--raw", "--stop", "\\n", "--stop", "é")),
        ("special tokens", ("--system", "What does <|im_end|> mean? \u202e\x1b[31m")),
    ]
    bad = [
        ("k 0", ("--k", "0"), ("K must", "k must")),
        ("temperature", ("--temperature", "nan"), ("temperature",)),
        ("no tokens", ("--max-tokens", "-1"), ("max_tokens", "max tokens", "output", "budget")),
        ("draft", ("--draft", "model:/no/such/folder"), ("/no/such/folder",)),
        ("stop", ("--stop", ""), ("stop string",)),
        ("stop escape", ("--stop", "\\q"), ("backslash",)),
    ]
    return [Part(name, (), False, arguments) for name, arguments in good] + [
        Part(name, words, True, arguments) for name, arguments, words in bad
    ]


def surroundings(places: Places) -> list[Part]:
    """Environment, streams, signals."""
    gone = str(places.folder / "gone.pem")
    output = ("standard output", "No space left", "output")
    proxies = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY")
    certificates = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
    cache = ("SPECVIZ_CACHE", "cache")
    return [
        *[Part("plain")] * 6,
        *(Part(name, (name, "proxy"), False, (), ((name, places.proxy),)) for name in proxies),
        *(Part(name, (name,), False, (), ((name, gone),)) for name in certificates),
        Part("no home", cache, False, (), (), ("HOME", "SPECVIZ_CACHE", "XDG_CACHE_HOME")),
        Part("cache is a file", cache, False, (), (("SPECVIZ_CACHE", str(places.folder / "prompt.txt")),)),
        Part("cache in nothing", cache, False, (), (("SPECVIZ_CACHE", "/dev/null/x"),)),
        Part("ascii", (), False, (), (("LANG", "C"), ("LC_ALL", "C"), ("PYTHONIOENCODING", "ascii"))),
        Part("dumb terminal", (), False, (), (("TERM", "dumb"), ("COLUMNS", "0"))),
        Part("no output", output, False, streams=">&-"),
        Part("no errors", output, False, streams="2>&-"),
        Part("no input", (), False, streams="<&-"),
        Part("full output", output, False, streams=">/dev/full"),
        Part("reader gone", (), False, streams="| head -c 1"),
        Part("no terminal", (), False, streams="</dev/null"),
        *(Part(f"signal {number.name}", ("stopped", "topping", ""), False, streams=f"signal {int(number)}")
          for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)),
    ]  # fmt: skip


def attempt(number: int, rng: random.Random, places: Places, chosen: Sequence[Part]) -> Outcome:
    """Run one try, and look at what came of it."""
    surrounding = chosen[-1]
    folder = places.folder / f"try{number}"
    folder.mkdir()
    env = {k: v for k, v in os.environ.items() if k not in (*ENVIRONMENT, *SECRETS) and "proxy" not in k.lower()}
    env |= {"TARGET_API_KEY": KEY, "PYTHONPATH": str(ROOT), "SPECVIZ_CACHE": str(places.folder / "cache")}
    env |= {k: v for part in chosen for k, v in part.variables}
    env = {k: v for k, v in env.items() if k not in surrounding.without}
    arguments = [a for part in chosen for a in part.arguments]
    command = [sys.executable, "-m", "specviz", *arguments]
    before = {name: len(heard) for name, heard in places.heard.items()}
    shell = (
        'exec "$@"'
        if "signal" in surrounding.streams or "|" in surrounding.streams
        else f'exec "$@" {surrounding.streams}'
    )
    if "|" in surrounding.streams:
        shell = f'set -o pipefail; "$@" {surrounding.streams}'
    process = subprocess.Popen(
        ["bash", "-c", shell, "try", *command], cwd=folder, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    if "signal" in surrounding.streams:
        time.sleep(rng.uniform(0.0, 1.0))
        process.send_signal(int(surrounding.streams.split()[1]))
    faults: list[str] = []
    try:
        out, err = process.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        faults.append(f"no end within {_TIMEOUT_S} s")
    code, errors = process.returncode, err.decode(errors="replace")
    everything = out + err + b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
    everything += b"".join(b"".join(heard[before[name] :]) for name, heard in places.heard.items())
    if KEY.encode() in everything:
        faults.append("the key was shown, written, or heard by another listener")
    if b"Traceback" in everything or b"bug in specviz" in everything or "Exception ignored" in errors:
        faults.append("a traceback")
    signalled = "signal" in surrounding.streams
    if code not in (*CODES, *((-2, -15, -1) if signalled else ())):
        faults.append(f"exit code {code}")
    unseen = surrounding.streams in ("2>&-",)
    must = [part for part in chosen if part.must_fail]
    words = [word for part in chosen for word in part.words]
    if not signalled:
        if code == 0 and must and surrounding.streams != "| head -c 1":
            faults.append("it should have failed: " + ", ".join(p.name for p in must))
        if code != 0 and not words:
            faults.append("it should have worked")
        if code != 0 and words and not unseen and not any(w.lower() in errors.lower() for w in words):
            faults.append(f"no word of what is wrong: {words}")
    return Outcome(number, tuple(chosen), code, faults, errors)


def tries(count: int, seed: int, told: Callable[[Outcome], None] = lambda outcome: None) -> list[Outcome]:
    """Run `count` tries that follow from `seed`."""
    rng = random.Random(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specviz-tries-")))
        tokenizer = ToyTokenizer()
        server = ToyServer(ToyScorer(tokenizer), "vllm", tokenizer, key=KEY, stop_ids=frozenset())
        heard: list[bytes] = []
        proxy = stack.enter_context(listener(heard))
        places = Places(folder, stack.enter_context(serve(server)), proxy, {"proxy": heard})
        write_inputs(folder)
        first, second, third = jobs(places), settings(), surroundings(places)
        outcomes = []
        for number in range(count):
            job = rng.choice(first)
            chosen = [job, rng.choice(third)]
            if job.arguments[0] == "generate" and job.name != "usage":
                chosen.insert(1, rng.choice(second[:7] if rng.random() < 0.75 else second[7:]))
            outcomes.append(attempt(number, rng, places, chosen))
            told(outcomes[-1])
    return outcomes


def main() -> int:
    """Print each try that went wrong, and a summary."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    options = p.parse_args()

    def told(outcome: Outcome) -> None:
        if outcome.faults:
            names = " + ".join(part.name for part in outcome.parts)
            print(
                f"{outcome.number}: {names}: exit {outcome.code}: {'; '.join(outcome.faults)}\n{outcome.errors[-800:]}"
            )

    outcomes = tries(options.count, options.seed, told)
    codes = Counter(outcome.code for outcome in outcomes)
    print(f"{len(outcomes)} tries, seed {options.seed}, exit codes {dict(sorted(codes.items()))}, "
          f"{sum(bool(o.faults) for o in outcomes)} with a fault")  # fmt: skip
    return any(outcome.faults for outcome in outcomes)


if __name__ == "__main__":
    raise SystemExit(main())
