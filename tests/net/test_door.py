"""The door to servers: proxies, certificates, the scheme that a server speaks, and who gets to see a key.

The public reports: hermes-agent#5834 and aichat#1013 (proxies), aider#3710 (SSL_CERT_FILE), httpx#646 (schemes).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from specviz.core.address import without_secrets
from specviz.core.connection import Connection, Secret
from specviz.core.errors import RefusedError, SettingsError, SpecvizError, UnreachableError
from specviz.net.repeating import Backoff
from specviz.targets.completions.wire.transport import HttpCompletions
from tests.net.tls import certificate, serve_tls
from tests.targets.completions.rawserver import Got, Raw, answer, bytes_then_close, reset, send, serve_raw

KEY = "sk-planted-0123456789"
MODELS = answer(200, {"data": []})
FAR = "http://far.invalid:8000/v1"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def client(url: str, key: str = "") -> Iterator[HttpCompletions]:
    connection = Connection(Secret(url), without_secrets(url), Secret(key), 5.0, 5.0, 30.0)
    quick = Backoff(0.001, 0.002, 0.001, 6)
    api = HttpCompletions(connection, "m", on_progress=lambda p: None, cancelled=lambda: False, backoff=quick)
    try:
        yield api
    finally:
        api.close()


def error_of(url: str, key: str = "") -> SpecvizError:
    with pytest.raises(SpecvizError) as caught, client(url, key) as api:
        api.get("models")
    assert KEY not in str(caught.value) and caught.value.remedy
    return caught.value


# Proxies.


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2", "[::1]", "0.0.0.0"])
def test_this_machine_is_reached_directly(variable: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_raw(MODELS) as proxy, serve_raw(MODELS) as server:
        monkeypatch.setenv(variable, proxy.url.removesuffix("/v1"))
        # The server listens at the first address only.
        with suppress(UnreachableError), client(server.url.replace("127.0.0.1", host), KEY) as api:
            api.get("models")
        assert proxy.got == []
        assert host != "127.0.0.1" or server.got[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("proxy", ["socks://127.0.0.1:1", "http://127.0.0.1:1"])
def test_an_unusable_proxy_is_nothing_to_this_machine(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with serve_raw(MODELS) as server, client(server.url) as api:
        assert api.get("models").body == {"data": []}


@pytest.mark.parametrize("url", [FAR, FAR.replace("far", "me:planted-password@far"), FAR + "?key=planted-query"])
def test_nothing_secret_goes_to_a_proxy_in_clear(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_raw(MODELS) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        error = error_of(url, KEY if url == FAR else "")
        assert proxy.got == []
        assert (
            "HTTP_PROXY" in error.message
            and "add far.invalid to NO_PROXY" in error.remedy
            and "planted" not in str(error)
        )
        with client(FAR) as api:
            api.get("models")
        assert proxy.got[0].path == f"{FAR}/models"


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_fault_of_a_proxy_names_the_proxy_and_is_not_repeated_for_long(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_raw(answer(status, b"cannot reach it")) as proxy:
        address = proxy.url.removesuffix("/v1")
        monkeypatch.setenv("HTTP_PROXY", address.replace("127", "me:planted-password@127"))
        error = error_of(FAR)
        assert f"proxy {address} of HTTP_PROXY" in error.message and "cannot reach it" in error.message
        assert "add far.invalid to NO_PROXY" in error.remedy and len(proxy.got) == 3 and "planted" not in str(error)


@pytest.mark.parametrize("url", [FAR, FAR.replace("http", "https")])
def test_a_proxy_that_is_not_there_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_raw(MODELS) as gone:
        pass
    monkeypatch.setenv("ALL_PROXY", gone.url.removesuffix("/v1"))
    error = error_of(url, KEY if url.startswith("https") else "")
    assert "The proxy http://127.0.0.1:" in error.message and "ALL_PROXY takes no connections" in error.message


@pytest.mark.parametrize(("status", "said"), [(407, "user and password"), (403, "see what it says")])
def test_a_proxy_that_refuses_is_named(status: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_raw(answer(status, b"")) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.removesuffix("/v1"))
        error = error_of(FAR.replace("http", "https"), KEY)
        assert [got.method for got in proxy.got] == ["CONNECT"] and KEY not in str(proxy.got)
    assert f"of HTTPS_PROXY does not connect to https://far.invalid:8000/v1 ({status} X)" in error.message
    assert said in error.remedy


def test_a_proxy_that_asks_for_a_password_in_plain_http_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_raw(answer(407, b"")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        error = error_of(FAR)
    assert isinstance(error, RefusedError) and "of http_proxy asks for a user and a password (407)" in error.message


@pytest.mark.parametrize(
    ("proxy", "why"),
    [
        ("socks://127.0.0.1:1", "its scheme is none of"),
        ("ftp://me:planted-password@127.0.0.1", "its scheme is none of"),
        ("http://me:planted-password@127.0.0.1:port", "it is not a URL"),
        ("http://:3128", "it has no host"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_a_setting_with_its_reason(
    proxy: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    error = error_of(FAR)
    assert isinstance(error, SettingsError) and f"ALL_PROXY names for {FAR} cannot be used: {why}" in error.message
    assert "planted" not in str(error)


def test_socks_names_the_package_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:1")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "SOCKS needs the package socksio" in error_of(FAR).message


@pytest.mark.parametrize(
    "exceptions", ["far.invalid", ".invalid", "other, *", "far.invalid:8000", "http://far.invalid"]
)
def test_no_proxy_is_heeded(exceptions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_raw(MODELS) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("NO_PROXY", exceptions)
        assert "its host has no address" in error_of(FAR, KEY).message
        assert proxy.got == []


@pytest.mark.parametrize(
    ("exceptions", "direct"), [("192.0.2.0/24", True), ("192.0.2.1", True), ("198.51.100.0/24,nonsense/9", False)]
)
def test_no_proxy_may_hold_networks(exceptions: str, direct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", exceptions)
    if direct:
        with client("http://192.0.2.1:8000/v1", KEY):
            pass
    else:
        assert isinstance(error_of("http://192.0.2.1:8000/v1", KEY), SettingsError)


# Certificates.


def test_plain_http_needs_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/gone/planted.pem")
    with serve_raw(MODELS) as server, client(server.url) as api:
        assert api.get("models").body == {"data": []}


@pytest.mark.parametrize(
    ("variable", "make", "why"),
    [
        ("SSL_CERT_FILE", lambda path: None, "No such file"),
        ("SSL_CERT_FILE", lambda path: path.write_text("<html>"), "holds no certificate"),
        ("SSL_CERT_FILE", lambda path: path.mkdir(), "directory"),
        ("SSL_CERT_DIR", lambda path: None, "not a folder"),
        ("SSL_CERT_DIR", lambda path: path.write_text(""), "not a folder"),
    ],
)
def test_certificates_that_cannot_be_used_name_their_variable(
    variable: str, make: Callable[[Path], object], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "ca")
    monkeypatch.setenv(variable, str(tmp_path / "ca"))
    error = error_of("https://far.invalid/v1", KEY)
    assert isinstance(error, SettingsError)
    assert error.message.startswith(f"{variable} names {tmp_path / 'ca'}, which cannot be used: ")
    assert why in error.message


def test_a_log_of_keys_that_cannot_be_written_names_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path)))
    monkeypatch.setenv("SSLKEYLOGFILE", "/gone/keys")
    assert "SSLKEYLOGFILE names /gone/keys" in error_of("https://far.invalid/v1").message


def test_a_certificate_is_trusted_when_its_variable_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_tls(tmp_path) as url:
        assert "Set SSL_CERT_FILE" in error_of(url, KEY).remedy
        (tmp_path / "empty").mkdir()
        monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "empty"))
        assert "what SSL_CERT_DIR names" in error_of(url, KEY).remedy
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path)))
        with client(url, KEY) as api:
            assert api.get("models").body == {"data": []}


# What a server speaks.


def test_https_for_a_server_that_speaks_http_says_so() -> None:
    with serve_raw(MODELS) as server:
        error = error_of(server.url.replace("http", "https"), KEY)
        assert KEY not in str(server.got)
    assert "speaks http, not https" in error.message and f"Set the base URL to {server.url}." == error.remedy


def test_http_for_a_server_that_speaks_https_says_so(tmp_path: Path) -> None:
    with serve_tls(tmp_path) as url:
        error = error_of(url.replace("https", "http"), KEY)
    assert "speaks https, not http" in error.message and f"Set the base URL to {url}." == error.remedy


@pytest.mark.parametrize("path", ["", "/v1"])
def test_a_base_url_without_a_path_is_told_of_v1(path: str) -> None:
    with serve_raw(answer(404, {})) as server:
        error = error_of(server.url.removesuffix("/v1") + path)
    assert (f"try {server.url}" in error.remedy) == (path == "")


def test_a_server_that_speaks_something_else_is_told_at_once() -> None:
    with serve_raw(bytes_then_close(b"+OK ready\r\n-ERR unknown command\r\n\r\n")) as server:
        error = error_of(server.url)
        assert len(server.got) == 1 and "not HTTP" in error.message and "port" in error.remedy


def test_one_that_breaks_off_is_asked_for_its_scheme_once() -> None:
    with serve_raw(reset) as server:
        assert "broke the connection" in error_of(server.url).message
        assert len(server.got) == 6 and len({got.method for got in server.got}) == 1


def test_nothing_at_a_port_is_said_so() -> None:
    with serve_raw(MODELS) as server:
        pass
    assert "nothing listens on this port" in error_of(server.url).message


def test_a_redirect_names_where_it_leads_and_gets_no_key() -> None:
    with serve_raw(MODELS) as other:
        lead = answer(302, b"", {"Location": f"{other.url}/models?token=planted-token"})
        with serve_raw(lead) as server:
            error = error_of(server.url, KEY)
        assert other.got == [] and f"redirects to {other.url}/models (302)" in error.message
    assert "planted" not in str(error)


def test_a_web_page_is_called_one() -> None:
    page = answer(200, b"<!DOCTYPE html><title>Sign in to \x1b[31mhotel wifi</title>", {"Content-Type": "text/html"})
    with serve_raw(page) as server:
        error = error_of(server.url)
    assert "answered with a web page (Sign in to [31mhotel wifi), not with JSON" in error.message
    assert "asks to sign in" in error.remedy
    with serve_raw(answer(511, b"<title>Welcome</title>")) as server:
        assert "this network asks to sign in (511): Welcome" in error_of(server.url).message
        assert len(server.got) == 1


def test_no_redirect_and_no_probe_of_the_scheme_carries_the_key() -> None:
    seen: list[bytes] = []

    def note(got: Got, sock: object, raw: Raw) -> bool:
        seen.append(str(got.headers).encode())
        return send(sock, b"HTTP/1.1 400 X\r\nContent-Length: 9\r\n\r\nuse HTTPS")  # type: ignore[arg-type]

    with serve_raw(note) as server:
        assert "use HTTPS" in error_of(server.url, KEY).message
        error_of(server.url.replace("http", "https"), KEY)
    assert [KEY.encode() in one for one in seen] == [True, False]
