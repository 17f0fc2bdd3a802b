"""A recording: what a server answered, and what is needed to ask it the same again without the model's files."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from specviz.core import ports
from specviz.targets.completions.values import Findings
from tests.real.contract import ModelTokens, Reference
from tests.real.wire import AGAIN, Exchange

FOLDER = Path(__file__).parents[1] / "targets" / "completions" / "recorded"


class NotedTokenizer:
    """A model's tokenizer that keeps what it was asked."""

    def __init__(self, tokenizer: ModelTokens) -> None:
        self._tokenizer = tokenizer
        self.vocab_size, self.stop_ids, self.bos_id = tokenizer.vocab_size, tokenizer.stop_ids, tokenizer.bos_id
        self.pieces: dict[int, tuple[str, bytes]] = {}
        self.encoded: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """As the model's own."""
        self.encoded[text] = self._tokenizer.encode(text)
        return self.encoded[text]

    def chat(self, prompt: str, system: str = "", before: Sequence[ports.Exchange] = ()) -> str:
        """As the model's own; not kept."""
        return self._tokenizer.chat(prompt, system, before)

    def chat_ids(self, prompt: str, system: str = "", before: Sequence[ports.Exchange] = ()) -> tuple[str, list[int]]:
        """As the model's own; not kept."""
        return self._tokenizer.chat_ids(prompt, system, before)

    def decode(self, token_ids: Sequence[int]) -> str:
        """As the model's own, and what `StoredTokenizer` will say."""
        text = self._tokenizer.decode(token_ids)
        assert text == b"".join(map(self.token_bytes, token_ids)).decode(errors="replace")
        return text

    def token_bytes(self, token_id: int) -> bytes:
        """As the model's own."""
        data = self._tokenizer.token_bytes(token_id)
        self.pieces[token_id] = (self._tokenizer.token_name(token_id), data)
        return data

    def token_name(self, token_id: int) -> str:
        """As the model's own; kept where the bytes are, too."""
        return self._tokenizer.token_name(token_id)


class StoredTokenizer:
    """What `NotedTokenizer` was asked, answered again. A token whose bytes nobody asked for has a made-up name."""

    def __init__(self, stored: Mapping[str, Any]) -> None:
        self.vocab_size: int = stored["vocab_size"]
        self.stop_ids = frozenset[int](stored["stop_ids"])
        self.bos_id: int | None = stored["bos_id"]
        self._pieces = {i: (name, bytes.fromhex(data)) for i, name, data in stored["pieces"]}
        self._encoded: dict[str, list[int]] = dict(stored["encoded"])

    def encode(self, text: str) -> list[int]:
        """Ids of a text that was encoded then."""
        assert text in self._encoded, f"Not recorded: the ids of {text[:200]!r}. {AGAIN}"
        return list(self._encoded[text])

    def chat(self, prompt: str, system: str = "", before: Sequence[ports.Exchange] = ()) -> str:
        """Not kept."""
        raise NotImplementedError

    def chat_ids(self, prompt: str, system: str = "", before: Sequence[ports.Exchange] = ()) -> tuple[str, list[int]]:
        """Not kept."""
        raise NotImplementedError

    def decode(self, token_ids: Sequence[int]) -> str:
        """From joined bytes."""
        return b"".join(map(self.token_bytes, token_ids)).decode(errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """Of a token that was asked for then."""
        assert token_id in self._pieces, f"Not recorded: the bytes of token {token_id}. {AGAIN}"
        return self._pieces[token_id][1]

    def token_name(self, token_id: int) -> str:
        """The name, or the number."""
        return self._pieces[token_id][0] if token_id in self._pieces else f"#{token_id}"


def stored(tokenizer: NotedTokenizer) -> dict[str, Any]:
    """What makes a `StoredTokenizer`."""
    return {
        "vocab_size": tokenizer.vocab_size,
        "stop_ids": sorted(tokenizer.stop_ids),
        "bos_id": tokenizer.bos_id,
        "pieces": [[i, name, data.hex()] for i, (name, data) in sorted(tokenizer.pieces.items())],
        "encoded": sorted(tokenizer.encoded.items()),
    }


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended when it was recorded."""

    token_ids: tuple[int, ...]
    guarantee: str
    finish_reason: str
    requests: int


@dataclass(frozen=True, slots=True)
class Recording:
    """Attributes:
    model: the name that requests ask for. findings: of the probe.
    references: the local target's greedy text per prompt.
    outcomes: by scenario. exchanges: in order; their parts are "probe", "stream" and the names of scenarios.
    streams: drafter and rule drew from streams of their own, by round. Until specviz 0.2 one generator served both.
    """

    server: str
    model: str
    findings: Findings
    references: dict[str, Reference]
    outcomes: dict[str, Outcome]
    tokenizer: dict[str, Any]
    exchanges: tuple[Exchange, ...]
    streams: bool = True

    def part(self, name: str) -> list[Exchange]:
        """The exchanges of one part."""
        return [e for e in self.exchanges if e.part == name]


def write(recording: Recording) -> Path:
    """One line of JSON for what is known, one for each exchange."""
    head = {k: v for k, v in asdict(recording).items() if k != "exchanges"}
    lines = [head, *([e.part, e.method, e.path, e.sent, e.status, e.answer] for e in recording.exchanges)]
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    path = FOLDER / f"{recording.server}.jsonl.xz"
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    return path


@cache
def read(server: str) -> Recording:
    """A recording by the name of its server."""
    text = lzma.decompress((FOLDER / f"{server}.jsonl.xz").read_bytes()).decode()
    head, *lines = (json.loads(line) for line in text.split("\n") if line)
    findings = head["findings"] | {"notes": tuple(head["findings"]["notes"])}
    return Recording(
        head["server"],
        head["model"],
        Findings(**findings),
        {name: Reference(*(tuple(v) for v in r.values())) for name, r in head["references"].items()},
        {name: Outcome(**(o | {"token_ids": tuple(o["token_ids"])})) for name, o in head["outcomes"].items()},
        head["tokenizer"],
        tuple(Exchange(*line) for line in lines),
        head.get("streams", False),
    )
