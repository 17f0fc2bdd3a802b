"""Text to ids and back, by the tokenizer in a model's folder.

A token is a sequence of bytes, which need not be whole characters: an emoji is often two tokens. So everything here
uses the exact bytes of each token, and decodes text only from joined bytes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from specviz.core.errors import UnsupportedModelError
from specviz.core.ports import Exchange
from specviz.core.prompt import without_template
from specviz.core.vocabulary import Vocabulary

#: Ends of a turn or a text in the families of Llama, ChatML, Harmony, Gemma, Phi, Mistral. They count only where the
#: vocabulary has them as special tokens, so that ordinary text cannot end a run.
END_TOKENS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<|return|>",
    "<|call|>",
    "<|end|>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
)
#: In Harmony <|end|> closes one message of several in a turn, as the analysis before the answer.
HARMONY_CHANNEL = "<|channel|>"
#: Put inside the name of a special token where a user typed it, until the text is encoded.
TYPED = "\ufdd0"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_alphabet() -> dict[str, int]:
    """Byte of each character of a byte-level vocabulary: printable Latin-1 for itself, higher ones for the rest."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    moved = (b for b in range(256) if b not in printable)
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(moved)}


_BYTE_OF = _byte_alphabet()


#: A chat format: prompt, system prompt and earlier turns in, the text to encode out.
Format = Callable[[str, str, Sequence[Exchange]], str]


