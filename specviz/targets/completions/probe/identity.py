"""Which engine a server is, by its own statement.

It decides how requests are written. What the server can do is judged by its answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specviz.core.errors import AnswerError, RefusedError, RemoteError, UnreachableError
from specviz.targets.completions.reading.model_names import plain_name, same_name
from specviz.targets.completions.values import Completions, Engine

_OWNERS: dict[str, Engine] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llamacpp",
    "me": "llama-cpp-python",
    "cerebras": "cerebras",
    "fireworks": "fireworks",
    "together": "together",
}
NAMES: dict[Engine, str] = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "llamacpp": "llama-server",
    "llama-cpp-python": "llama-cpp-python",
    "mlx": "mlx_lm.server",
    "cerebras": "Cerebras",
    "fireworks": "Fireworks",
    "together": "Together",
    "": "a server that does not say what it is",
}
#: Per engine: the paths that have its version, and the field's name.
_VERSIONS: dict[Engine, tuple[tuple[str, str], ...]] = {
    "vllm": (("/version", "version"),),
    "sglang": (("/server_info", "version"), ("/get_server_info", "version")),
    "llamacpp": (("/props", "build_info"),),
}
_CONTEXT_NAMES = ("max_model_len", "context_length", "max_context_length")
_LONGEST = 60
#: Statuses that are about the key or the load, and not about what the server can do.
_NO_VERDICT = (401, 402, 403, 407, 429)


@dataclass(frozen=True, slots=True)
class Identity:
    """What the server states about itself.

    Attributes:
        max_context: in tokens. calls: how many were needed.
        others: the models that it lists, where the one that is asked for is not among them.
    """

    engine: Engine = ""
    version: str = ""
    max_context: int | None = None
    calls: int = 0
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{NAMES[self.engine]} {self.version}".rstrip()


def identify(api: Completions, model: str) -> Identity:
    """Get the list of models, then the version where the engine has one.

    A server that answers neither is an unknown one, which is no error.

    Raises:
        RefusedError: the key is refused. UnreachableError: nothing answers, or the server is busy.
    """
    cards = _cards(_fetched(api, "models"))
    # The first entry where the model is not listed under its name.
    card = next((c for c in cards if c.get("id") == model), cards[0] if cards else {})
    names = tuple(name for c in cards if (name := plain_name(c.get("id"))))
    others = () if any(same_name(name, model) for name in names) else names
    engine = _OWNERS.get(str(card.get("owned_by", "")).strip().lower(), "")
    calls, version, context = 1, "", _context(card)
    for path, name in _VERSIONS.get(engine, ()):
        found = _fetched(api, path)
        calls += 1
        if isinstance(found, Mapping):
            version = _plain(found.get(name))
            context = _slot_context(found) or context
        if version:
            break
    return Identity(engine, version, context, calls, others)


def is_verdict(exc: RemoteError) -> bool:
    """Whether a call failed because the server cannot do what was requested, and for no other reason.

    Some servers answer 500 to what they cannot do.
    """
    if isinstance(exc, RefusedError):
        return exc.status not in _NO_VERDICT
    return isinstance(exc, AnswerError) or (isinstance(exc, UnreachableError) and exc.status in (500, 501))


def _fetched(api: Completions, path: str) -> Any:
    try:
        return api.get(path).body
    except RemoteError as exc:
        if is_verdict(exc):
            return None
        raise


def _cards(body: Any) -> list[Mapping[str, Any]]:
    """The entries of the list of models."""
    listed = body.get("data") if isinstance(body, Mapping) else body
    return [c for c in listed if isinstance(c, Mapping)] if isinstance(listed, list) else []


def _context(card: Mapping[str, Any]) -> int | None:
    meta = card.get("meta")
    given = [card.get(name) for name in _CONTEXT_NAMES]
    given += [meta.get("n_ctx")] if isinstance(meta, Mapping) else []
    return next((n for n in given if _is_length(n)), None)


def _slot_context(props: Mapping[str, Any]) -> int | None:
    """llama-server divides its context among the requests that it can answer at once."""
    inner = props.get("default_generation_settings")
    length = inner.get("n_ctx") if isinstance(inner, Mapping) else None
    return length if _is_length(length) else None


def _is_length(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and 0 < given < 2**40


def _plain(given: Any) -> str:
    """A version, fit to be shown."""
    return "".join(c for c in given if c.isprintable())[:_LONGEST] if isinstance(given, str) else ""
