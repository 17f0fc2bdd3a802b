"""The live server that the environment names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from specviz.core.address import without_secrets
from specviz.core.connection import Connection, Secret
from specviz.core.ports import Target
from specviz.core.settings import Settings
from specviz.setup.builder import Builder
from specviz.targets.completions.probe.probe import probe
from specviz.targets.completions.values import Completions, Findings
from specviz.targets.completions.wire.transport import HttpCompletions
from tests.real.contract import PROMPTS, ModelTokens, Reference, reference

BASE_URL, MODEL, KEY, LOCAL = (f"SPECVIZ_REAL_{name}" for name in ("BASE_URL", "MODEL", "KEY", "LOCAL"))
#: The same weights on this machine, whose greedy text the server's must equal.
DEFAULT_LOCAL = "local:smollm2-135m"


@dataclass(frozen=True, slots=True)
class Named:
    """What the environment says. `local`: the target on this machine with the same weights."""

    base_url: str
    model: str
    key: Secret
    local: str


def named() -> Named | None:
    """None where the environment names no server."""
    base_url, model = os.environ.get(BASE_URL, ""), os.environ.get(MODEL, "")
    if not base_url or not model:
        return None
    return Named(base_url, model, Secret(os.environ.get(KEY, "")), os.environ.get(LOCAL, DEFAULT_LOCAL))


@contextmanager
def connected(base_url: str, model: str, key: Secret | None = None) -> Iterator[HttpCompletions]:
    """The API of a server."""
    link = Connection(Secret(base_url), without_secrets(base_url), key or Secret(""))
    api = HttpCompletions(link, model, on_progress=lambda progress: None, cancelled=lambda: False)
    try:
        yield api
    finally:
        api.close()


def local_target(name: str) -> Target:
    """The target on this machine."""
    return Builder().build(Settings(target=name, draft="none")).target


def references(target: Target) -> dict[str, Reference]:
    """Its greedy text for every prompt."""
    return {name: reference(target, prompt) for name, prompt in PROMPTS.items()}


def find(api: Completions, model: str, tokens: ModelTokens) -> Findings:
    """What the server can do."""
    return probe(api, model, tokens.encode, tokens.decode)
