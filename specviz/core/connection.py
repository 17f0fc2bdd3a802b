"""Where a remote target is and the key to it: what a run needs to know and nothing may show.

A `Connection` is made when a target is built and lives as long as it does. It is no setting, and no event, trace, log
or error holds one: both of its secrets print as dots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from specviz.core.errors import SettingsError
from specviz.core.secrets import MARK, Secrets
from specviz.core.settings import Settings, without_secrets

CEREBRAS_URL = "https://api.cerebras.ai/v1"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that never prints."""

    value: str = field(repr=False)

    def __str__(self) -> str:
        return MARK if self.value else ""

    __repr__ = __str__

    def __bool__(self) -> bool:
        return bool(self.value)

    def __reduce__(self) -> str:
        raise TypeError("a secret is never stored")


@dataclass(frozen=True, slots=True)
class Connection:
    """A base URL with all that is in it, a key, and how long to wait.

    Attributes:
        url: whole, with credentials and query. shown: without them.
        key: empty where the server asks for none.
        connect_s, read_s: seconds to wait for the connection, and between two parts of an answer.
        patience_s: seconds after which a call that keeps failing is given up, pauses included.
    """

    url: Secret
    shown: str
    key: Secret
    connect_s: float = 5.0
    read_s: float = 60.0
    patience_s: float = 180.0

    @property
    def secrets(self) -> Secrets:
        """What must be struck out of whatever a server or a library says."""
        return Secrets([self.key.value], [self.url.value])


def connection(settings: Settings, variables: Mapping[str, str], key: Secret | None = None) -> Connection:
    """Put it together from settings and environment.

    The base URL of the settings wins over TARGET_BASE_URL, and takes from it what it may hold secretly where both name
    the same address. The key is `key`, else one of the environment, and that goes to the server that the environment
    names and to no other, whatever address a visitor of the page types: TARGET_API_KEY to that of TARGET_BASE_URL (to
    this machine alone, where none is named), CEREBRAS_API_KEY to Cerebras, whose address it implies.

    Raises:
        SettingsError: no base URL is known.
    """
    named = variables.get("TARGET_BASE_URL", "").strip()
    cerebras = variables.get("CEREBRAS_API_KEY", "").strip()
    whole = settings.base_url or named or (CEREBRAS_URL if cerebras else "")
    if not whole:
        raise SettingsError(
            f"The target {settings.target} has no address.",
            "Set TARGET_BASE_URL (or give --base-url), as http://127.0.0.1:8000/v1; CEREBRAS_API_KEY alone means "
            "Cerebras.",
        )
    shown = without_secrets(whole)
    if named and without_secrets(named) == shown:
        whole = named
    if key is None or not key:
        key = Secret(_key_for(shown, variables))
    return Connection(Secret(whole), shown, key)


def _key_for(shown: str, variables: Mapping[str, str]) -> str:
    """The environment's key for an address; empty where it is meant for another."""
    named, own = variables.get("TARGET_BASE_URL", "").strip(), variables.get("TARGET_API_KEY", "").strip()
    if own and (_origin(without_secrets(named)) == _origin(shown) if named else urlsplit(shown).hostname in _LOOPBACK):
        return own
    return variables.get("CEREBRAS_API_KEY", "").strip() if _origin(shown) == _origin(CEREBRAS_URL) else ""


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
