"""Text to ids and back, by the tokenizer inside a GGUF file.

llama.cpp knows every kind of tokenizer that GGUF files have, so its own functions are used and nothing is rebuilt.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import cached_property

from specviz.core.errors import UnsupportedModelError
from specviz.core.ports import Exchange
from specviz.core.prompt import without_template
from specviz.core.vocabulary import Vocabulary
from specviz.engines.jinja_template import render
from specviz.engines.llama.handle import Handle
from specviz.engines.llama.library import library
from specviz.engines.tokenizer import END_TOKENS, HARMONY_CHANNEL, TYPED, Format

_KINDS = {1: "SentencePiece", 2: "byte-level BPE", 3: "WordPiece", 4: "Unigram"}
_UNKNOWN, _CONTROL = 1, 8  # attributes of tokens in llama.h


class GgufTokenizer:
    """The tokenizer of a loaded model, a `specviz.core.ports.Tokenizer`.

    Args:
        handle: of the loaded model.

    Attributes:
        kind: how pieces encode bytes, such as "byte-level BPE".
        vocab_size: number of tokens, those that the file calls unused included.
        bos_id: beginning of text; None where there is none.
        stop_ids: ids that end a run.
        pieces: (vocab_size,) the raw vocabulary strings by id.

    Raises:
        UnsupportedModelError: the file has no tokenizer.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle, self._model, self._api = handle, handle.pointer, library()
        api, model = self._api, self._model
        kind = api.llama_vocab_type(api.llama_model_get_vocab(model))
        self.vocab_size: int = api.llama_n_vocab(model)
        if kind == 0 or not self.vocab_size:
            raise UnsupportedModelError("The GGUF file has no tokenizer.", "Use a complete file.")
        self.kind = _KINDS.get(kind, f"tokenizer of type {kind}")
        self.pieces = tuple(
            (api.llama_token_get_text(model, i) or b"").decode("utf-8", errors="surrogateescape")
            for i in range(self.vocab_size)
        )
        attributes = [api.llama_token_get_attr(model, i) for i in range(self.vocab_size)]
        self._special = frozenset(i for i, bits in enumerate(attributes) if bits & (_CONTROL | _UNKNOWN))
        self._id_of = {self.pieces[i]: i for i in self._special}
        names = sorted((name for name in self._id_of if len(name) > 1), key=len, reverse=True)
        self._special_name = re.compile("|".join(map(re.escape, names)) or r"(?!)")
        bos, eos = api.llama_token_bos(model), api.llama_token_eos(model)
        self.bos_id: int | None = bos if 0 <= bos < self.vocab_size else None
        self._eos_id: int | None = eos if 0 <= eos < self.vocab_size else None
        self._adds_bos = self.bos_id is not None and bool(api.llama_add_bos_token(model))
        self._template = handle.metadata("tokenizer.chat_template")
        self._bytes: list[bytes | None] = [None] * self.vocab_size
        self.stop_ids = self._find_stop_ids()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What has to be equal between a draft and a target."""
        return Vocabulary(kind=self.kind, pieces=self.pieces, bos_id=self.bos_id)

    @property
    def has_template(self) -> bool:
        """Whether the file has a chat template."""
        return bool(self._template)

    def encode(self, text: str) -> list[int]:
        """Ids of a text, special tokens in it parsed as such; adds none of its own."""
        return self._encode(text, parse_special=True)

    def chat(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
        """The text to encode for one user turn, by the model's chat template; the prompt itself where it has none.

        With an empty `system` the template uses its default. `before`: the conversation up to the prompt. The text
        begins with exactly one BOS where the model expects one.

        Raises:
            UnsupportedModelError: the template fails, as some do on a system prompt.
        """
        if not self._template:
            return without_template(prompt, before=before)
        messages = [{"role": "system", "content": system}] if system else []
        for question, answer in before:
            messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        text = self._render([*messages, {"role": "user", "content": prompt}], add_generation_prompt=True)
        bos = self._name(self.bos_id)
        return bos + text if self._adds_bos and not text.startswith(bos) else text

    def chat_ids(self, prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> tuple[str, list[int]]:
        """`chat` and its ids, with the user's words as text: see `ids_in`. Raises: as `chat` does."""
        return self.ids_in(self.chat if self._template else None, prompt, system, before)

    def ids_in(
        self, chat: Format | None, prompt: str, system: str = "", before: Sequence[Exchange] = ()
    ) -> tuple[str, list[int]]:
        """The text of a chat format and its ids.

        Control tokens come from the format only: a name of one in the prompts or the conversation is a text like any
        other. Without a format it is parsed, as in `encode`.
        """
        texts = (prompt, system, *(text for exchange in before for text in exchange))
        if chat is None or not any(map(self._special_name.search, texts)):
            text = (chat or self.chat)(prompt, system, before)
            return text, self.encode(text)
        typed = [self._as_typed(text) for text in texts]
        turns = list(zip(typed[2::2], typed[3::2], strict=True))
        marked = chat(typed[0], typed[1], turns)
        ids: list[int] = []
        at = 0
        for name in self._special_name.finditer(marked):
            ids += self._encode(marked[at : name.start()].replace(TYPED, ""), parse_special=False)
            ids.append(self._id_of[name[0]])
            at = name.end()
        ids += self._encode(marked[at:].replace(TYPED, ""), parse_special=False)
        return marked.replace(TYPED, ""), ids

    def _as_typed(self, text: str) -> str:
        return self._special_name.sub(lambda name: name[0][0] + TYPED + name[0][1:], text.replace(TYPED, ""))

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of a whole id sequence; special tokens are left out, incomplete characters become U+FFFD."""
        text = b"".join(map(self.token_bytes, token_ids)).decode("utf-8", errors="replace")
        # SentencePiece puts a space in front of a text.
        return text[1:] if self.kind == "SentencePiece" and text.startswith(" ") else text

    def token_bytes(self, token_id: int) -> bytes:
        """What one token adds to the text, as UTF-8; may be part of a character; empty for a special token.

        Raises:
            IndexError: the id is outside the vocabulary.
        """
        if token_id < 0:
            raise IndexError(f"token id {token_id} is negative")
        known = self._bytes[token_id]
        if known is None:
            known = self._bytes[token_id] = b"" if token_id in self._special else self._piece(token_id)
        return known

    def token_name(self, token_id: int) -> str:
        r"""A printable form of any one token: `" the"`, `"<|im_end|>"`, `"\xf0\x9f"` for part of a character."""
        if not 0 <= token_id < self.vocab_size:
            return f"<{token_id}>"
        if token_id in self._special:
            return self.pieces[token_id]
        return self.token_bytes(token_id).decode("utf-8", errors="backslashreplace")

    def _encode(self, text: str, parse_special: bool) -> list[int]:
        data = text.encode()
        room = len(data) + 8
        for _ in range(2):
            ids = (ctypes.c_int32 * room)()
            count = self._api.llama_tokenize(self._model, data, len(data), ids, room, False, parse_special)
            if count >= 0:
                return list(ids[:count])
            room = -count
        raise RuntimeError(f"the tokenizer wants room for {room} ids of {len(data)} bytes")

    def _piece(self, token_id: int) -> bytes:
        room = 256
        for _ in range(2):
            buffer = ctypes.create_string_buffer(room)
            count = self._api.llama_token_to_piece(self._model, token_id, buffer, room, 0, False)
            if count >= 0:
                return buffer.raw[:count]
            room = -count
        raise RuntimeError(f"token {token_id} wants room for {room} bytes")

    def _name(self, token_id: int | None) -> str:
        return "" if token_id is None else self.pieces[token_id]

    def _render(self, messages: list[dict[str, str]], add_generation_prompt: bool) -> str:
        return render(
            self._template,
            messages,
            add_generation_prompt=add_generation_prompt,
            bos=self._name(self.bos_id),
            eos=self._name(self._eos_id),
        )

    def _find_stop_ids(self) -> frozenset[int]:
        harmony = HARMONY_CHANNEL in self._id_of
        ends = {self._id_of.get(end) for end in END_TOKENS if not (end == "<|end|>" and harmony)}
        stops = {self._eos_id, *ends, None if harmony else self._end_of_template()}
        return frozenset(i for i in stops if i is not None)

    def _end_of_template(self) -> int | None:
        """The special token that the chat template puts directly after an answer."""
        if not self._template:
            return None
        answer = "specviz-answer"
        turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": answer}]
        try:
            end = self._render(turns, add_generation_prompt=False).rpartition(answer)[2].strip()
        except UnsupportedModelError:
            return None
        first = self.encode(end)[:1]
        return first[0] if first and first[0] in self._special else None
