"""Keys of a visitor: encrypted by the browser, kept for one address, not reachable from elsewhere."""

from __future__ import annotations

import pytest

from specviz.core.errors import SettingsError
from specviz.ui.keys import LONGEST_BYTES, Keys, Pad, address

URL = "http://127.0.0.1:8000/v1"
KEY = "sk-planted-0123456789"


def covered(key: str, pad: Pad) -> dict[str, object]:
    """As key.js encrypts it."""
    data = key.encode()
    return {"number": pad.number, "key": bytes(a ^ b for a, b in zip(data, pad.noise, strict=False)).hex()}


def test_an_encrypted_key_is_decrypted_and_its_pad_is_used_up() -> None:
    keys = Keys()
    pad = keys.pad
    sent = covered(KEY, pad)
    assert KEY.encode().hex() not in str(sent)
    keys.take(URL, sent)
    assert keys.get(URL).value == KEY
    assert keys.pad.number != pad.number and keys.pad.noise != pad.noise


def test_the_same_message_twice_changes_nothing() -> None:
    keys = Keys()
    sent = covered(KEY, keys.pad)
    assert keys.take(URL, sent)
    forget = keys.pad.number
    keys.forget(URL, forget)
    assert not keys.take(URL, sent)
    assert keys.get(URL) is None
    keys.take(URL, covered(KEY, keys.pad))
    keys.forget(URL, forget)
    assert keys.get(URL), "what was asked before the key was typed"


@pytest.mark.parametrize("sent", [None, True, False, 1.5, "0", 7, {}])
def test_only_the_number_of_the_pad_that_is_shown_drops_a_key(sent: object) -> None:
    keys = Keys()
    keys.take(URL, covered(KEY, keys.pad))
    keys.forget(URL, sent)
    assert keys.get(URL)


def test_a_key_for_the_pad_of_an_older_session_is_ignored() -> None:
    old, new = Keys(), Keys()
    sent = covered(KEY, old.pad)
    old.take(URL, sent)
    forget = old.pad.number
    assert not new.take(URL, sent) and new.get(URL) is None
    new.take(URL, covered(KEY, new.pad))
    new.forget(URL, forget)
    assert new.get(URL), "the forgetting was of another key"


def test_a_key_is_for_one_address() -> None:
    keys = Keys()
    keys.take(URL, covered(KEY, keys.pad))
    assert keys.get("http://127.0.0.1:8000/other").value == KEY
    for other in ("http://127.0.0.1:8001/v1", "https://127.0.0.1:8000/v1", "http://example.com/v1", ""):
        assert keys.get(other) is None


@pytest.mark.parametrize(
    "sent", [None, True, "text", {}, {"number": 0}, {"number": 0, "key": "zz"}, {"number": 0, "key": 7}]
)
def test_malformed_messages_are_ignored(sent: object) -> None:
    keys = Keys()
    keys.take(URL, sent)
    assert keys.get(URL) is None


@pytest.mark.parametrize("typed", ["two words", "line\r\nX-Evil: 1", "schlüssel", "tab\there", ""])
def test_what_cannot_be_in_a_header_is_not_a_key_and_is_not_repeated(typed: str) -> None:
    keys = Keys()
    with pytest.raises(SettingsError) as told:
        keys.take(URL, covered(typed, keys.pad))
    assert keys.get(URL) is None
    assert not typed or typed not in str(told.value)


def test_a_message_longer_than_the_pad_is_ignored() -> None:
    keys = Keys()
    keys.take(URL, {"number": keys.pad.number, "key": "00" * (LONGEST_BYTES + 1)})
    assert keys.get(URL) is None


def test_no_representation_shows_a_key() -> None:
    keys = Keys()
    pad = keys.pad
    keys.take(URL, covered(KEY, pad))
    assert KEY not in f"{keys!r} {keys.get(URL)!r} {keys.get(URL)}" and pad.noise.hex() not in repr(pad)


def test_an_address_is_scheme_host_and_port() -> None:
    assert address("http://user:secret@127.0.0.1:8000/v1?key=1") == "http://127.0.0.1:8000"
    assert address("") == ""
