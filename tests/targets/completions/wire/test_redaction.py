import logging
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from specviz.core.connection import Connection, Secret
from specviz.targets.completions.wire.redaction import CUT, DOTS, LOGGERS, LogRedactor, Redactor, message_of, said

#: No example is too slow on a machine that has much else to do.
slow = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

KEY = "sk-planted-0123456789"


def redactor(url: str = "http://here/v1", key: str = KEY) -> Redactor:
    return Redactor(Connection(Secret(url), "http://here/v1", Secret(key)))


ANY = st.text(max_size=400)


@slow
@given(ANY, ANY)
@example("x" * (CUT - 5), "")
@example("sk-planted-", "")
def test_a_key_never_survives(before: str, after: str) -> None:
    words = redactor().words(f"{before}{KEY}{after}")
    assert KEY not in words and KEY[:12] not in words.removeprefix(before[:CUT])
    assert len(words) <= CUT and words.isprintable()


@slow
@given(st.sampled_from("\u200b\u00ad\u202e\x00\x1b\ud800"), st.integers(1, len(KEY) - 1))
def test_nor_does_one_that_is_hidden_by_an_invisible_character(invisible: str, at: int) -> None:
    assert redactor().words(f"key {KEY[:at]}{invisible}{KEY[at:]}!") == f"key {DOTS}!"


@slow
@given(st.binary(max_size=300))
def test_any_body_says_something_printable_or_nothing(data: bytes) -> None:
    assert said(data + KEY.encode(), redactor()).isprintable()


@slow
@given(st.recursive(st.none() | st.booleans() | st.floats() | ANY, lambda s: st.lists(s) | st.dictionaries(ANY, s)))
def test_any_json_says_something_printable_or_nothing(value: object) -> None:
    assert message_of({"error": value, "detail": value}, redactor()).isprintable()


def test_every_secret_of_a_url_is_struck_in_every_form() -> None:
    url = "http://me:p%40ss%22word@here/v1?token=a%2Fb%20c%3D&version=1#frag"
    hide = redactor(url, "")
    forms = ['p@ss"word', "p%40ss%22word", r"p@ss\"word", "p@ss&quot;word", "a/b c=", "a%2Fb%20c%3D", "a%2Fb+c%3D"]
    forms += ["token=a%2Fb%20c%3D&version=1", "bWU6cEBzcyJ3b3Jk", url]
    for form in forms:
        assert hide.words(f"<{form}>") == f"<{DOTS}>", form
    # One letter is no secret, and striking it would tear every word apart.
    assert hide.words("version 1") == "version 1"


def test_a_key_of_one_character_is_struck_all_the_same() -> None:
    assert redactor(key="q").words("quick") == f"{DOTS}uick"


@pytest.mark.parametrize("name", LOGGERS)
def test_the_loggers_on_the_way_write_no_secrets(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    filters = LogRedactor(redactor())
    filters.hang()
    logging.getLogger(name).debug("with %s and %d", quote(KEY), 3)
    logging.getLogger(name).debug("without %s", "anything")
    filters.remove()
    logging.getLogger(name).debug("after %s", KEY)
    assert caplog.messages == [f"with {DOTS} and 3", "without anything", f"after {KEY}"]


def test_every_logger_of_the_libraries_is_on_the_list() -> None:
    import openai  # noqa: F401  the libraries make their loggers when they are imported

    here = set(logging.root.manager.loggerDict)
    made = {n for n in here if n.split(".")[0] in ("httpx2", "httpcore2", "openai")}
    real = {n for n in made if isinstance(logging.root.manager.loggerDict[n], logging.Logger)}
    assert {n for n in real if n.startswith(("httpx2", "httpcore2"))} <= set(LOGGERS)
