"""Damage to a sound GGUF file: what transfers, editors, converters and strangers do to one."""

from __future__ import annotations

import copy
import math
import random
import struct
from collections.abc import Callable
from typing import Any

from specviz.engines.gguf.forms import FORMS, NUMBERS, STRING
from tests.engines.raw_gguf import Entry, RawGguf, Tensor

ARCHITECTURES = (
    "llama qwen2 qwen3 qwen2moe qwen3moe gemma gemma2 gemma3 phi2 phi3 falcon gpt2 gptneox mpt starcoder2 stablelm "
    "bloom baichuan command-r cohere2 olmo mamba bert nomic-bert t5 t5encoder deepseek2 chatglm glm4 bitnet jais "
    "granite dots1 ernie4_5 smollm3 rwkv6 grok dbrx arctic openelm gpt-oss llama4 deci minicpm orion refact xverse "
    "plamo codeshell internlm2 no-such-model"
).split()
#: Keys that the sound file does not have, with the type that they have in files that do.
OPTIONAL_KEYS: dict[str, int] = {
    "general.alignment": 4,
    "general.quantization_version": 4,
    "split.no": 2,
    "split.count": 2,
    "split.tensors.count": 5,
    "llama.expert_count": 4,
    "llama.expert_used_count": 4,
    "llama.attention.key_length": 4,
    "llama.attention.value_length": 4,
    "llama.attention.sliding_window": 4,
    "llama.attention.causal": 7,
    "llama.rope.scaling.type": STRING,
    "llama.rope.scaling.factor": 6,
    "llama.rope.scaling.original_context_length": 4,
    "llama.rope.scale_linear": 6,
    "llama.rope.freq_base_swa": 6,
    "llama.attention.max_alibi_bias": 6,
    "llama.attention.clamp_kqv": 6,
    "llama.logit_scale": 6,
    "llama.tensor_data_layout": STRING,
    "llama.use_parallel_residual": 7,
    "llama.pooling_type": 4,
    "tokenizer.ggml.unknown_token_id": 4,
    "tokenizer.ggml.separator_token_id": 4,
    "tokenizer.ggml.eot_token_id": 4,
    "tokenizer.ggml.add_eos_token": 7,
    "tokenizer.ggml.add_space_prefix": 7,
    "tokenizer.ggml.token_type_count": 4,
    "tokenizer.ggml.remove_extra_whitespaces": 7,
}
_INTEGERS = (0, 1, 2, 3, 7, 8, 255, 256, 300, 301, 1 << 16, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40)
_INTEGERS_64 = (*_INTEGERS, 1 << 61, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_FLOATS = (0.0, -0.0, -1.0, 1e-30, 1e30, 1.0, 0.5, math.nan, math.inf, -math.inf)
_TEXTS = (
    "",
    " ",
    "a",
    "llama",
    "gpt2",
    "bert",
    "none",
    "no_vocab",
    "default",
    "x" * 5000,
    "\0",
    "a\0b",
    "😀",
    "%s%n%d",
)
_TEXTS_ODD = (*_TEXTS, "ã\u2581", "<0x00>", "\udcff\udcfe", "t5", "rwkv", "linear", "yarn", "longrope", "plamo2")


class Mutator:
    """Draws one kind of damage after another. A seed gives the same damage each time."""

    def __init__(self, sound: RawGguf, seed: str) -> None:
        self.sound, self.rng = sound, random.Random(seed)
        self.kinds: list[Callable[[RawGguf], str | tuple[str, bytes]]] = [
            self.cut,
            self.flip,
            self.number,
            self.number,
            self.number_by_a_little,
            self.scalar,
            self.scalar,
            self.scalar,
            self.other_type,
            self.other_type,
            self.texts,
            self.swap_texts,
            self.swap_tensors,
            self.drop_tensor,
            self.repeat_tensor,
            self.rename_tensor,
            self.reshape_tensor,
            self.form_of_tensor,
            self.form_of_tensor,
            self.move_tensor,
            self.list_items,
            self.list_items,
            self.drop_entry,
            self.repeat_entry,
            self.add_entry,
            self.add_entry,
            self.architecture,
        ]

    def draw(self) -> tuple[str, bytes]:
        """What was done, in words, and the damaged file."""
        file = copy.deepcopy(self.sound)
        done = self.rng.choice(self.kinds)(file)
        return done if isinstance(done, tuple) else (done, file.encoded())

    def draw_several(self, count: int) -> tuple[str, bytes]:
        """As `draw`, with several kinds of damage to the same file; the last one may be to its bytes."""
        file, done = copy.deepcopy(self.sound), list[str]()
        while len(done) < count:
            try:
                found = self.rng.choice(self.kinds)(file)
            except (IndexError, StopIteration, ValueError):  # what it damages is gone
                continue
            if isinstance(found, tuple):
                return "; ".join([*done, found[0]]), found[1]
            done.append(found)
        return "; ".join(done), file.encoded()

    # Damage to bytes.

    def _header_bytes(self, file: RawGguf) -> tuple[bytes, int]:
        whole = file.encoded()
        return whole, file.places[-1].at + file.places[-1].size

    def cut(self, file: RawGguf) -> tuple[str, bytes]:
        whole, end = self._header_bytes(file)
        keep = self.rng.randrange(end if self.rng.random() < 0.5 else len(whole))
        return f"cut to {keep} bytes", whole[:keep]

    def flip(self, file: RawGguf) -> tuple[str, bytes]:
        whole, end = self._header_bytes(file)
        damaged, done = bytearray(whole), []
        for _ in range(self.rng.choice((1, 1, 1, 2, 8))):
            at = self.rng.randrange(4, end)
            damaged[at] ^= 1 << self.rng.randrange(8) if self.rng.random() < 0.5 else self.rng.randrange(1, 256)
            done.append(at)
        return f"bytes changed at {done}", bytes(damaged)

    def number(self, file: RawGguf) -> tuple[str, bytes]:
        return self._patch(file, lambda old, size: self.rng.choice(_INTEGERS_64))

    def number_by_a_little(self, file: RawGguf) -> tuple[str, bytes]:
        return self._patch(file, lambda old, size: old + self.rng.choice((-64, -32, -8, -2, -1, 1, 2, 8, 32, 64)))

    def _patch(self, file: RawGguf, new: Callable[[int, int], int]) -> tuple[str, bytes]:
        damaged = bytearray(file.encoded())
        # Texts in lists are most of all places, so that a kind of place is drawn first.
        kind = self.rng.choice(sorted({place.what for place in file.places}))
        place = self.rng.choice([place for place in file.places if place.what == kind])
        form = {4: "<I", 8: "<Q"}[place.size]
        old = struct.unpack_from(form, damaged, place.at)[0]
        value = new(old, place.size) % (1 << 8 * place.size)
        struct.pack_into(form, damaged, place.at, value)
        return f"{place.what} at {place.at}: {value} in place of {old}", bytes(damaged)

    # Damage to values.

    def _odd(self, kind: int, old: Any = None) -> Any:
        if kind == STRING:
            return self.rng.choice(_TEXTS_ODD)
        form = NUMBERS[kind]
        if form.kind == "b":
            return self.rng.random() < 0.5
        if form.kind == "f":
            return self.rng.choice(_FLOATS)
        near = [old + 1, old - 1, old * 2, old // 2] if isinstance(old, int) else []
        bits = 8 * form.itemsize
        value = self.rng.choice([*_INTEGERS, *near, *near]) % (1 << bits)
        return value - (1 << bits) if form.kind == "i" and value >> (bits - 1) else value

    def _single(self, file: RawGguf) -> Entry:
        return self.rng.choice([entry for entry in file.entries if entry.items is None])

    def scalar(self, file: RawGguf) -> str:
        entry = self._single(file)
        old, entry.value = entry.value, self._odd(entry.kind, entry.value)
        return f"{entry.key}: {str(entry.value)[:40]!r} in place of {str(old)[:40]!r}"

    def other_type(self, file: RawGguf) -> str:
        entry = self.rng.choice(file.entries)
        kind = self.rng.choice([*NUMBERS, STRING])
        if self.rng.random() < 0.4:
            count = self.rng.choice((0, 1, 2, 300))
            old = entry.value if isinstance(entry.value, list) else [entry.value] * count
            entry.items, entry.value = kind, [self._as(kind, value) for value in old]
        else:
            old = entry.value[0] if isinstance(entry.value, list) else entry.value
            entry.items, entry.kind, entry.value = None, kind, self._as(kind, old)
        return f"{entry.key} as type {kind}, list: {entry.items is not None}"

    def _as(self, kind: int, value: Any) -> Any:
        """The value itself where the type can hold it."""
        if kind == STRING:
            return str(value)
        if isinstance(value, str):
            return self._odd(kind)
        return bool(value) if NUMBERS[kind].kind == "b" else value if math.isfinite(value) else 0

    def texts(self, file: RawGguf) -> str:
        lists = [entry for entry in file.entries if entry.items == STRING and entry.value]
        entry = self.rng.choice(lists)
        for _ in range(self.rng.choice((1, 1, 3, 50))):
            at = self.rng.randrange(len(entry.value))
            entry.value[at] = self.rng.choice((self._odd(STRING), self.rng.choice(entry.value)))
        return f"texts in {entry.key}, the last at {at}: {entry.value[at][:20]!r}"

    def swap_texts(self, file: RawGguf) -> str:
        texts = [entry for entry in file.entries if entry.kind == STRING and entry.items is None]
        one, other = self.rng.sample(texts, 2)
        one.value, other.value = other.value, one.value
        return f"{one.key} and {other.key} exchanged"

    def list_items(self, file: RawGguf) -> str:
        entry = self.rng.choice([entry for entry in file.entries if entry.items is not None])
        items = entry.items
        assert items is not None
        count = len(entry.value)
        match self.rng.randrange(7):
            case 0:
                entry.value, done = [], "emptied"
            case 1:
                entry.value, done = entry.value[: self.rng.randrange(count)], "cut"
            case 2:
                del entry.value[self.rng.randrange(count)]
                done = "without one"
            case 3:
                entry.value, done = entry.value * self.rng.choice((2, 5)), "repeated"
            case 4:
                self.rng.shuffle(entry.value)
                done = "in another order"
            case 5:
                entry.value, done = [self._odd(items) for _ in entry.value], "odd values"
            case _:
                entry.value[self.rng.randrange(count)] = self._odd(items)
                done = "one odd value"
        return f"{entry.key}: {done}"

    def drop_entry(self, file: RawGguf) -> str:
        entry = self.rng.choice(file.entries)
        file.entries.remove(entry)
        return f"without {entry.key}"

    def repeat_entry(self, file: RawGguf) -> str:
        entry = copy.deepcopy(self.rng.choice(file.entries))
        file.entries.append(entry)
        return f"{entry.key} twice"

    def add_entry(self, file: RawGguf) -> str:
        key, kind = self.rng.choice(list(OPTIONAL_KEYS.items()))
        key = key.replace("llama", str(self.sound.entry("general.architecture").value))
        file.entries.append(Entry(key, kind, self._odd(kind)))
        return f"{key} added: {str(file.entries[-1].value)[:40]!r}"

    def architecture(self, file: RawGguf) -> str:
        name, entry = self.rng.choice(ARCHITECTURES), file.entry("general.architecture")
        old, entry.value = entry.value, name
        if whole := self.rng.random() < 0.7:
            for entry in file.entries:
                if entry.key.startswith(f"{old}."):
                    entry.key = f"{name}.{entry.key.removeprefix(f'{old}.')}"
        return f"architecture {name}, keys too: {whole}"

    # Damage to tensors.

    def swap_tensors(self, file: RawGguf) -> str:
        one, other = self.rng.sample(file.tensors, 2)
        one.name, other.name = other.name, one.name
        return f"{one.name} and {other.name} exchanged"

    def drop_tensor(self, file: RawGguf) -> str:
        tensor = self.rng.choice(file.tensors)
        file.tensors.remove(tensor)
        return f"without {tensor.name}"

    def repeat_tensor(self, file: RawGguf) -> str:
        tensor = copy.deepcopy(self.rng.choice(file.tensors))
        if new := self.rng.random() < 0.5:
            tensor.name = tensor.name.replace("blk.0", "blk.2") if "blk.0" in tensor.name else "output.weight"
        file.tensors.append(tensor)
        return f"{tensor.name} a second time, new name: {new}"

    def rename_tensor(self, file: RawGguf) -> str:
        tensor = self.rng.choice(file.tensors)
        old = tensor.name
        tensor.name = self.rng.choice(
            (*_TEXTS_ODD, old[:-1], old.replace("weight", "bias"), old.replace("blk.0", "blk.1"), "rope_freqs.weight")
        )
        return f"{tensor.name[:40]!r} in place of {old}"

    def reshape_tensor(self, file: RawGguf) -> str:
        tensor = self.rng.choice(file.tensors)
        old, shape = tensor.shape, list(tensor.shape)
        match self.rng.randrange(5):
            case 0:
                shape.reverse()
            case 1:
                shape = [math.prod(shape)]
            case 2:
                shape += [1] * (4 - len(shape))
            case 3:
                shape = [shape[0] // 2, *shape[1:], 2]
            case _:
                at = self.rng.randrange(len(shape))
                shape[at] = self.rng.choice((shape[at] // 2, shape[at] * 2, 32, 1))
        self._fill(tensor, tuple(shape), tensor.kind)
        return f"{tensor.name} with the shape {tensor.shape} in place of {old}"

    def form_of_tensor(self, file: RawGguf) -> str:
        """Another form with as many bytes as it needs, so that only a library can find it wrong."""
        tensor = self.rng.choice(file.tensors)
        kind = self.rng.choice(list(FORMS))
        shape = tensor.shape
        if self.rng.random() < 0.5:
            shape = (shape[0] + -shape[0] % FORMS[kind].values, *shape[1:])
        self._fill(tensor, shape, kind)
        return f"{tensor.name} in {FORMS[kind].name}, shape {shape}"

    def _fill(self, tensor: Tensor, shape: tuple[int, ...], kind: int) -> None:
        form = FORMS[kind]
        count = max(1, math.prod(shape))
        wanted = count // max(1, shape[0]) * (form.row_bytes + -(-shape[0] // form.values) * form.block_bytes)
        data = tensor.data * (wanted // len(tensor.data) + 1) if self.rng.random() < 0.5 else self.rng.randbytes(wanted)
        tensor.shape, tensor.kind, tensor.data = shape, kind, data[:wanted]

    def move_tensor(self, file: RawGguf) -> str:
        tensor = self.rng.choice(file.tensors)
        tensor.offset = self.rng.choice((0, 32, 64, 1 << 16, 1 << 20, 1 << 40, 8, (1 << 64) - 32))
        return f"{tensor.name} at {tensor.offset}"
