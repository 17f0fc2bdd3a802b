"""The address of a server, as a person types it: what is wrong with it, and what of it may be shown.

No message holds the text itself: a mistyped address may still contain a key.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit, urlunsplit

from specviz.core.errors import SettingsError

_EXAMPLES = "Try http://127.0.0.1:8000/v1, or https://api.cerebras.ai/v1."
_PORTS = {"http": 80, "https": 443}
#: The addresses of single calls, which are below a base URL.
_CALLS = ("/chat/completions", "/completions", "/v1/models")
_BRACKETS = ("An IPv6 address stands in brackets in a base URL.", "Write it as in http://[::1]:8000/v1.")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)


def without_secrets(url: str) -> str:
    """A base URL without its possibly secret parts (user, password, query, fragment) and without a trailing slash.

    Raises:
        SettingsError: it is not an http or https URL of a server; the message says in which way.
    """
    whole = url.strip()
    if not whole:
        return ""
    parts = _split(whole)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = f":{parts.port}" if parts.port is not None else ""
    return urlunsplit((parts.scheme, f"{host}{port}", parts.path.rstrip("/"), "", ""))


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of a URL that `without_secrets` has returned."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def is_this_machine(host: str | None) -> bool:
    """Whether a host's name or address never leaves this machine."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return host == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback or address.is_unspecified


def is_open(url: str) -> bool:
    """Whether others can read what is sent to a URL of `without_secrets`: it leaves this machine in plain http."""
    return url.startswith("http:") and not is_this_machine(urlsplit(url).hostname)


def _split(whole: str) -> SplitResult:
    """The parts of an address that has none of the usual slips."""
    # urlsplit drops line ends without a word.
    if not (whole.isascii() and whole.isprintable()) or re.search(r'[\s"<>\\^`{|}]', whole):
        raise SettingsError("The base URL has characters that no URL can have.", "Write them as %20 and the like.")
    scheme, mark, rest = whole.partition("://")
    if not mark:
        raise SettingsError("The base URL is not an http:// or https:// address: neither stands in front.", _EXAMPLES)
    if scheme.lower() not in _PORTS:
        raise SettingsError("The base URL is not an http:// or https:// address: it has another scheme.", _EXAMPLES)
    if rest.lower().startswith(("http:", "https:")):
        raise SettingsError("The base URL has http:// or https:// twice.", "Leave one of them out.")
    try:
        parts = urlsplit(whole)
    except ValueError:
        raise SettingsError(*_BRACKETS) from None
    if "@" in parts.path:
        raise SettingsError(
            "The base URL has an @ behind its host.",
            "In user and password, write / as %2F, ? as %3F and # as %23; in a path, @ as %40.",
        )
    _check_host(parts)
    if parts.path.rstrip("/").endswith(_CALLS):
        raise SettingsError(
            "The base URL ends in the path of a single call.",
            "Leave /chat/completions, /completions or /models off; most base URLs end in /v1.",
        )
    return parts


def _check_host(parts: SplitResult) -> None:
    bare = parts.netloc.rpartition("@")[2]
    if bare.count(":") > 1 and "[" not in bare:
        raise SettingsError(*_BRACKETS)
    if not parts.hostname:
        raise SettingsError("The base URL has no host.", _EXAMPLES)
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise SettingsError("The port of the base URL is not a number from 1 to 65535.", _EXAMPLES)
    if not _is_host(parts.hostname):
        raise SettingsError("The host of the base URL is neither a name nor an IP address.", _EXAMPLES)


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        labels = text.removesuffix(".").split(".")
        # A name never ends in a label of digits: that is an IPv4 address.
        return len(text) <= 253 and not labels[-1].isdigit() and all(map(_LABEL.fullmatch, labels))
    return True
