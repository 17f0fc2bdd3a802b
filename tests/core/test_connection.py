"""Which server a key is sent to."""

import pickle

import pytest

from specviz.core.connection import Connection, Secret, connection
from specviz.core.errors import SettingsError
from specviz.core.settings import Settings

OWN = "sk-planted-for-own-server"
CEREBRAS = "csk-planted-for-cerebras"
HERE = "http://127.0.0.1:8000/v1"


def link(url: str = "", key: Secret | None = None, **variables: str) -> Connection:
    return connection(Settings(target="openai:m", draft="ngram", base_url=url), variables, key)


@pytest.mark.parametrize(
    "url",
    [
        "https://models.example.org/v1",
        "https://models.example.org.evil.net/v1",
        "http://models.example.com/v1",
        "https://models.example.com:8443/v1",
        HERE,
    ],
)
def test_a_key_goes_to_no_other_server_than_the_environments(url: str) -> None:
    """A visitor of a page that is open to others may type any address."""
    named = {"TARGET_BASE_URL": "https://models.example.com/v1", "TARGET_API_KEY": OWN, "CEREBRAS_API_KEY": CEREBRAS}
    assert link("https://models.example.com/other", None, **named).key.value == OWN
    assert link("", None, **named).key.value == OWN
    assert not link(url, None, **named).key
    assert link(url, Secret("typed-by-hand"), **named).key.value == "typed-by-hand"


def test_a_key_without_an_address_stays_on_this_machine() -> None:
    assert link(HERE, TARGET_API_KEY=OWN).key.value == OWN
    assert link("http://[::1]:8000/v1", TARGET_API_KEY=OWN).key.value == OWN
    assert not link("http://192.0.2.1:8000/v1", TARGET_API_KEY=OWN).key


def test_the_key_of_cerebras_implies_its_address_and_goes_nowhere_else() -> None:
    found = link(CEREBRAS_API_KEY=CEREBRAS)
    assert found.shown == "https://api.cerebras.ai/v1" and found.key.value == CEREBRAS
    assert not link("https://api.cerebras.ai.example.org/v1", CEREBRAS_API_KEY=CEREBRAS).key
    assert not link(HERE, CEREBRAS_API_KEY=CEREBRAS).key


def test_no_address_is_an_error_whose_remedy_is_one() -> None:
    with pytest.raises(SettingsError, match="TARGET_BASE_URL"):
        link(TARGET_API_KEY=OWN)


def test_a_connection_shows_neither_key_nor_what_the_url_hides() -> None:
    found = link(TARGET_BASE_URL="https://user:word@models.example.com/v1?token=abcdef", TARGET_API_KEY=OWN)
    assert found.url.value.startswith("https://user:word@") and found.shown == "https://models.example.com/v1"
    assert not any(s in f"{found!r}{found}" for s in (OWN, "word", "abcdef"))
    with pytest.raises(TypeError, match="never stored"):
        pickle.dumps(found)
