"""Which texts are secret, in which forms they are removed, and what stays unchanged."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.core.secrets import MARK, Secrets

KEY = "sk-planted-0123456789"


def test_every_secret_of_a_url_is_struck_in_every_form() -> None:
    url = "http://me:p%40ss%22word@here/v1?token=a%2Fb%20c%3D&version=1#fragment"
    hide = Secrets(urls=[url])
    forms = ['p@ss"word', "p%40ss%22word", r"p@ss\"word", "p@ss&quot;word", "a/b c=", "a%2Fb%20c%3D", "a%2Fb+c%3D"]
    forms += ["token=a%2Fb%20c%3D&version=1", "bWU6cEBzcyJ3b3Jk", "fragment", url]
    for form in forms:
        assert hide.strike(f"<{form}>") == f"<{MARK}>", form
    # One letter is not treated as a secret: removing it would damage every word.
    assert hide.strike("version 1 is for me") == "version 1 is for me"


@pytest.mark.parametrize(
    ("url", "hidden"),
    [
        ("http://127.0.0.1:8000/v1", []),
        ("http://127.0.0.1:8000/v1/", []),
        ("", []),
        ("https://me:pass%2Fword@host/v1", ["pass/word", "pass%2Fword", "bWU6cGFzcy93b3Jk"]),
        ("https://me:pw@host/v1", ["bWU6cHc=", "bWU6cHc"]),
        ("https://sole-token@host/v1", ["sole-token"]),
        ("https://host/v1?token=tok-12345", ["tok-12345", "token=tok-12345"]),
        ("me:password@host/v1", ["me:password@host/v1"]),
        ("http://[broken/v1", ["http://[broken/v1"]),
    ],
)
def test_what_a_base_url_holds_beside_the_address_is_secret(url: str, hidden: list[str]) -> None:
    found = Secrets(urls=[url])
    assert bool(found) is bool(hidden)
    for text in [*hidden, *([url] if hidden else [])]:
        assert found.strike(f"a {text} b") == f"a {MARK} b", text
    assert found.strike("http://127.0.0.1:8000/v1 https://host/v1") == "http://127.0.0.1:8000/v1 https://host/v1"


def test_a_key_is_secret_unless_it_is_a_short_word() -> None:
    assert Secrets(["typed-in-2"]).strike("a typed-in-2 b") == f"a {MARK} b"
    assert not Secrets(["EMPTY", "none", "dummy", ""])


def test_of_two_secrets_the_longer_one_goes_first() -> None:
    assert Secrets(["planted", "planted-too"]).strike("planted-too, planted") == f"{MARK}, {MARK}"


def test_json_keeps_its_names_and_numbers() -> None:
    text = json.dumps({"planted-name": 1795842622, "text": "planted-name at 1795842622", "list": ["x", "1795842622"]})
    struck = Secrets(["planted-name", "1795842622"]).strike_json(text)
    assert json.loads(struck) == {"planted-name": 1795842622, "text": f"{MARK} at {MARK}", "list": ["x", MARK]}
    assert Secrets([KEY]).strike_json(text) is text


@given(st.text(max_size=20), st.text(min_size=6, max_size=12), st.text(max_size=20), st.booleans())
def test_in_json_a_secret_is_found_however_it_is_escaped(before: str, secret: str, after: str, plain: bool) -> None:
    value = f"{before}{secret}{after}"
    text = json.dumps([value, {"a": value}], ensure_ascii=not plain)
    found = Secrets([secret])
    assert json.loads(found.strike_json(text)) == [found.strike(value), {"a": found.strike(value)}]


def test_secrets_are_neither_shown_nor_stored() -> None:
    found = Secrets([KEY])
    assert KEY not in f"{found!r}{found}" and found and not Secrets()
    with pytest.raises(TypeError, match="never stored"):
        pickle.dumps(found)
