"""Remote targets over toy servers, with findings as a probe should make them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from specviz.core.decoding import speculative
from specviz.core.events import Done, Error, Event, Metrics, VerifyResult, Way
from specviz.core.ports import Capabilities, Drafter, Target, Tokenizer
from specviz.core.settings import Rule, Sampling, Settings, Verification
from specviz.engines.toy import ToyTokenizer
from specviz.targets.completions.target import RemoteTarget
from specviz.targets.completions.values import Completions, Engine, Findings, Reply, Request
from tests.targets.completions.toyserver import ENGINES, InMemory, ToyServer

_FULL = Findings(ids_in=True, ids_out=True, batch=True, scores=True, top=20, after_temperature=False, takes_top_k=True)
FINDINGS: dict[str, Findings] = {
    "vllm": _FULL,
    "sglang": replace(_FULL, after_temperature=True),
    "llamacpp": replace(_FULL, scores=False),
    "llama-cpp-python": replace(_FULL, ids_in=False, ids_out=False, batch=False, scores=False, top=5),
    "mlx": replace(_FULL, ids_in=False, batch=False, scores=False, top=0),
    "generates": Findings(after_temperature=None, takes_top_k=False),
}
#: Every toy server with every way that it can be asked in.
WAYS: list[tuple[str, Way]] = [
    *[("vllm", way) for way in ("scoring", "prefixes", "generating")],
    *[("sglang", way) for way in ("scoring", "prefixes", "generating")],
    *[("llamacpp", way) for way in ("prefixes", "generating")],
    *[(dialect, "generating") for dialect in ("llama-cpp-python", "mlx", "generates")],
]


class RoundTrip(ToyTokenizer):
    """The toy's, but for its emoji: encoding it gives the two tokens that the model writes, not four bytes."""

    def _encode_plain(self, data: bytes) -> list[int]:
        ids: list[int] = []
        for at, part in enumerate(data.split("😀".encode())):
            ids += [self.first_half_id, self.first_half_id + 1] if at else []
            ids += super()._encode_plain(part)
        return ids


TOY = RoundTrip()


def findings_of(dialect: str, **changes: Any) -> Findings:
    return replace(FINDINGS[dialect], **({"engine": ENGINES[dialect]} | changes))


def remote_target(
    toy: ToyServer,
    verification: Verification = "auto",
    *,
    sampling: Sampling | None = None,
    rule: Rule | None = None,
    tokenizer: Tokenizer | None = None,
    vocab_size: int | None = None,
    api: Completions | None = None,
    max_context: int = 4096,
    forget: Callable[[], None] = lambda: None,
    **found: Any,
) -> RemoteTarget:
    own = tokenizer or toy.tokenizer
    stops = getattr(own, "stop_ids", frozenset()) or toy.stop_ids
    limits = Capabilities(vocab_size or toy.vocab_size, max_context, stops, place="completions")
    return RemoteTarget(
        toy.name,
        api or InMemory(toy),
        findings_of(toy.dialect, **found),
        own,
        limits,
        verification,
        sampling or Sampling(),
        rule or Rule(),
        forget=forget,
    )


def run(drafter: Drafter, target: Target, prompt: Sequence[int], seed: int = 0, **settings: Any) -> list[Event]:
    return list(speculative(drafter, target, prompt, Settings(**settings), seed=seed))


def done(events: Sequence[Event]) -> Done:
    last = events[-1]
    assert not isinstance(last, Error), last.message
    assert isinstance(last, Done)
    return last


def metrics(events: Sequence[Event]) -> list[Metrics]:
    return [e for e in events if isinstance(e, Metrics)]


def results(events: Sequence[Event]) -> list[VerifyResult]:
    return [e for e in events if isinstance(e, VerifyResult)]


class Scripted:
    """An API that gives prepared bodies, in order."""

    def __init__(self, *bodies: Any) -> None:
        self.bodies = list(bodies)
        self.requests: list[Request] = []

    def complete(self, request: Request, *, engine: Engine = "") -> Reply:
        self.requests.append(request)
        body = self.bodies.pop(0)
        if isinstance(body, Exception):
            raise body
        return Reply(body, {}, 2.0, 1.0, 10, 20)

    def stream(self, request: Request, *, engine: Engine = "") -> Any:
        raise NotImplementedError

    def get(self, path: str) -> Reply:
        raise NotImplementedError


def legacy(
    *texts: str, ids: Sequence[Sequence[int]] | None = None, finish: str = "length", **usage: int
) -> dict[str, Any]:
    """A body of the completions API with a choice for each text."""
    choices = [
        {"index": i, "text": text, "finish_reason": finish, "logprobs": None}
        | ({} if ids is None else {"token_ids": list(ids[i])})
        for i, text in enumerate(texts)
    ]
    return {"choices": choices, "usage": usage}
