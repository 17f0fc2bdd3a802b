"""Completions targets for the builder: connection, tokenizer, findings about the server, and the target.

The HTTP library is imported only when a target is created.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.core.connection import Connection, Secret, connection
from specviz.core.errors import PairingError, SettingsError, StoppedError, UnknownModelError
from specviz.core.names import parse_target
from specviz.core.ports import Capabilities, Target
from specviz.core.settings import Settings
from specviz.core.wait import Progress, Wait
from specviz.setup import remote_tokenizer
from specviz.setup.remote_tokenizer import AnyTokenizer, RemoteTokenizer, read_tokenizer

if TYPE_CHECKING:
    from specviz.targets.completions.probe.probe import ProbeCache
    from specviz.targets.completions.values import Findings
    from specviz.targets.completions.wire.transport import HttpCompletions

#: Context length in tokens to assume when a server does not report it; every model in use has at least this.
CONTEXT_UNKNOWN = 4096


def check(settings: Settings, variables: Mapping[str, str]) -> None:
    """Refuse a completions target without a model or an address, before any work.

    Raises:
        UnknownModelError: no model is named.
        SettingsError: no address is given, or it is not a URL.
    """
    if not parse_target(settings.target).model:
        raise UnknownModelError(
            "A remote target needs the name of a model, as its server lists it.",
            "Write openai:MODEL, or set TARGET_MODEL.",
        )
    connection(settings, variables)


def warning(settings: Settings, variables: Mapping[str, str]) -> str:
    """What the person whose key the environment has should know before it is sent; empty for nothing."""
    if parse_target(settings.target).place == "completions":
        with suppress(SettingsError):  # no address, which `check` refuses
            return connection(settings, variables).warning
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class Remote:
    """A completions target, its tokenizer and the findings about its server.

    Attributes:
        shown: the address without secrets.
        close: closes the connection and drops the key.
    """

    target: Target
    tokens: RemoteTokenizer
    findings: Findings
    shown: str
    close: Callable[[], None]


class RemoteBuilder:
    """Builds completions targets. Caches the last tokenizer and the findings about servers, but no connection."""

    def __init__(self) -> None:
        self._read: dict[Path, AnyTokenizer] = {}
        self._probes: ProbeCache | None = None

    def build(
        self,
        settings: Settings,
        variables: Mapping[str, str],
        key: Secret | None,
        wait: Wait,
    ) -> Remote:
        """Get the tokenizer, probe the server, choose the way.

        Raises:
            SettingsError, ModelError: no address, no tokenizer.
            RemoteError: the server cannot be reached, refuses, or cannot do what the settings ask for.
            PairingError: the server's tokens differ from the tokenizer's, and the settings name a way that needs ids.
        """
        from specviz.targets.completions.target import RemoteTarget

        link = connection(settings, variables, key)
        tokens = remote_tokenizer.find(settings, wait, self._load)
        api = _connect(link, settings, wait)
        try:
            findings = self._probe(api, link, settings, tokens, wait)
            _check_tokens(settings, tokens, findings)
            limits = Capabilities(
                vocab_size=tokens.vocab_size,
                max_context=findings.max_context or CONTEXT_UNKNOWN,
                stop_ids=tokens.stop_ids,
                place="completions",
            )
            target = RemoteTarget(
                settings.target,
                api,
                findings,
                tokens.tokenizer,
                limits,
                settings.verification,
                settings.sampling,
                settings.acceptance_rule,
                forget=self._forget,
            )
        except BaseException:
            api.close()
            raise
        return Remote(target, tokens, findings, link.shown, api.close)

    def probe(
        self,
        settings: Settings,
        variables: Mapping[str, str],
        key: Secret | None,
        wait: Wait,
    ) -> tuple[Findings, RemoteTokenizer, str]:
        """Probe the server again. Returns the findings, the tokenizer, and the address without secrets.

        Raises: see `build`.
        """
        link = connection(settings, variables, key)
        tokens = remote_tokenizer.find(settings, wait, self._load)
        api = _connect(link, settings, wait)
        try:
            self._probes = None
            return self._probe(api, link, settings, tokens, wait), tokens, link.shown
        finally:
            api.close()

    def _forget(self) -> None:
        """Discard cached findings after one turned out to be wrong: servers are probed again the next time."""
        self._probes = None

    def _load(self, path: Path) -> AnyTokenizer:
        if path not in self._read:
            self._read = {path: read_tokenizer(path)}
        return self._read[path]

    def _probe(
        self,
        api: HttpCompletions,
        link: Connection,
        settings: Settings,
        tokens: RemoteTokenizer,
        wait: Wait,
    ) -> Findings:
        from specviz.targets.completions.probe.probe import ProbeCache

        if wait.cancelled():
            raise StoppedError("Stopped before the server was called.")
        wait.on_progress(Progress(f"Testing what {link.shown} can do"))
        if self._probes is None:
            self._probes = ProbeCache()
        found = self._probes.findings(api, link.shown, parse_target(settings.target).model, tokens.tokenizer)
        wait.on_progress(Progress(""))
        return _with_context(found)


def _connect(link: Connection, settings: Settings, wait: Wait) -> HttpCompletions:
    from specviz.targets.completions.wire.transport import HttpCompletions

    return HttpCompletions(
        link, parse_target(settings.target).model, on_progress=wait.on_progress, cancelled=wait.cancelled
    )


def _with_context(findings: Findings) -> Findings:
    if findings.max_context:
        return findings
    note = f"The server does not report its context length: {CONTEXT_UNKNOWN:,} tokens are assumed."
    return replace(findings, notes=(*findings.notes, note))


def _check_tokens(settings: Settings, tokens: RemoteTokenizer, findings: Findings) -> None:
    """If the server's tokens differ from the tokenizer's, only texts can be compared, not ids."""
    if findings.same_tokens or settings.verification not in ("scoring", "prefixes"):
        return
    whose = "the tokenizer" if tokens.own else "the draft's tokenizer"
    raise PairingError(
        f"The server's tokens are not those of {whose} ({tokens.name}), and the way {settings.verification} compares "
        "token by token.",
        "Use a draft of the target's own family, name the target's tokenizer with TARGET_TOKENIZER or --tokenizer, "
        "or verify by generating, which compares texts.",
    )
