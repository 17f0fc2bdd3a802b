import logging
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from specviz.core.secrets import MARK, Secrets
from specviz.net.redaction import CUT, LOGGERS, LogRedactor, message_in, message_of, words

#: Examples have no time limit: the machine may be busy.
slow = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

KEY = "sk-planted-0123456789"


SECRETS = Secrets([KEY])


ANY = st.text(max_size=400)


@slow
@given(ANY, ANY)
@example("x" * (CUT - 5), "")
@example("sk-planted-", "")
def test_a_key_never_survives(before: str, after: str) -> None:
    text = words(f"{before}{KEY}{after}", SECRETS)
    assert KEY not in text and KEY[:12] not in text.removeprefix(before[:CUT])
    assert len(text) <= CUT and text.isprintable()


@slow
@given(st.sampled_from("\u200b\u00ad\u202e\x00\x1b\ud800"), st.integers(1, len(KEY) - 1))
def test_nor_does_one_that_is_hidden_by_an_invisible_character(invisible: str, at: int) -> None:
    assert words(f"key {KEY[:at]}{invisible}{KEY[at:]}!", SECRETS) == f"key {MARK}!"


@slow
@given(st.binary(max_size=300))
def test_any_body_says_something_printable_or_nothing(data: bytes) -> None:
    assert message_in(data + KEY.encode(), SECRETS).isprintable()


@slow
@given(st.recursive(st.none() | st.booleans() | st.floats() | ANY, lambda s: st.lists(s) | st.dictionaries(ANY, s)))
def test_any_json_says_something_printable_or_nothing(value: object) -> None:
    assert message_of({"error": value, "detail": value}, SECRETS).isprintable()


@pytest.mark.parametrize("name", LOGGERS)
def test_the_loggers_on_the_way_write_no_secrets(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    filters = LogRedactor(SECRETS)
    filters.hang()
    logging.getLogger(name).debug("with %s and %d", quote(KEY), 3)
    logging.getLogger(name).debug("without %s", "anything")
    filters.remove()
    logging.getLogger(name).debug("after %s", KEY)
    assert caplog.messages == [f"with {MARK} and 3", "without anything", f"after {KEY}"]


def test_every_logger_of_the_libraries_is_on_the_list() -> None:
    import openai  # noqa: F401  the libraries make their loggers when they are imported

    here = set(logging.root.manager.loggerDict)
    made = {n for n in here if n.split(".")[0] in ("httpx2", "httpcore2", "openai")}
    real = {n for n in made if isinstance(logging.root.manager.loggerDict[n], logging.Logger)}
    assert {n for n in real if n.startswith(("httpx2", "httpcore2"))} <= set(LOGGERS)
