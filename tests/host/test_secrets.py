"""A planted key, and a planted password in the base URL: no output or object of a run contains them."""

from __future__ import annotations

import base64
import contextlib
import copy
import io
import json
import logging
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from specviz.cli import main
from specviz.core.connection import Secret
from specviz.core.event_json import to_json
from specviz.core.settings import Settings
from specviz.core.wait import Wait
from specviz.engines.toy import ToyScorer, ToyTokenizer
from specviz.host.models import ModelHost
from specviz.host.run import Run
from specviz.setup.builder import probe_target
from specviz.ui.catalog import AppCatalog
from tests.targets.completions.toyserver import ToyServer, serve

KEY, PASSWORD, TOKEN = "sk-planted-4f1c9d", "pass-planted-77ab", "query-planted-e3d0"
USER = "someone"
PLANTED = (
    KEY,
    PASSWORD,
    TOKEN,
    base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode(),
    base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode().rstrip("="),
)


class Echoing(ToyServer):
    """Repeats the received credentials in every error."""

    def __init__(self, **options: Any) -> None:
        super().__init__(ToyScorer(ToyTokenizer()), "vllm", ToyTokenizer(), **options)
        self.sent: list[str] = []

    def let_in(self, headers: str) -> None:
        """Record the credentials of a request."""
        self.sent.append(headers)

    def _error(self, status: int, message: str) -> dict[str, Any]:
        said = self.sent[-1] if self.sent else ""
        return {"error": {"message": f"{message}; you sent {said}", "type": "t", "param": said, "code": status}}


@contextlib.contextmanager
def echoing(toy: Echoing) -> Iterator[str]:
    """The base URL without its secrets."""
    from tests.targets.completions import toyserver

    real = toyserver._Handler._allowed

    def allowed(self: Any) -> bool:
        toy.let_in(f"{self.headers.get('Authorization')} to {self.path}")
        return real(self)

    toyserver._Handler._allowed = allowed  # type: ignore[method-assign]
    try:
        with serve(toy) as url:
            yield url
    finally:
        toyserver._Handler._allowed = real  # type: ignore[method-assign]


Fate = Literal["works", "refuses", "breaks"]
#: After the probe and the baselines, before the end of the run.
BREAKS_AT = 18


def server(fate: Fate) -> Echoing:
    """A server that works, or refuses every call, or refuses calls once the run has begun."""
    if fate == "works":
        return Echoing()
    if fate == "refuses":
        return Echoing(statuses=[401] * 200)
    made = Echoing()
    answer, asked = made.answer, iter(range(10_000))

    def breaking(path: str, body: Any) -> tuple[int, Any]:
        if next(asked) >= BREAKS_AT:
            made.statuses = [403]
        return answer(path, body)

    made.answer = breaking  # type: ignore[method-assign]
    return made


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """All log records from DEBUG up."""
    out = io.StringIO()
    handler, root = logging.StreamHandler(out), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield out
    root.removeHandler(handler)
    root.setLevel(level)


def hidden_in(url: str, password: bool = True) -> str:
    """The base URL with secrets in it. A password takes precedence over a key."""
    return (url.replace("http://", f"http://{USER}:{PASSWORD}@") if password else url) + f"?token={TOKEN}"


def check_shown(toy: Echoing, password: bool) -> None:
    """Check that the secrets were sent to their server."""
    wanted = PLANTED[3] if password else f"Bearer {KEY}"
    assert toy.sent and all(wanted in sent and TOKEN in sent for sent in toy.sent)


def check_clean(**texts: str) -> None:
    for what, text in texts.items():
        for secret in PLANTED:
            assert secret not in text, f"{what}: {text[max(0, text.find(secret) - 80) :][:200]}"


ASKED = [
    "--target",
    "openai:toy",
    "--draft",
    "ngram",
    "--tokenizer",
    "toy",
    "--max-tokens",
    "12",
    "--temperature",
    "0.7",
]


