"""The address and the API key of a completions target.

A `Connection` is created with its target and lives as long as the target. It is not a setting, and no event, trace, log
or error contains one. Its URL and key are never printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from specviz.core.address import is_open, is_this_machine, origin, without_secrets
from specviz.core.errors import SettingsError
from specviz.core.secrets import MARK, Secrets
from specviz.core.settings import Settings

#: Follows the address that a key goes to.
UNENCRYPTED = "is not an https address: everybody on the way there can read the key and the texts."
CEREBRAS_URL = "https://api.cerebras.ai/v1"


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that is never printed."""

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
    """A base URL, a key, and how long to wait.

    Attributes:
        url: the full base URL, with credentials and query. shown: the URL without them.
        key: empty when the server needs none.
        connect_s, read_s: time-outs in seconds, for connecting and between two parts of an answer.
        patience_s: time limit in seconds for retrying a failing call, pauses included.
    """

    url: Secret
    shown: str
    key: Secret
    connect_s: float = 5.0
    read_s: float = 60.0
    patience_s: float = 180.0

    @property
    def secrets(self) -> Secrets:
        """What must be removed from every text that comes from a server or a library."""
        return Secrets([self.key.value], [self.url.value])

    @property
    def warning(self) -> str:
        """What the person whose key it is should know; empty for nothing."""
        secret = bool(self.key) or self.shown != self.url.value.strip().rstrip("/")
        return f"{self.shown} {UNENCRYPTED}" if secret and is_open(self.shown) else ""


def connection(settings: Settings, variables: Mapping[str, str], key: Secret | None = None) -> Connection:
    """The connection for these settings and this environment.

    The base URL of the settings overrides TARGET_BASE_URL. If both have the same address, the credentials and the query
    of TARGET_BASE_URL are used. The key is `key` if given, else one from the environment. A key from the environment is
    sent only to its own server, whatever address a visitor of the page enters: TARGET_API_KEY to the server of
    TARGET_BASE_URL, or to this machine if that is not set; CEREBRAS_API_KEY to Cerebras, which is also the default
    address when only that key is set.

    Raises:
        SettingsError: no base URL is given.
    """
    named = variables.get("TARGET_BASE_URL", "").strip()
    cerebras = variables.get("CEREBRAS_API_KEY", "").strip()
    whole = settings.base_url or named or (CEREBRAS_URL if cerebras else "")
    if not whole:
        raise SettingsError(
            f"The target {settings.target} has no address.",
            "Set TARGET_BASE_URL (or give --base-url), such as http://127.0.0.1:8000/v1; CEREBRAS_API_KEY alone "
            "selects Cerebras.",
        )
    shown = without_secrets(whole)
    if named and without_secrets(named) == shown:
        whole = named
    if key is None or not key:
        key = Secret(_key_for(shown, variables))
    return Connection(Secret(whole), shown, key)


def _key_for(shown: str, variables: Mapping[str, str]) -> str:
    """The environment's key for an address; empty when its keys are for other servers."""
    named, own = variables.get("TARGET_BASE_URL", "").strip(), variables.get("TARGET_API_KEY", "").strip()
    here = is_this_machine(urlsplit(shown).hostname)
    if own and (origin(without_secrets(named)) == origin(shown) if named else here):
        return own
    return variables.get("CEREBRAS_API_KEY", "").strip() if origin(shown) == origin(CEREBRAS_URL) else ""
