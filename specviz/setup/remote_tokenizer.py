"""The tokenizer of a remote target: its server speaks the model's token ids, and seldom says which those are.

In this order: what the settings name; the model's own, where it is on this machine; the draft model's, which has to
be the same for the pair to work; the model's own, where its name says where to fetch it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from specviz.core.errors import ModelError, UnknownModelError, UnsupportedModelError
from specviz.core.ports import Exchange, OnProgress, Tokenizer
from specviz.core.settings import Settings, split_draft
from specviz.core.vocabulary import Vocabulary
from specviz.engines.chat_templates import Format, format_of, harmony, llama3
from specviz.engines.distilled import is_distilled, read_description
from specviz.engines.tokenizer import ModelTokenizer
from specviz.engines.toy import ToyTokenizer
from specviz.store import hub, sources, store

TOY = "toy"
_HOW = (
    "Name a model that has the same one with TARGET_TOKENIZER or --tokenizer: a known model, a folder, or a Hugging "
    "Face repository; {}."
)
_FORM = "a repository is written org/name"
#: What serves a whole family, and may be fetched without an account.
_EXAMPLES: dict[Format, str] = {
    llama3: "llama-3.2-1b has that of every Llama 3",
    harmony: "openai/gpt-oss-20b has that of gpt-oss",
}


@dataclass(frozen=True, slots=True, eq=False)
class RemoteTokenizer:
    """A tokenizer for a remote target, and how far it is known to be the target's.

    Attributes:
        tokenizer: as the run uses it, with a chat format.
        vocab_size, stop_ids, vocabulary: see `ModelTokenizer`.
        name: where it is from, as it is shown.
        own: it is the target's, since somebody said so or its name did; else it is the draft's, which stands in.
    """

    tokenizer: Tokenizer
    vocab_size: int
    stop_ids: frozenset[int]
    vocabulary: Vocabulary
    name: str
    own: bool


class TemplatedTokenizer:
    """A tokenizer without a chat template of its own, and a format for it."""

    def __init__(self, tokenizer: ModelTokenizer, chat_format: Format) -> None:
        self._tokenizer, self._format = tokenizer, chat_format
        self.encode, self.decode = tokenizer.encode, tokenizer.decode
        self.token_bytes, self.token_name = tokenizer.token_bytes, tokenizer.token_name
        self.bos_id, self.vocab_size, self.stop_ids = tokenizer.bos_id, tokenizer.vocab_size, tokenizer.stop_ids

    def chat(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
        """The text to encode for one user turn, in the format."""
        return self._format(prompt, system, before)


def find(
    settings: Settings,
    on_progress: OnProgress = lambda progress: None,
    cancelled: Callable[[], bool] = lambda: False,
    load: Callable[[Path], ModelTokenizer] = ModelTokenizer,
) -> RemoteTokenizer:
    """Get the tokenizer of a remote target to this machine and read it.

    Args:
        settings: their target is `openai:MODEL`.
        on_progress, cancelled: of a download; no weights are fetched where a tokenizer can be had without.
        load: reads a folder; for a caller who keeps what was read.

    Raises:
        UnknownModelError, UnsupportedModelError, DownloadError: there is none, with how to give one.
    """
    model = settings.target.partition(":")[2]
    name, own = _where(settings, model)
    try:
        name, folder = _speaker(name, on_progress, cancelled)
        if folder is None:
            toy = ToyTokenizer()
            return RemoteTokenizer(toy, toy.vocab_size, toy.stop_ids, toy.vocabulary, TOY, own)
        found = load(folder)
    except ModelError as exc:
        if cancelled():
            raise
        raise type(exc)(f"The tokenizer of {model} cannot be had from {name}: {exc.message}", _how(model)) from exc
    made = None if found.has_template else format_of(model)
    tokenizer = TemplatedTokenizer(found, made) if made else found
    return RemoteTokenizer(tokenizer, found.vocab_size, found.stop_ids, found.vocabulary, name, own)


def _where(settings: Settings, model: str) -> tuple[str, bool]:
    """The name of what holds the tokenizer, and whether that is the target's own."""
    if settings.tokenizer:
        return settings.tokenizer, True
    by_name = _named_by(model)
    if by_name and _is_here(by_name):
        return by_name, True
    _, draft = split_draft(settings.draft)
    kind, _, of_draft = draft.partition(":")
    if kind == "model" and of_draft:
        return of_draft, False
    if by_name:
        return by_name, True
    raise UnknownModelError(f"Which tokens {model} has is not known: its name is no known model's.", _how(model))


def _named_by(model: str) -> str:
    """The model on this machine, or the repository, that a server's name for its model means; empty for none."""
    try:
        source = sources.resolve(model)
    except ModelError:
        return ""
    if source.kind == "folder":
        return source.name if _has_tokenizer(Path(source.location)) else ""
    return "" if source.kind in ("package", "gguf") else source.name


def _has_tokenizer(folder: Path) -> bool:
    return (folder / "tokenizer.json").is_file()


def _is_here(name: str) -> bool:
    source = sources.resolve(name)
    if source.kind == "folder":
        return True
    if source.kind == "hub":
        return hub.cached_tokenizer(source.location) is not None
    return store.local_path(name) is not None


def _speaker(name: str, on_progress: OnProgress, cancelled: Callable[[], bool]) -> tuple[str, Path | None]:
    """The model whose tokenizer a name means, and its folder, fetched; None for the toy, which needs no file.

    A distilled draft has no tokenizer: it speaks the tokens of the model that it was distilled for.
    """
    if name == TOY:
        return TOY, None
    folder = _folder(name, on_progress, cancelled)
    if not is_distilled(folder):
        return name, folder
    target = read_description(folder).target
    if target == TOY:
        return TOY, None
    folder = _folder(target, on_progress, cancelled)
    if is_distilled(folder):
        raise UnsupportedModelError(f"{name} was distilled for {target}, which is a distilled draft itself.")
    return target, folder


def _folder(name: str, on_progress: OnProgress, cancelled: Callable[[], bool]) -> Path:
    source = sources.resolve(name)
    if source.kind == "folder":
        return Path(source.location)
    if source.kind == "hub":
        repo = source.location
        return hub.cached_tokenizer(repo) or hub.fetch_tokenizer(repo, on_progress, cancelled)
    return store.pull(name, on_progress, cancelled)


def _how(model: str) -> str:
    made = format_of(model)
    return _HOW.format(_EXAMPLES.get(made, _FORM) if made else _FORM)
