"""The HTTP client: which server gets the key, and which headers are sent."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx2
import pytest

from specviz.core.address import without_secrets
from specviz.core.connection import Connection, Secret
from specviz.core.errors import AnswerError, UnreachableError
from specviz.net.client import Attempt, ServerClient
from specviz.net.faults import Fault
from specviz.net.repeating import Backoff
from tests.targets.completions.rawserver import answer, reset, serve_raw

KEY = "sk-planted-0123456789"


@contextmanager
def client(url: str, key: str = KEY) -> Iterator[ServerClient]:
    connection = Connection(Secret(url), without_secrets(url), Secret(key), 5.0, 10.0, 60.0)
    quick = Backoff(0.001, 0.002, 0.001, 3)
    made = ServerClient(connection, on_progress=lambda p: None, cancelled=lambda: False, backoff=quick)
    try:
        yield made
    finally:
        made.close()


def fetched(server: ServerClient, url: str, **more: object) -> httpx2.Response:
    send: Callable[[], httpx2.Response] = lambda: server.http.get(url, **more)  # type: ignore[arg-type]  # noqa: E731
    (response,) = server.parts(lambda: [send()], Attempt())
    return response


def test_key_and_query_go_to_the_own_address_and_to_no_other() -> None:
    with serve_raw(answer(200)) as own, serve_raw(answer(200)) as other:
        with client(own.url + "?token=query-secret") as server:
            mine = fetched(server, server.url("models"), headers={"X-Mine": "a", "Authorization": "of the library"})
            theirs = fetched(server, f"{other.url}/models", headers={"Authorization": "of the library"})
    assert own.got[0].path == "/v1/models?token=query-secret"
    assert own.got[0].headers["authorization"] == f"Bearer {KEY}" and "x-mine" not in own.got[0].headers
    assert other.got[0].path == "/v1/models" and "authorization" not in other.got[0].headers
    # A response that is kept does not hold the key.
    assert KEY not in str(mine.request.headers.raw) + str(theirs.request.headers.raw)
    assert mine.request.headers["authorization"] == "of the library"


def test_a_redirect_is_not_followed() -> None:
    with serve_raw(answer(200)) as other, serve_raw(answer(307, b"", {"Location": other.url})) as own:
        with client(own.url) as server:
            assert fetched(server, server.url("models")).status_code == 307
        assert other.got == []


def test_a_fault_is_repeated_and_raised_without_what_led_to_it() -> None:
    with serve_raw(reset) as raw, client(raw.url) as server:
        with pytest.raises(UnreachableError, match="broke the connection") as caught:
            server.repeated(lambda: fetched(server, server.url("models")))
        assert len(raw.got) == 3
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    context = caught.value.__context__
    assert context is None or (isinstance(context, Fault) and context.__context__ is None)


@pytest.mark.parametrize("body", [b"", b"<p>gateway</p>", b'{"a": '])
def test_a_body_that_is_no_json_is_a_fault(body: bytes) -> None:
    with serve_raw(answer(200, body)) as raw, client(raw.url) as server:
        attempt = Attempt()
        (response,) = server.parts(lambda: [server.http.get(server.url("models"))], attempt)
        with pytest.raises(Fault) as caught:
            server.json_in(response.content, attempt)
    assert isinstance(caught.value.error, AnswerError) and not caught.value.passing


def test_a_body_may_hold_what_python_writes_for_no_number() -> None:
    body = b'{"a": [NaN, -Infinity, 1e5], "b": "\\ud800"}'
    with serve_raw(answer(200, body)) as raw, client(raw.url) as server:
        attempt = Attempt()
        (response,) = server.parts(lambda: [server.http.get(server.url("models"))], attempt)
        read = server.json_in(response.content, attempt)
    assert math.isnan(read["a"][0]) and read["a"][1:] == [-math.inf, 1e5] and read["b"] == "\ud800"
