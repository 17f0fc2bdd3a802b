"""A catalog whose runs are scripted: the prompt names the scene. No thread, no model, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from time import monotonic
from typing import ClassVar, get_args

from specviz.core.connection import Secret
from specviz.core.errors import PromptError, UnknownModelError
from specviz.core.events import Done, DraftToken, Error, Event, FinishReason, Metrics, VerifyResult
from specviz.core.settings import Settings
from specviz.core.wait import Progress
from specviz.host.job import Phase
from specviz.host.trial import TrialOutcome, Tried
from specviz.record import trace
from specviz.record.pace import Pace
from specviz.record.state import RunState
from specviz.setup.catalog import CatalogEntry
from specviz.targets.completions.values import Findings
from tests.views.scripted import Special, Story, Token

HOSTILE: tuple[Token, ...] = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    ' <a href="javascript:alert(3)">href</a>',
    "\u202eright to left\u202c",
    "a\x00b\x1b[31m",
    "x" * 10_000,
    "$$\\frac{1}{0}$$ **bold** :red[red] [link](https://example.com/)",
    b"\xf0\x9f",
    b"\x98\x80",
    b"\xff",
    Special("<|im_end|>"),
    "\n\n",
    "שלום",
)
NAME = '<img src=x onerror=alert(4)>\n<a href="javascript:alert(5)">**bold**</a> \u202e%{y} &lt;' + "n" * 500
_WORDS = " the draft proposes and the target decides so every token is its own".replace(" ", "| ").split("|")[1:]


SENT = "<|im_start|>user\nHello <b>you</b> $x$\x00<|im_end|>\n<|im_start|>assistant\n"


def _talk(rounds: int, k: int = 4, story: Story | None = None) -> Story:
    words, kept = cycle(_WORDS), cycle((4, 2, 0, 3, 1))
    story = story or Story()
    for _ in range(rounds):
        story.round(list(islice(words, k)), next(kept) % (k + 1), next(words), acceptance=0.7)
    return story


def _hostile() -> Story:
    story = Story(80.0, target=NAME, draft=NAME)
    for token in HOSTILE:
        story.round([token, "<b>refused</b>"], 1, " instead")
        story.round([token], 1, token)
    return story


def _empty(reason: FinishReason) -> Story:
    story = Story()
    if reason != "stop_token":
        story.round([Special("<|pad|>")], 1, Special("<|pad|>"))
    done = story.done(reason).events.pop()
    assert isinstance(done, Done)
    story.events.append(replace(done, generated_text="", stop_string="END" if reason == "stop_string" else None))
    return story


def _remote(rounds: int) -> Story:
    return _talk(rounds, story=Story(80.0, way="prefixes", per_call_tps=15.0, billed=(500, 5), prompt_text=SENT))


def _far(rounds: int) -> Story:
    return _talk(rounds, story=Story(11.0, per_call_tps=4.2, network=(150.0, 30.0)))


SCENES: dict[str, Callable[[], Story]] = {
    "talk": lambda: _talk(40).done("stop_token"),
    "endless": lambda: _talk(4000),
    "large": lambda: _talk(360).done(),
    "hostile": lambda: _hostile().done(),
    "fails": lambda: _talk(6).failed("The target went away: <b>connection reset</b>.", "Start it again."),
    "fails at once": lambda: Story().failed("A draft has 300 tokens, the target 301.", "Choose another draft."),
    "remote": lambda: _remote(12).done(),
    "far": lambda: _far(12).done(),
    "remote fails": lambda: _remote(3).failed(
        "No connection to http://127.0.0.1:1.", "Is the server running?", "UnreachableError"
    ),
    "remote fails at once": lambda: _remote(0).failed("The server refused the key.", "Check the key."),
    **{f"empty: {reason}": partial(_empty, reason) for reason in get_args(FinishReason)},
}
WAITS: dict[str, tuple[Phase, Progress | None]] = {
    "queued": ("queued", None),
    "downloading": ("loading", Progress("Downloading SmolLM2-135M-Instruct", 37_400_000, 92_871_040, "bytes")),
    "loading": ("loading", Progress("Loading SmolLM2-135M-Instruct")),
    "retrying": ("running", Progress("Waiting to ask again: 429 Too Many Requests", 2, 8, "s")),
    "baseline": ("baseline", Progress("Measuring plain decoding", 12, 32, "tokens")),
}


FINDINGS: dict[str, Findings] = {
    "scores": Findings(
        engine="vllm", version="0.32.0", model="scores", max_context=4096, ids_in=True, ids_out=True, batch=True,
        scores=True, top=20, after_temperature=False, latency_ms=12.3, calls=3,
        notes=("Log-probabilities of <b>given</b> tokens came back.",),
    ),
    "writes": Findings(model="writes", latency_ms=50.0),
}  # fmt: skip


class FakeRun:
    """Computes `per_drain` events each time it is drained, and shows of them what its pace allows."""

    full = False
    phase: Phase
    progress: Progress | None

    def __init__(self, settings: Settings, prompt: str) -> None:
        self.id = f"fake-{id(self)}"
        self.settings, self.prompt = settings, prompt
        self.state = RunState()
        self.pace = Pace()
        self.rounds_computed = 0
        self.started_at = 0.0
        self.phase: Phase
        self.phase, self.progress = WAITS.get(prompt, ("running", None))
        self.queue_position = 2 if self.phase == "queued" else 0
        self.stops = 0
        story = SCENES.get(prompt, SCENES["talk"])() if prompt not in WAITS else Story()
        self._left: Iterator[Event] = iter(story.events)
        self._computed: deque[Event] = deque()
        self._taken: list[Event] = []
        self._whole = 0
        self.per_drain = {"large": 400, "endless": 9}.get(prompt, 40)
        self.done = False

    @property
    def stopped(self) -> bool:
        return self.stops > 0

    def drain(self, budget: int = 5000) -> int:
        if self.done or (self.prompt in WAITS and not self.stops):
            return 0
        if not self.stops:
            self._compute()
        self.pace.look(monotonic())
        before = len(self._taken)
        while self._computed and (self.stops or self.pace.allows(self._computed[0])):
            self._take(self._computed.popleft())
        if self.stops and not self.state.finished:
            self._take(_ended(self.state))
        self.done = self.state.finished
        if self.done:
            self.phase = "finished"
        return len(self._taken) - before

    def _compute(self) -> None:
        for event in islice(self._left, self.per_drain):
            self._computed.append(event)
            self.rounds_computed += isinstance(event, Metrics)
            if isinstance(event, Done | Error):
                self.phase = "finished"

    def _take(self, event: Event) -> None:
        self._taken.append(event)
        if not isinstance(event, DraftToken | VerifyResult):
            self._whole = len(self._taken)
        self.state.apply(event)

    def stop(self, timeout: float = 0.0) -> bool:
        self.stops += 1
        return self.done

    def trace_lines(self) -> Iterator[str]:
        return trace.lines(self.settings, self._taken[: self._whole])


def _ended(state: RunState) -> Event:
    end = Story().done("stopped").events[-1]
    assert isinstance(end, Done)
    return replace(end, total_tokens=len(state.text), generated_text=state.output_bytes().decode("utf-8", "replace"))


class FakeCheck:
    """A test that has ended, or one that goes on until it is stopped, by the name of the remote model."""

    def __init__(self, what: Tried, settings: Settings) -> None:
        self.id = f"check-{id(self)}"
        self.what, self.settings = what, settings
        self.phase = "running"
        self.progress: Progress | None = Progress("Asking the target for its first words", 3, 8, "tokens")
        self.result: TrialOutcome | None = None
        self.error: Error | None = None
        self.live = settings.remote_model == "slow"
        if not self.live:
            self._end()

    def _end(self) -> None:
        self.live, self.phase, self.progress = False, "finished", None
        if self.settings.remote_model == "broken":
            self.error = Error("UnreachableError", "No connection to http://127.0.0.1:1.", "Is the server running?")
        else:
            found = FINDINGS.get(self.settings.remote_model)
            self.result = TrialOutcome(self.what, "fake", 123.4, 45.6, " Hello <b>there</b>", findings=found)

    def stop(self, timeout: float = 0.0) -> bool:
        self.live = False
        return True


class FakeHost:
    #: Key of every run and test that was started, in order.
    keys: ClassVar[list[str | None]] = []

    def test(self, what: Tried, settings: Settings, key: Secret | None = None) -> FakeCheck:
        self.keys.append(key.value if key else None)
        if settings.target == "openai:":
            raise UnknownModelError("The remote target has no model.", "Name it.")
        return FakeCheck(what, settings)

    def start(self, settings: Settings, prompt: str, key: Secret | None = None) -> FakeRun:
        self.keys.append(key.value if key else None)
        if not prompt.strip():
            raise PromptError("The prompt is empty.", "Type a question, or choose an example.")
        known = [c.name for c in FakeCatalog().targets()]
        if settings.target not in known and not settings.target.startswith("openai:"):
            raise UnknownModelError(f"Unknown target {settings.target!r}.", f"Known: {', '.join(known)}.")
        FakeCatalog.fetched = True
        return FakeRun(settings, prompt)

    def close(self) -> None: ...


class FakeCatalog:
    fetched = False  # the first run brings the default model

    def targets(self) -> list[CatalogEntry]:
        cost = "" if self.fetched else "93 MB to download"
        return [
            CatalogEntry("local:smollm2-135m", "SmolLM2 135M", "135 M parameters; the default.", self.fetched, cost),
            CatalogEntry("toy", "Toy", "A table of 294 tokens: instant, no download.", True, ""),
        ]

    def drafts(self, target: str) -> list[CatalogEntry]:
        return [
            CatalogEntry("ngram", "n-gram lookup", "Copies what followed last time.", True, ""),
            CatalogEntry(
                "toy", "Toy draft", "The toy target with noise.", target == "toy",
                "" if target == "toy" else "Its vocabulary is its own.",
            ),
        ]  # fmt: skip

    def make_host(self) -> FakeHost:
        return FakeHost()
