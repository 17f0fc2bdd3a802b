import base64
import json
import logging
import socket
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from specviz.core.address import without_secrets
from specviz.core.connection import Connection, Secret
from specviz.core.errors import AnswerError, RefusedError, RemoteError, SettingsError, StoppedError, UnreachableError
from specviz.core.wait import Progress
from specviz.net import client as net_client
from specviz.net.repeating import Backoff
from specviz.targets.completions.values import Request
from specviz.targets.completions.wire.transport import HttpCompletions
from tests.targets.completions.rawserver import (
    Got,
    Handler,
    Raw,
    answer,
    bytes_then_close,
    events,
    reset,
    send,
    serve_raw,
    stall,
)

KEY = "sk-planted-0123456789"
QUICK = Backoff(0.001, 0.002, 0.001, 4)
ONE = Request(((1, 2, 3),))
GOOD = {"choices": [{"text": "a"}]}
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


@contextmanager
def client(
    url: str,
    key: str = "",
    cancelled: Callable[[], bool] = lambda: False,
    shown: list[Progress] | None = None,
    backoff: Backoff = QUICK,
    read_s: float = 10.0,
    patience_s: float = 60.0,
    connect_s: float = 5.0,
) -> Iterator[HttpCompletions]:
    connection = Connection(Secret(url), without_secrets(url), Secret(key), connect_s, read_s, patience_s)
    shown = [] if shown is None else shown
    api = HttpCompletions(connection, "m", on_progress=shown.append, cancelled=cancelled, backoff=backoff)
    try:
        yield api
    finally:
        api.close()


def within(url: str, inside: str) -> str:
    return url.replace("http://", f"http://{inside}")


def in_flight() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "specviz-call"]


def test_a_call_sends_the_json_of_the_dialect_and_returns_the_answer() -> None:
    with serve_raw(answer(200, GOOD, {"X-Queue": "3"})) as raw, client(raw.url, KEY) as api:
        reply = api.complete(ONE, engine="vllm")
        assert reply.body == GOOD and reply.headers["x-queue"] == "3" and reply.attempts == 1
        got = raw.got[0]
    assert (got.method, got.path) == ("POST", "/v1/completions")
    assert got.json["prompt"] == [1, 2, 3] and got.json["model"] == "m" and got.json["top_k"] == -1
    assert got.headers["authorization"] == f"Bearer {KEY}" and got.headers["content-type"] == "application/json"
    assert reply.sent_bytes == len(got.body) and reply.received_bytes == len(json.dumps(GOOD))
    assert reply.waited_ms == 0 and reply.call_ms > 0


def test_sglang_has_an_endpoint_of_its_own_outside_v1() -> None:
    with serve_raw(answer(200, {"text": "a"})) as raw, client(raw.url) as api:
        api.complete(ONE, engine="sglang")
        assert raw.got[0].path == "/generate" and raw.got[0].json["input_ids"] == [1, 2, 3]


@pytest.mark.parametrize(
    ("base", "path", "asked"),
    [
        ("/v1", "models", "/v1/models"),
        ("/v1", "/version", "/version"),
        ("/v1/", "/version", "/version"),
        ("/proxy/v1", "/version", "/proxy/version"),
        ("", "models", "/models"),
        ("/openai?a=1&b=2", "models", "/openai/models?a=1&b=2"),
    ],
)
def test_paths_are_below_the_base_url_or_below_the_root(base: str, path: str, asked: str) -> None:
    with serve_raw(answer(200, {})) as raw, client(raw.url.removesuffix("/v1") + base) as api:
        api.get(path)
        assert (raw.got[0].method, raw.got[0].path) == ("GET", asked)


def test_credentials_and_query_of_the_url_work() -> None:
    with serve_raw(answer(200, GOOD)) as raw:
        with client(within(raw.url, "me:p%40ss@") + "?api-version=7&k=%2Fx") as api:
            api.complete(ONE)
        got = raw.got[0]
    assert got.path == "/v1/completions?api-version=7&k=%2Fx"
    assert got.headers["authorization"] == "Basic " + base64.b64encode(b"me:p@ss").decode()


