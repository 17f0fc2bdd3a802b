"""Which faults may pass, the wait that a server states, and what every error of the HTTP library becomes."""

import math
import ssl

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specviz.core.errors import AnswerError, RefusedError, UnreachableError
from specviz.core.secrets import Secrets
from specviz.net.faults import HTTP_FAULTS, Circumstances, fault_in, fault_of_status, retry_after_s
from specviz.net.route import Route

#: Examples have no time limit: the machine may be busy.
slow = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

HERE = Circumstances(Route("http://here"), Secrets(["sk-planted"]), with_key=True, connect_s=5.0)

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:07 GMT"}, 7.0),
        ({"retry-after": "Thu, 14 Jan 2027 08:00:07 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, math.inf),
        ({"retry-after": "later"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_server_states(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOW) == seconds


@slow
@given(st.text(max_size=40))
def test_any_header_is_no_pause_or_one_that_is_not_negative(text: str) -> None:
    seconds = retry_after_s({"retry-after": text, "retry-after-ms": text}, NOW)
    assert seconds is None or seconds >= 0


def test_a_status_is_a_refusal_or_may_pass() -> None:
    for status in range(300, 600):
        fault = fault_of_status(status, "words", {"retry-after": "2"}, HERE, NOW)
        may_pass = status in (408, 409, 425, 429) or (status >= 500 and status not in (501, 505, 511))
        assert fault.passing == may_pass
        assert type(fault.error) is (UnreachableError if may_pass else RefusedError)
        assert fault.error.status == status and fault.error.remedy
        assert f"({status}): words" in fault.error.message and "http://here" in fault.error.message
        assert fault.after_s == (2.0 if may_pass else None)


def errors_of_the_library() -> list[type[Exception]]:
    """Every error that httpx2 can raise for a request."""
    found: list[type[Exception]] = [httpx2.RequestError]
    for kind in found:
        found += kind.__subclasses__()
    return found


@pytest.mark.parametrize("kind", errors_of_the_library())
def test_every_error_of_the_http_library_has_a_message_of_its_own_kind(kind: type[Exception]) -> None:
    fault = fault_in(kind("went wrong with sk-planted"), HERE, HTTP_FAULTS)
    assert "http://here" in fault.error.message and fault.error.remedy and "planted" not in str(fault.error)
    assert "cannot be read" not in fault.error.message, "not in the table"
    assert isinstance(fault.error, AnswerError if kind is httpx2.DecodingError else UnreachableError)


def test_the_table_has_the_most_specific_first() -> None:
    kinds = [kind for kind, _ in HTTP_FAULTS]
    for at, kind in enumerate(kinds):
        assert not any(issubclass(kind, earlier) for earlier in kinds[:at]), kind


def test_a_certificate_that_is_not_trusted_is_named() -> None:
    cause = ssl.SSLCertVerificationError("x")
    cause.verify_message, cause.verify_code = "self-signed certificate", 18
    error = httpx2.ConnectError("failed")
    error.__cause__ = cause
    fault = fault_in(error, HERE, HTTP_FAULTS)
    assert "self-signed certificate" in fault.error.message and "SSL_CERT_FILE" in fault.error.remedy
    assert not fault.passing


@pytest.mark.parametrize(("framed", "kind"), [(True, AnswerError), (False, UnreachableError)])
def test_text_that_is_no_json_was_cut_where_its_end_cannot_be_seen(framed: bool, kind: type[Exception]) -> None:
    at = Circumstances(Route("http://here"), Secrets(), framed=framed)
    for error in (ValueError("x"), RecursionError("x")):
        assert type(fault_in(error, at, HTTP_FAULTS).error) is kind
