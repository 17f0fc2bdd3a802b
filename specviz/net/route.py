"""How requests reach a server: directly or through a proxy, and with which certificates.

The environment says both. It is read here and not by the HTTP library, which would send requests for this machine to a
proxy, and would need certificates for plain http.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import ssl
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from specviz.core.address import is_this_machine
from specviz.core.connection import Secret
from specviz.core.errors import SettingsError
from specviz.core.secrets import Secrets
from specviz.net.redaction import words

#: How long `answers` waits, in seconds.
_ANSWERS_S = 2.0


@dataclass(frozen=True, slots=True)
class Route:
    """The way to one server.

    Attributes:
        address: the server's base URL, without secrets.
        proxy: with user and password; empty for none. shown: without them.
        variable: what names the proxy, such as HTTPS_PROXY.
    """

    address: str
    proxy: Secret = Secret("")
    shown: str = ""
    variable: str = ""

    @property
    def where(self) -> str:
        """The address, and the proxy before it, for messages."""
        return f"{self.address} (through the proxy {self.named})" if self.proxy else self.address

    @property
    def named(self) -> str:
        """The proxy, for messages."""
        return f"{self.shown} of {self.variable}"

    @property
    def around(self) -> str:
        """How to do without the proxy, for remedies."""
        return f"add {urlsplit(self.address).hostname} to NO_PROXY to go around it"

    @property
    def forwarded(self) -> bool:
        """Whether a proxy reads and answers the requests; it only passes on what is encrypted."""
        return bool(self.proxy) and self.address.startswith("http:")


def route_to(address: str) -> Route:
    """The way to the server at a base URL without secrets. This machine is reached directly, whatever is set.

    Raises:
        SettingsError: the proxy for this server cannot be used.
    """
    parts, proxies = urlsplit(address), getproxies()
    kind = next((kind for kind in (parts.scheme, "all") if proxies.get(kind)), "")
    if not kind or is_this_machine(parts.hostname) or _is_excepted(address, proxies.get("no", "")):
        return Route(address)
    url = proxies[kind] if "://" in proxies[kind] else f"http://{proxies[kind]}"
    # The lower-case name comes first where both are set.
    names = sorted(name for name, value in os.environ.items() if value and name.lower() == f"{kind}_proxy")
    shown, why = _checked(url)
    route = Route(address, Secret(url), shown, names[-1] if names else "the system's settings")
    if why:
        raise SettingsError(
            f"The proxy that {route.variable} names for {address} cannot be used: {why}.",
            f"Give it as http://host:port, or {route.around}.",
        )
    return route


def _checked(url: str) -> tuple[str, str]:
    """A proxy's address without user and password, and why it cannot be used; empty where it can."""
    if url.partition("://")[0].lower() not in ("http", "https", "socks5", "socks5h"):
        return "", "its scheme is none of http, https, socks5 and socks5h"
    try:
        parts = httpx2.Proxy(url).url
    except (ValueError, httpx2.InvalidURL):
        return "", "it is not a URL"
    if not parts.host:
        return "", "it has no host"
    socks = parts.scheme.startswith("socks")
    lacking = socks and importlib.util.find_spec("socksio") is None
    return f"{parts.scheme}://{parts.netloc.decode()}", "SOCKS needs the package socksio" if lacking else ""


def password_in(proxy: str) -> tuple[str, ...]:
    """The password of a proxy, as it is and as it is written in its URL; none where there is none."""
    password = urlsplit(proxy).password
    return (password, unquote(password)) if password else ()


def answers(url: str) -> bool:
    """Whether anything answers at a URL in HTTP, without a key, a proxy or trust: nothing of the answer is used."""
    nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nobody.check_hostname, nobody.verify_mode = False, ssl.CERT_NONE
    try:
        with httpx2.Client(verify=nobody, trust_env=False, timeout=_ANSWERS_S) as http, http.stream("HEAD", url):
            return True
    except httpx2.HTTPError:
        return False


def _is_excepted(address: str, exceptions: str) -> bool:
    """Whether NO_PROXY has the server: as a host, a domain, a network, or by a star."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    entries = [entry.strip().rpartition("://")[2] for entry in exceptions.split(",")]
    if "*" in entries or proxy_bypass(parts.netloc) or host in entries:
        return True
    try:
        own = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(own in network for network in map(_network, entries) if network is not None)


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(entry.replace("[", "").replace("]", ""), strict=False)
    except ValueError:
        return None


def certificates() -> ssl.SSLContext:
    """Whom to trust over https: SSL_CERT_FILE, else SSL_CERT_DIR, else the system.

    Raises:
        SettingsError: a variable names something that cannot be used.
    """
    variable = certificates_variable()
    folders = os.environ.get("SSL_CERT_DIR", "").split(os.pathsep)
    try:
        if variable == "SSL_CERT_DIR" and not any(map(os.path.isdir, folders)):
            raise NotADirectoryError(0, "it is not a folder")
        return httpx2.create_ssl_context()
    except ssl.SSLError as exc:
        why = f"it holds no certificate that can be read ({exc.reason})"
    except OSError as exc:
        why = exc.strerror or type(exc).__name__
        # Only this one comes with its path: the log of keys that Python's ssl opens.
        variable = "SSLKEYLOGFILE" if exc.filename else variable
    if not variable:
        raise SettingsError(f"The system's certificates cannot be used: {why}.", "Name others with SSL_CERT_FILE.")
    what = "a file that can be written" if variable == "SSLKEYLOGFILE" else "certificates"
    raise SettingsError(
        f"{variable} names {words(os.environ[variable], Secrets())}, which cannot be used: {why}.",
        f"Unset it, or let it name {what}.",
    )


def certificates_variable() -> str:
    """The variable that names the certificates to trust; empty where the system's are used."""
    return next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), "")