def test_nothing_of_the_environment_reaches_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"OPENAI_{name}", "of-another-server")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Mine: of-another-server\nAuthorization: of-another-server")
    with serve_raw(answer(200, GOOD)) as raw, client(raw.url) as api:
        api.complete(ONE)
        assert "of-another-server" not in str(raw.got[0])
        assert "authorization" not in raw.got[0].headers
        assert not [name for name in raw.got[0].headers if name.startswith(("x-", "openai"))]


@pytest.mark.parametrize("key", ["kéy", "k\ney", "k ey", "k\x00"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(SettingsError) as caught, client("http://127.0.0.1:1/v1", key):
        pass
    assert key not in str(caught.value)


def test_a_proxy_of_the_environment_is_used_and_an_unusable_one_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serve_raw([answer(200, GOOD), answer(407)]) as raw:
        monkeypatch.setenv("http_proxy", raw.url.removesuffix("/v1"))
        with client("http://far.invalid/v1") as api:
            assert api.complete(ONE).body == GOOD and raw.got[0].path == "http://far.invalid/v1/completions"
    monkeypatch.setenv("http_proxy", "ftp://me:secret@here")
    with pytest.raises(SettingsError, match="proxy") as caught, client("http://far.invalid/v1"):
        pass
    assert "secret" not in "".join(traceback.format_exception(caught.value)).replace('"ftp://me:secret@here"', "")


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_repeated_and_shown(status: int) -> None:
    shown: list[Progress] = []
    with serve_raw([answer(status, {"error": "busy"}), answer(200, GOOD)]) as raw, client(raw.url, shown=shown) as api:
        reply = api.complete(ONE)
    assert reply.body == GOOD and reply.attempts == 2 and len(raw.got) == 2
    assert reply.sent_bytes == sum(len(g.body) for g in raw.got)
    assert reply.received_bytes == len(json.dumps({"error": "busy"})) + len(json.dumps(GOOD))
    assert reply.waited_ms > 0
    assert f"({status}); trying again" in shown[0].what and shown[0].unit == "s"
    assert shown[-1] == Progress("")


@pytest.mark.parametrize("fault", [reset, bytes_then_close(b""), bytes_then_close(b"HTTP/1.1 200 OK\r\nContent-Len")])
def test_a_broken_connection_is_repeated(fault: Handler) -> None:
    with serve_raw([fault, fault, answer(200, GOOD)]) as raw, client(raw.url) as api:
        assert api.complete(ONE).attempts == 3


@pytest.mark.parametrize("head", ["Content-Length: 99\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n"])
def test_a_cut_body_is_a_broken_connection(head: str) -> None:
    part = b"9\r\n" if "chunked" in head else b""
    cut = bytes_then_close(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + part + b'{"choices')
    with serve_raw([cut, answer(200, GOOD)]) as raw, client(raw.url) as api:
        reply = api.complete(ONE)
    assert reply.attempts == 2 and reply.received_bytes > len(json.dumps(GOOD))


def test_a_stalled_call_times_out_and_is_repeated() -> None:
    with serve_raw([stall, answer(200, GOOD)]) as raw, client(raw.url, read_s=0.1) as api:
        assert api.complete(ONE).attempts == 2


def test_a_server_that_stays_broken_is_given_up() -> None:
    with serve_raw(reset) as raw, client(raw.url) as api:
        with pytest.raises(UnreachableError) as caught:
            api.complete(ONE)
        assert len(raw.got) == QUICK.attempts
    assert "broke the connection" in caught.value.message and caught.value.status is None


def test_a_server_that_fails_on_a_request_is_tried_three_times() -> None:
    with serve_raw(answer(500, {"detail": "KeyError"})) as raw, client(raw.url) as api:
        with pytest.raises(UnreachableError, match="KeyError") as caught:
            api.complete(ONE)
        assert len(raw.got) == 3 and caught.value.status == 500


def test_a_wait_longer_than_our_patience_is_not_begun() -> None:
    shown: list[Progress] = []
    with serve_raw(answer(429, {}, {"Retry-After": "3600"})) as raw, client(raw.url, shown=shown) as api:
        with pytest.raises(UnreachableError, match="3600 s") as caught:
            api.complete(ONE)
    assert len(raw.got) == 1 and shown == [] and caught.value.status == 429


def test_no_server_is_an_error_at_once_and_one_that_was_there_is_waited_for() -> None:
    shown: list[Progress] = []
    with serve_raw(answer(200, GOOD)) as raw, client(raw.url, shown=shown) as api:
        api.complete(ONE)
    with client(raw.url, shown=shown) as api, pytest.raises(UnreachableError, match="Nothing answers") as caught:
        api.complete(ONE)
    assert shown == [] and "running" in caught.value.remedy

    with ExitStack() as stack:
        with serve_raw(answer(200, GOOD)) as raw:
            api = stack.enter_context(client(raw.url, shown=shown))
            api.complete(ONE)
        with pytest.raises(UnreachableError, match="takes no connections"):
            api.complete(ONE)
    assert any("takes no connections" in p.what for p in shown)


SHAPES: list[tuple[object, str]] = [
    ({"error": {"message": "no such thing", "type": "x", "code": 400}}, "no such thing"),
    ({"error": "no such thing", "error_type": "validation"}, "no such thing"),
    ({"detail": "no such thing"}, "no such thing"),
    ({"detail": [{"loc": ["body", "prompt"], "msg": "no such thing", "type": "t"}]}, "body.prompt: no such thing"),
    ({"object": "error", "message": "no such thing", "code": 400}, "no such thing"),
    ({"errors": [{"message": "no such thing"}]}, "no such thing"),
    (b"<html><head><title>no such &amp; thing</title></head><body>x</body></html>", "no such & thing"),
    (b"<p>no such <b>thing</b></p><script>var a = 1 < 2;</script>", "no such thing"),
    (b"no such\nthing\x1b[31m", "no such thing[31m"),
    (b'"no such thing"', "no such thing"),
]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [(400, *shape) for shape in SHAPES] + [(status, *SHAPES[0]) for status in (401, 402, 403, 405, 413, 418, 422, 501)],
)
def test_a_refusal_is_an_error_at_once_with_the_servers_message(status: int, body: object, words: str) -> None:
    with serve_raw(answer(status, body)) as raw, client(raw.url, KEY) as api:
        with pytest.raises(RefusedError) as caught:
            api.complete(ONE)
        assert len(raw.got) == 1
    assert caught.value.message.endswith(f"({status}): {words}") and raw.url in caught.value.message
    assert caught.value.remedy and caught.value.status == status


def test_without_a_key_the_remedy_is_a_key() -> None:
    with serve_raw(answer(401)) as raw, client(raw.url) as api, pytest.raises(RefusedError) as caught:
        api.complete(ONE)
    assert "asks for a key (401)" in caught.value.message and "TARGET_API_KEY" in caught.value.remedy


def test_a_long_message_is_cut() -> None:
    with serve_raw(answer(400, {"detail": "x" * 10_000})) as raw, client(raw.url) as api:
        with pytest.raises(RefusedError) as caught:
            api.complete(ONE)
    assert len(caught.value.message) < 450


def test_the_error_for_an_unknown_model_names_the_servers_models() -> None:
    missing = answer(404, {"error": {"message": "The model `m` does not exist."}})
    models = answer(200, {"data": [{"id": "one"}, {"id": "two\x1b"}, {"id": 3}, "four"]})
    listed = answer(200, {"data": [{"id": "one"}, {"id": "two\x1b"}]})
    for second, remedy in ((listed, "The server has: one, two."), (models, "Check the model's name")):
        with serve_raw([missing, second, missing]) as raw, client(raw.url) as api:
            for _ in range(2):  # the second time the names are known
                with pytest.raises(RefusedError, match="does not exist") as caught:
                    api.complete(ONE)
                assert caught.value.remedy.startswith(remedy)
            assert [g.path for g in raw.got] == ["/v1/completions", "/v1/models", "/v1/completions"]


@pytest.mark.parametrize("second", [reset, answer(401), answer(200, PAGE), answer(200, {"data": [{"id": "m"}]})])
def test_without_other_names_the_error_for_an_unknown_model_stays(second: Handler) -> None:
    with serve_raw([answer(404), second]) as raw, client(raw.url) as api:
        with pytest.raises(RefusedError) as caught:
            api.complete(ONE)
    assert caught.value.status == 404 and "base URL" in caught.value.remedy


def test_a_missing_path_fetches_no_models() -> None:
    with serve_raw(answer(404)) as raw, client(raw.url) as api:
        with pytest.raises(RefusedError):
            api.get("/version")
        assert len(raw.got) == 1


def test_a_redirect_is_an_error_and_not_followed() -> None:
    with serve_raw(answer(200, GOOD)) as elsewhere:
        with serve_raw(answer(307, b"", {"Location": elsewhere.url})) as raw, client(raw.url, KEY) as api:
            with pytest.raises(RefusedError, match="redirects to http"):
                api.complete(ONE)
        assert elsewhere.got == []


@pytest.mark.parametrize(
    "body", [b"", PAGE, b'{"choices": [', b"\xff\xfe", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b"a,b\n1,2"]
)
def test_an_answer_that_is_no_json_cannot_be_used(body: bytes) -> None:
    with serve_raw(answer(200, body)) as raw, client(raw.url) as api:
        with pytest.raises(AnswerError, match="no JSON|not with JSON") as caught:
            api.complete(ONE)
        assert len(raw.got) == 1
    assert len(caught.value.message) < 450


def test_an_answer_that_cannot_be_unpacked_cannot_be_used() -> None:
    with serve_raw(answer(200, b"no gzip", {"Content-Encoding": "gzip"})) as raw, client(raw.url) as api:
        with pytest.raises(AnswerError, match="unpacked"):
            api.complete(ONE)


def test_an_error_inside_a_200_is_an_error() -> None:
    busy = answer(200, {"error": {"message": "slow down", "code": 429}})
    with serve_raw([busy, answer(200, GOOD)]) as raw, client(raw.url) as api:
        assert api.complete(ONE).attempts == 2
    with serve_raw(answer(200, {"error": {"message": "no", "code": "403"}})) as raw, client(raw.url) as api:
        with pytest.raises(RefusedError, match=r"\(403\): no"):
            api.complete(ONE)
    with serve_raw(answer(200, {"error": "out of luck"})) as raw, client(raw.url) as api:
        with pytest.raises(AnswerError, match="out of luck"):
            api.complete(ONE)


def forever(piece: bytes, head: bytes) -> Handler:
    def handle(got: Got, sock: socket.socket, raw: Raw) -> bool:
        alive = send(sock, head)
        while alive and not raw.stopping.wait(0.005):
            alive = send(sock, piece)
        raw.gone.set()
        return False

    return handle


DRIPPING = forever(b" ", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{")


def test_an_answer_without_end_is_given_up() -> None:
    with serve_raw(DRIPPING) as raw, client(raw.url, patience_s=0.3) as api:
        with pytest.raises(UnreachableError, match=r"did not finish its answer within 0\.3 s"):
            api.complete(ONE)
        assert raw.gone.wait(10) and len(raw.got) == 1


def test_an_answer_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net_client, "BODY_MAX", 10)
    with serve_raw(DRIPPING) as raw, client(raw.url) as api:
        with pytest.raises(AnswerError, match="more than"):
            api.complete(ONE)
        assert raw.gone.wait(10)


# Stop.


def stopped_in_time(call: Callable[[], object], stop: threading.Event, when: Callable[[], bool]) -> BaseException:
    """The error of a call that is stopped as soon as `when()`; a call that goes on for 10 s fails the test."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as exc:
            raised.append(exc)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    polls = threading.Event()
    while not when():
        assert thread.is_alive()
        polls.wait(0.01)
    stop.set()
    thread.join(10)
    assert not thread.is_alive() and raised
    return raised[0]


def test_a_stop_ends_a_long_pause() -> None:
    shown: list[Progress] = []
    stop = threading.Event()
    with serve_raw(answer(429, {}, {"Retry-After": "30"})) as raw, client(raw.url, "", stop.is_set, shown) as api:
        exc = stopped_in_time(lambda: api.complete(ONE), stop, lambda: bool(shown))
    assert isinstance(exc, StoppedError)
    assert shown[0] == Progress("The server is busy (429); trying again", 0, 30, "s") and shown[-1] == Progress("")


@pytest.mark.parametrize("fault", [stall, DRIPPING])
def test_a_stop_ends_a_call_and_leaves_nothing_behind(fault: Handler) -> None:
    stop = threading.Event()
    with serve_raw(fault) as raw, client(raw.url, cancelled=stop.is_set, read_s=60) as api:
        exc = stopped_in_time(lambda: api.complete(ONE), stop, lambda: bool(raw.got))
        assert isinstance(exc, StoppedError)
        assert raw.gone.wait(10) and not in_flight()


@contextmanager
def deaf() -> Iterator[str]:
    """A server whose queue of connections is full: it neither accepts nor refuses further ones."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        for one in waiting:
            one.close()


def test_a_server_that_takes_no_connection_is_an_error() -> None:
    with deaf() as url, client(url, connect_s=0.2) as api:
        with pytest.raises(UnreachableError, match=r"no connection within 0\.2 s"):
            api.complete(ONE)


def test_a_stop_ends_a_wait_for_a_connection() -> None:
    stop = threading.Event()
    with deaf() as url, client(url, cancelled=stop.is_set, connect_s=1.5) as api:
        exc = stopped_in_time(lambda: api.complete(ONE), stop, lambda: bool(in_flight()))
        assert isinstance(exc, StoppedError)
        # A thread that connects cannot be woken: it ends by itself.
        for thread in [t for t in threading.enumerate() if t.name == "specviz-call"]:
            thread.join(10)
        assert not in_flight()


def test_a_client_goes_on_after_a_stop() -> None:
    stop = threading.Event()
    handlers = [answer(200, GOOD), stall, answer(200, GOOD)]
    with serve_raw(handlers) as raw, client(raw.url, cancelled=stop.is_set, read_s=60) as api:
        api.complete(ONE)  # the next call goes over the same connection
        stopped_in_time(lambda: api.complete(ONE), stop, lambda: len(raw.got) == 2)
        stop.clear()
        assert api.complete(ONE).body == GOOD


def test_a_stopped_run_sends_nothing() -> None:
    with serve_raw(answer(200, GOOD)) as raw, client(raw.url, cancelled=lambda: True) as api:
        with pytest.raises(StoppedError):
            api.complete(ONE)
        with pytest.raises(StoppedError):
            list(api.stream(ONE))
        assert raw.got == []


def test_it_can_be_closed_twice_and_its_log_filters_go() -> None:
    before = [list(logging.getLogger(name).filters) for name in ("httpx2", "httpcore2.http11", "openai")]
    with serve_raw(answer(200, GOOD)) as raw, client(raw.url) as api:
        api.complete(ONE)
        api.close()
    assert [list(logging.getLogger(name).filters) for name in ("httpx2", "httpcore2.http11", "openai")] == before


# Secrets.


def echo_all(status: int, kind: str) -> Handler:
    """A server that repeats everything that it was sent."""

    def handle(got: Got, sock: socket.socket, raw: Raw) -> bool:
        kind_of, _, credentials = got.headers["authorization"].partition(" ")
        if kind_of == "Basic":
            credentials += " " + base64.b64decode(credentials).decode()
        repeated = f"{kind_of} {credentials} at {got.path}"
        bodies: dict[str, object] = {
            "good": GOOD,
            "json": {"error": {"message": repeated}},
            "html": f"<html><body>{repeated}</body></html>".encode(),
            "hidden": {"detail": repeated.replace("sk-pl", "sk-\u200bpl").replace("pass-", "pass\x07-")},
            "stream": b"data: " + json.dumps({"error": {"message": repeated}}).encode() + b"\n\n",
        }
        headers = {"X-Request-Id": repeated, "Server": repeated, "Location": repeated}
        if kind == "stream":
            headers["Content-Type"] = "text/event-stream"
        return answer(status, bodies[kind], headers, reason=repeated.replace("\n", ""))(got, sock, raw)

    return handle


@pytest.mark.parametrize(
    ("status", "kind"),
    [(200, "good"), *((200, kind) for kind in ("json", "html", "hidden", "stream"))]
    + [(status, kind) for status in (307, 401, 404, 429, 500) for kind in ("json", "html", "hidden")],
)
def test_no_secret_is_in_any_error_or_log(status: int, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    words: list[str] = []
    shown: list[Progress] = []
    with serve_raw(echo_all(status, kind)) as raw:
        urls = ((raw.url, KEY), (within(raw.url, "me:pass-word@") + "?token=query-secret", ""))
        for url, key in urls:
            with client(url, key, shown=shown) as api:
                for call in (
                    lambda api=api: api.complete(ONE),
                    lambda api=api: list(api.stream(ONE)),
                    lambda api=api: api.get("models"),
                ):
                    try:
                        words += [repr(call().headers)]
                    except RemoteError as exc:
                        words += [str(exc), repr(exc), *traceback.format_exception(exc), repr(exc.__context__)]
                    except AttributeError:
                        raise AssertionError("a stream of nothing") from None
                words.append(repr(api) + repr(vars(api)) + repr(vars(api._server)))
        assert {"authorization"} <= set(raw.got[0].headers)
        sent = {g.headers["authorization"].split()[1] for g in raw.got}
    everything = "\n".join(
        [*words, *(p.what for p in shown), caplog.text, *map(str, (r.__dict__ for r in caplog.records))]
    )
    assert "127.0.0.1" in everything and caplog.records
    for secret in (*sent, KEY, "pass-word", "query-secret"):
        assert secret not in everything


# Streams.


def chunk(text: str, finish: str | None = None, **more: Any) -> str:
    return json.dumps({"choices": [{"index": 0, "text": text, "finish_reason": finish} | more]})


def streamed(api: HttpCompletions) -> list[tuple[str, int | None]]:
    return [(p.text, p.tokens) for p in api.stream(ONE)]


@pytest.mark.parametrize("framed", [True, False])
def test_a_stream_comes_in_pieces_with_their_tokens(framed: bool) -> None:
    parts = [
        chunk("ab", token_ids=[1, 2]),
        chunk("", token_ids=[3]),
        chunk("c", logprobs={"tokens": ["c"]}),
        chunk("d", logprobs={"content": [{"id": 1}, {"id": 2}]}),
        chunk("", "length"),
        json.dumps({"choices": [], "usage": {"completion_tokens": 6}}),
    ]
    with serve_raw(events(*parts, framed=framed)) as raw, client(raw.url) as api:
        assert streamed(api) == [("ab", 2), ("", 1), ("c", 1), ("d", 2)]
        assert raw.got[0].json["stream"] is True and raw.got[0].path == "/v1/completions"
    assert not in_flight()


def test_where_only_the_sum_of_tokens_is_known_it_comes_last() -> None:
    parts = [chunk("ab"), chunk("c", "length"), json.dumps({"choices": [], "usage": {"completion_tokens": 3}})]
    with serve_raw(events(*parts)) as raw, client(raw.url) as api:
        assert streamed(api) == [("ab", None), ("c", None), ("", 3)]
    with serve_raw(events(*parts[:2])) as raw, client(raw.url) as api:
        assert streamed(api) == [("ab", None), ("c", None)]


def collected(api: HttpCompletions) -> tuple[list[str], Exception | None]:
    """The texts that came, and the error that ended them."""
    texts: list[str] = []
    try:
        for piece in api.stream(ONE):
            texts.append(piece.text)
    except RemoteError as exc:
        return texts, exc
    return texts, None


@pytest.mark.parametrize(
    ("end", "kind", "words"),
    [
        (['{"error": {"message": "engine died"}}'], AnswerError, "engine died"),
        (['{"error": "engine died"}'], AnswerError, "engine died"),
        (['{"error": {}, "status_code": 503}'], UnreachableError, "503"),
        (['{"object": "error", "message": "no", "code": 400}'], RefusedError, "(400): no"),
        ([], UnreachableError, "broke off"),
        (["{"], UnreachableError, "broke off"),
    ],
)
def test_what_came_before_an_error_stays(end: Sequence[str], kind: type[RemoteError], words: str) -> None:
    handler = events(chunk("a"), chunk("b"), *end, end=False)
    with serve_raw([handler, answer(500)]) as raw, client(raw.url) as api:
        texts, error = collected(api)
        assert texts == ["a", "b"] and type(error) is kind and words in str(error)
        assert len(raw.got) == 1


def test_a_stream_is_repeated_while_nothing_has_come() -> None:
    good = events(chunk("a", "length"))
    faults = [reset, answer(429), events('{"error": {"code": 503}}', end=False), good]
    with serve_raw(faults) as raw, client(raw.url) as api:
        assert collected(api) == (["a"], None) and len(raw.got) == 4


def test_an_answer_that_is_no_stream_cannot_be_used() -> None:
    for handler in (answer(200, PAGE, {"Content-Type": "text/html"}), answer(200, GOOD)):
        with serve_raw(handler) as raw, client(raw.url) as api:
            texts, error = collected(api)
            assert texts == [] and isinstance(error, AnswerError) and "sent no stream" in str(error)
    with serve_raw(events("{", framed=True)) as raw, client(raw.url) as api:
        assert "no JSON" in str(collected(api)[1])


def test_a_refused_stream_names_the_models() -> None:
    with serve_raw([answer(404), answer(200, {"data": [{"id": "one"}]})]) as raw, client(raw.url) as api:
        assert "The server has: one." in str(collected(api)[1])


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
ENDLESS = forever(f"data: {chunk('a')}\n\n".encode(), HEAD)


def test_closing_a_stream_closes_the_connection() -> None:
    with serve_raw(ENDLESS) as raw, client(raw.url) as api:
        pieces = api.stream(ONE)
        assert next(pieces).text == next(pieces).text == "a"
        pieces.close()  # type: ignore[attr-defined]
        assert raw.gone.wait(10) and not in_flight()
        # The first piece is read ahead: closing after it must do the same.
        raw.gone.clear()
        pieces = api.stream(ONE)
        next(pieces)
        pieces.close()  # type: ignore[attr-defined]
        assert raw.gone.wait(10) and not in_flight()


@pytest.mark.parametrize("fault", [ENDLESS, stall])
def test_a_stop_ends_a_stream(fault: Handler) -> None:
    stop = threading.Event()
    with serve_raw(fault) as raw, client(raw.url, cancelled=stop.is_set, read_s=60) as api:
        exc = stopped_in_time(lambda: list(api.stream(ONE)), stop, lambda: bool(raw.got))
        assert isinstance(exc, StoppedError) and raw.gone.wait(10) and not in_flight()
