"""The keys to servers that one visitor has typed: kept beside the visit, never in session state.

What a component sends stays in Streamlit's session state, and Streamlit's debug log prints it. So the browser encrypts
a key with a one-time pad that this module made, and only the encrypted text is there: the pad is not kept.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from specviz.core.address import without_secrets
from specviz.core.connection import Secret
from specviz.core.errors import SettingsError

LONGEST_BYTES = 512


@dataclass(frozen=True, slots=True)
class Pad:
    """As many random bytes as a key may have, used once. `number` is the number of the pad."""

    number: int
    noise: bytes

    def to_json(self) -> dict[str, Any]:
        """The pad as it is sent to the browser."""
        return {"number": self.number, "noise": self.noise.hex()}

    def __repr__(self) -> str:
        return f"Pad({self.number})"


class Keys:
    """One visitor's keys. Each is sent to the address that it was typed for, and nowhere else."""

    def __init__(self) -> None:
        self._held: dict[str, Secret] = {}
        self._lock = threading.Lock()
        # A browser with a new session sends again what it sent to the old one: its number must not match by chance.
        self._pad = self._next(secrets.randbelow(2**40))

    def __repr__(self) -> str:
        return f"Keys({len(self._held)})"

    @property
    def pad(self) -> Pad:
        """The pad for the next key."""
        return self._pad

    def take(self, url: str, covered: Any) -> bool:
        """Decrypt a key and keep it for the address of `url`. A key that was taken already changes nothing.

        Returns:
            Whether there was a new one.

        Raises:
            SettingsError: it cannot be a key. The text itself is not in the message.
        """
        with self._lock:
            key = _uncovered(covered, self._pad)
            if key is None:
                return False
            self._pad = self._next(self._pad.number + 1)
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise SettingsError(
                "A key has letters, digits and signs, no spaces and nothing else.", "Copy it again, without quotes."
            )
        self._held[address(url)] = Secret(key)
        return True

    def get(self, url: str) -> Secret | None:
        """The key for the address of `url`, if one was typed."""
        return self._held.get(address(url))

    def forget(self, url: str, number: Any) -> None:
        """Drop the key for the address of `url`; `number` is that of the pad that the browser has, and is used once."""
        with self._lock:
            if type(number) is not int or number != self._pad.number:
                return
            self._pad = self._next(number + 1)
        self._held.pop(address(url), None)

    def clear(self) -> None:
        """Drop all of them."""
        self._held.clear()

    @staticmethod
    def _next(number: int) -> Pad:
        return Pad(number, secrets.token_bytes(LONGEST_BYTES))


def address(url: str) -> str:
    """Scheme, host and port of a base URL; empty for none.

    Raises:
        SettingsError: it is no http or https URL.
    """
    parts = urlsplit(without_secrets(url))
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _uncovered(covered: Any, pad: Pad) -> str | None:
    """The key; None where the pad is another one, and for anything that our script never sends."""
    if not isinstance(covered, dict) or covered.get("number") != pad.number:
        return None
    try:
        data = bytes.fromhex(covered["key"])
        return bytes(a ^ b for a, b in zip(data, pad.noise[: len(data)], strict=True)).decode()
    except (KeyError, TypeError, ValueError):
        return None