@pytest.mark.parametrize("fate", ["works", "refuses", "breaks"])
@pytest.mark.parametrize(("extra", "where"), [(["--json"], "option"), ([], "environment")])
@pytest.mark.parametrize("password", [True, False])
def test_the_command_line(
    extra: list[str],
    where: str,
    fate: Fate,
    password: bool,
    logged: io.StringIO,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace, toy = tmp_path / "t.jsonl", server(fate)
    monkeypatch.setenv("TARGET_API_KEY", KEY)
    with echoing(toy) as url:
        whole = hidden_in(url, password)
        base = ["--base-url", whole] if where == "option" else []
        monkeypatch.setenv("TARGET_BASE_URL", whole if where == "environment" else "")
        code = main(["--verbose", "generate", "--prompt", "the draft", *ASKED, *base, "--trace", str(trace), *extra])
    out, err = capsys.readouterr()
    assert code == (0 if fate == "works" else 1), err
    assert ("you sent" in err) == (fate != "works") and "HTTP Request" in logged.getvalue()
    recorded = trace.read_text()
    assert ("run_started" in recorded) == (fate != "refuses") and ("you sent" in recorded) == (fate == "breaks")
    check_shown(toy, password)
    check_clean(out=out, err=err, trace=recorded, log=logged.getvalue())


@pytest.mark.parametrize("fate", ["works", "refuses", "breaks"])
@pytest.mark.parametrize("password", [True, False])
def test_a_run_of_the_page(fate: Fate, password: bool, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = server(fate)
    monkeypatch.setenv("TARGET_API_KEY", "")
    with echoing(toy) as url:
        monkeypatch.setenv("TARGET_BASE_URL", hidden_in(url, password))
        settings = Settings(
            target="openai:toy", draft="ngram", tokenizer="toy", max_tokens=12, base_url=hidden_in(url), temperature=0.7
        )
        host = AppCatalog().make_host()
        try:
            run = host.start(settings, "the draft", key=Secret(KEY))
            seen = drained(run)
        finally:
            host.close()
    assert (run.state.done is not None) == (fate == "works") and (run.state.started is not None) == (fate != "refuses")
    assert fate == "works" or (run.state.error is not None and "you sent" in run.state.error.message)
    check_shown(toy, password)
    check_clean(
        run=repr(run) + repr(vars(run)),
        everything=repr(reachable(run, host)),
        settings=repr(run.settings) + json.dumps(run.settings.to_json()),
        pickled=repr(pickle.dumps((run.settings, run.state, seen))),
        events="".join(json.dumps(to_json(e)) + repr(e) for e in run._events),
        trace="".join(run.trace_lines()),
        log=logged.getvalue(),
        copied=repr(copy.copy(run.settings)),
        progress=repr(seen),
    )


def drained(run: Run, timeout: float = 60.0) -> list[Any]:
    """Drain to the end; returns every progress that was shown."""
    ended, pause, seen = time.monotonic() + timeout, threading.Event(), []
    while not run.done:
        assert time.monotonic() < ended, "timed out"
        run.drain()
        seen.append(run.progress)
        pause.wait(0.005)
    return seen


def reachable(*roots: Any) -> list[str]:
    """Every text that is reachable from the roots through fields and containers."""
    seen: set[int] = set()
    texts: list[str] = []
    todo: list[Any] = list(roots)
    while todo:
        value = todo.pop()
        if id(value) in seen or isinstance(value, type | threading.Thread):
            continue
        seen.add(id(value))
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            todo += [*value, *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            todo += value
        else:
            todo += [getattr(value, name) for name in getattr(value, "__slots__", ()) if hasattr(value, name)]
            todo.append(getattr(value, "__dict__", {}))
    return texts


def test_the_check_would_find_it() -> None:
    class Holder:
        def __init__(self) -> None:
            self.inner = [{"key": Secret(KEY)}]

    assert KEY in reachable(Holder())
    with pytest.raises(AssertionError, match="out: "):
        check_clean(out=f"x {PASSWORD} y")
    assert isinstance(ModelHost, type)


@pytest.mark.parametrize("status", [401, 500])
def test_the_text_of_an_error(status: int) -> None:
    toy = Echoing(statuses=[status] * 200)
    from specviz.core.errors import SpecvizError

    with echoing(toy) as url:
        variables = {"TARGET_BASE_URL": hidden_in(url), "TARGET_API_KEY": KEY}
        stopped = iter(range(10_000))
        with pytest.raises(SpecvizError) as caught:
            probe_target(
                Settings(target="openai:toy", draft="ngram", tokenizer="toy"),
                variables,
                wait=Wait(cancelled=lambda: next(stopped) > 400),
            )
    error: BaseException | None = caught.value
    assert error is not None and caught.value.message
    chain = []
    while error is not None:
        chain.append(f"{error!r} {error} {vars(error)}")
        error = error.__cause__ or error.__context__
    check_clean(chain=" ".join(chain))