class ModelTokenizer:
    """The tokenizer of a folder, a `specviz.core.ports.Tokenizer`.

    Attributes:
        kind: "byte-level BPE" or "SentencePiece".
        vocab_size: number of real tokens: the highest id plus one. The model may have padding rows after them.
        bos_id: beginning of text; None where there is none.
        stop_ids: ids that end a run.
        pieces: (vocab_size,) the raw vocabulary strings by id; "" where an id has none.
    """

    def __init__(self, folder: Path) -> None:
        """Read the tokenizer, without the network.

        Raises:
            UnsupportedModelError: no tokenizer in the folder, or one that cannot be read.
        """
        transformers = _quiet_transformers()
        try:
            self._hf: Any = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            backend = json.loads(self._hf.backend_tokenizer.to_str())
        except Exception as exc:  # transformers raises many types here, with the same meaning for the user
            raise UnsupportedModelError(
                f"The tokenizer in {folder} cannot be read: {type(exc).__name__}: {exc}.",
                "The folder must hold a tokenizer.json and a tokenizer_config.json.",
            ) from exc
        self._strips_first_space = _contains(backend.get("decoder"), lambda d: d.get("type") in ("Strip", "Metaspace"))
        byte_level = _contains(backend.get("decoder"), lambda d: d.get("type") == "ByteLevel")
        self.kind = "byte-level BPE" if byte_level else "SentencePiece"
        added = self._hf.added_tokens_decoder
        vocabulary: dict[str, int] = self._hf.get_vocab()
        self.vocab_size = max(vocabulary.values()) + 1
        pieces = [""] * self.vocab_size
        for piece, token_id in vocabulary.items():
            pieces[token_id] = piece
        self.pieces = tuple(pieces)
        self._special = frozenset(self._hf.all_special_ids) | {i for i, token in added.items() if token.special}
        self._literal = frozenset(i for i, token in added.items() if not token.special)
        names = sorted((self.pieces[i] for i in self._special if len(self.pieces[i]) > 1), key=len, reverse=True)
        self._special_name = re.compile("|".join(map(re.escape, names)) or r"(?!)")
        self._bytes: list[bytes | None] = [None] * self.vocab_size
        self.bos_id: int | None = self._hf.bos_token_id
        self.stop_ids = self._find_stop_ids(folder)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What has to be equal between a draft and a target."""
        return Vocabulary(kind=self.kind, pieces=self.pieces, bos_id=self.bos_id)

    @property
    def has_template(self) -> bool:
        """Whether the folder has a chat template."""
        return bool(self._hf.chat_template)

    def encode(self, text: str) -> list[int]:
        """Ids of a text, special tokens in it parsed as such; adds none of its own."""
        # verbose: it warns of long texts, for which specviz has an error of its own.
        ids: list[int] = self._hf.encode(text, add_special_tokens=False, verbose=False)
        return ids

    def chat(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
        """The text to encode for one user turn, by the model's chat template; the prompt itself where it has none.

        With an empty `system` the template uses its default. `before`: the conversation up to the prompt. The text
        begins with exactly one BOS where the model expects one.

        Raises:
            UnsupportedModelError: the template fails, as some do on a system prompt.
        """
        if not self.has_template:
            return without_template(prompt, before=before)
        messages = [{"role": "system", "content": system}] if system else []
        for question, answer in before:
            messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        text = self._render([*messages, {"role": "user", "content": prompt}], add_generation_prompt=True)
        bos = self._hf.bos_token
        wants_bos = self.bos_id is not None and self._hf.encode("")[:1] == [self.bos_id]
        return bos + text if wants_bos and not text.startswith(bos) else text

    def chat_ids(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> tuple[str, list[int]]:
        """`chat` and its ids, with the user's words as text: see `ids_in`. Raises: as `chat` does."""
        return self.ids_in(self.chat if self.has_template else None, prompt, system, before)

    def ids_in(
        self, chat: Format | None, prompt: str, system: str = "", before: Sequence[Exchange] = ()
    ) -> tuple[str, list[int]]:
        """The text of a chat format and its ids.

        Control tokens come from the format only. A name of one in the prompts or the conversation is a text like any
        other, or a user could end the turn in the middle of a question. Without a format it is parsed, as in `encode`.
        """
        texts = (prompt, system, *(text for exchange in before for text in exchange))
        if chat is None or not any(map(self._special_name.search, texts)):
            text = (chat or self.chat)(prompt, system, before)
            return text, self.encode(text)
        typed = [self._as_typed(text) for text in texts]
        turns = list(zip(typed[2::2], typed[3::2], strict=True))
        marked = chat(typed[0], typed[1], turns)
        return marked.replace(TYPED, ""), self._encode_marked(marked)

    def _as_typed(self, text: str) -> str:
        return self._special_name.sub(lambda name: name[0][0] + TYPED + name[0][1:], text.replace(TYPED, ""))

    def _encode_marked(self, marked: str) -> list[int]:
        """The ids of a text in which the names of special tokens that a user typed are marked."""
        read = self._hf(marked, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        ids: list[int] = []
        own: list[int] = []  # the ids since the last control token, with the marks
        begins = 0
        for token_id, (start, end) in zip(read["input_ids"], read["offset_mapping"], strict=True):
            if token_id in self._special:
                ids += [*self._plain(marked[begins:start], own), token_id]
                begins, own = end, []
            else:
                own.append(token_id)
        return ids + self._plain(marked[begins:], own)

    def _plain(self, text: str, own: list[int]) -> list[int]:
        """The ids of a text between two control tokens; `own`: those of the text with its marks."""
        if TYPED not in text:
            return own

        def encode(text: str) -> list[int]:
            options = {"add_special_tokens": False, "split_special_tokens": True, "verbose": False}
            ids: list[int] = self._hf.encode(text.replace(TYPED, ""), **options)
            return ids

        ids = encode(text)
        # SentencePiece may put a space in front of a whole text, and none behind a control token.
        return ids if self.kind == "byte-level BPE" or ids[:1] == own[:1] else encode("\n" + text)[len(encode("\n")) :]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of a whole id sequence; special tokens are left out, incomplete characters become U+FFFD."""
        text = b"".join(map(self.token_bytes, token_ids)).decode("utf-8", errors="replace")
        # SentencePiece puts a space in front of a text.
        return text[1:] if self._strips_first_space and text.startswith(" ") else text

    def token_bytes(self, token_id: int) -> bytes:
        """What one token adds to the text, as UTF-8; may be part of a character; empty for a special token.

        Raises:
            IndexError: the id is outside the vocabulary.
        """
        if token_id < 0:
            raise IndexError(f"token id {token_id} is negative")
        known = self._bytes[token_id]
        if known is None:
            known = self._bytes[token_id] = self._find_bytes(token_id)
        return known

    def token_name(self, token_id: int) -> str:
        r"""A printable form of any one token: `" the"`, `"<|im_end|>"`, `"\xf0\x9f"` for part of a character."""
        if not 0 <= token_id < self.vocab_size:
            return f"<{token_id}>"
        if token_id in self._special:
            return self.pieces[token_id]
        return self.token_bytes(token_id).decode("utf-8", errors="backslashreplace")

    def _find_bytes(self, token_id: int) -> bytes:
        piece = self.pieces[token_id]
        if token_id in self._special:
            return b""
        if token_id in self._literal:
            return piece.encode()
        if self.kind == "byte-level BPE":
            # A piece with a character outside the alphabet takes part in no merge: it is plain text.
            return bytes(_BYTE_OF[c] for c in piece) if all(c in _BYTE_OF for c in piece) else piece.encode()
        if byte := _BYTE_PIECE.fullmatch(piece):
            return bytes([int(byte[1], 16)])
        return piece.replace("▁", " ").encode()

    def _find_stop_ids(self, folder: Path) -> frozenset[int]:
        stops: set[int | None] = {self._hf.eos_token_id, self._end_of_template()}
        stops |= _eos_ids(folder / "config.json") | _eos_ids(folder / "generation_config.json")
        ids = {piece: i for i, piece in enumerate(self.pieces) if i in self._special}
        stops |= {ids.get(end) for end in END_TOKENS if not (end == "<|end|>" and HARMONY_CHANNEL in ids)}
        return frozenset(i for i in stops if i is not None and 0 <= i < self.vocab_size)

    def _end_of_template(self) -> int | None:
        """The special token that the chat template puts directly after an answer."""
        if not self.has_template:
            return None
        answer = "specviz-answer"
        turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": answer}]
        try:
            end = self._render(turns, add_generation_prompt=False).rpartition(answer)[2].strip()
        except UnsupportedModelError:
            return None
        first = self.encode(end)[:1]
        harmony = HARMONY_CHANNEL in self.pieces
        return first[0] if first and first[0] in self._special and not harmony else None

    def _render(self, messages: list[dict[str, str]], add_generation_prompt: bool) -> str:
        try:
            text = self._hf.apply_chat_template(messages, tokenize=False, add_generation_prompt=add_generation_prompt)
        except Exception as exc:  # a template is a program, which can raise anything
            raise UnsupportedModelError(
                f"The model's chat template failed: {exc}.",
                "Leave the system prompt out, or send the prompt without the template.",
            ) from exc
        return str(text)


def _quiet_transformers() -> Any:
    """Import transformers without its advice to install PyTorch, which tokenizers do not need."""
    switch = "TRANSFORMERS_NO_ADVISORY_WARNINGS"
    before = os.environ.get(switch)
    os.environ[switch] = "1"
    try:
        import transformers
    finally:
        if before is None:
            del os.environ[switch]
        else:
            os.environ[switch] = before
    return transformers


def _eos_ids(path: Path) -> set[int | None]:
    try:
        eos = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id")
    except (OSError, ValueError):
        return set()
    return {i for i in (eos if isinstance(eos, list) else [eos]) if isinstance(i, int)}


def _contains(decoder: Any, wanted: Any) -> bool:
    """Whether a decoder of tokenizer.json, or one of a sequence of decoders, satisfies `wanted`."""
    if not isinstance(decoder, dict):
        return False
    return bool(wanted(decoder)) or any(_contains(d, wanted) for d in decoder.get("decoders", ()))
