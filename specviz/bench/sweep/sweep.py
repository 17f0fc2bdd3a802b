"""The sweep: every cell on every prompt, in random order, with the baselines among them.

Machines drift: they warm up, and other programs use them. So the runs of a cell are spread over the sweep: for each
prompt, all cells run once in a random order, and a speed-up compares runs of the same prompt, minutes apart at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.cell import run_cell
from specviz.bench.sweep.conversation import Conversations
from specviz.bench.sweep.plan import PLAIN, Cell, SweepPlan
from specviz.bench.sweep.results import NOT_RECORDED, Bench, Failure, Trial
from specviz.core.errors import PromptError, SpecvizError, StoppedError
from specviz.core.names import parse_target
from specviz.core.pair import Pair
from specviz.core.prompt import prepare
from specviz.core.provenance import computed_by, machine, versions
from specviz.core.secrets import NO_SECRETS, Secrets
from specviz.core.settings import Settings
from specviz.core.wait import Progress, Wait
from specviz.record.state import Baseline

OpenPair = Callable[[Settings], Pair]
_PAUSE_S = 0.05
#: Between the two values of something that changed while a benchmark was interrupted.
_THEN = ", later "


def baselines_of(settings: Settings) -> tuple[Baseline, ...]:
    """The kinds of plain decoding that a target has; speed-ups are against the first."""
    if parse_target(settings.target).place == "completions":
        return ("streaming", "one call per token")
    if settings.simulated_rtt_ms:
        return ("plain decoding without the network", "one call per token")
    return ("plain decoding",)


def new_bench(plan: SweepPlan, prompts: Sequence[BenchPrompt]) -> Bench:
    """A sweep before its first run."""
    return Bench(plan, tuple(prompts), machine=versions() | machine(), started_at=time.time())


@dataclass(slots=True)
class Sweep:
    """Measures what is missing in a bench, and adds it; cells that failed before are tried again.

    Attributes:
        open_pair: makes a drafter and a target for settings; called once per draft. All drafts stay loaded.
        wait: called before every run, and while a model loads; cancelled, the sweep ends, and what is measured stays.
        paused: called between runs.
        secrets: struck out of what servers say before it enters the bench: it can be seen at once.
    """

    bench: Bench
    open_pair: OpenPair
    wait: Wait = Wait()
    paused: Callable[[], bool] = lambda: False
    secrets: Secrets = NO_SECRETS
    clock: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep
    _pairs: dict[tuple[object, ...], Pair] = field(default_factory=dict)
    _ids: dict[int, list[int]] = field(default_factory=dict)
    _warm: set[int] = field(default_factory=set)
    _conversations: Conversations = field(init=False)

    def __post_init__(self) -> None:
        """Take over the conversations that an interrupted sweep has written."""
        self._conversations = Conversations(self.wait)
        for prompt, answers in self.bench.answers.items():
            self._conversations.know(self.bench.prompts[prompt].before, answers)

    def run(self) -> Iterator[Trial | Failure]:
        """Measure until nothing is missing or it is cancelled; the pairs are closed at the end.

        Yields:
            Each new trial or failure, already in the bench.

        Raises:
            SpecvizError: the target cannot be opened.
        """
        try:
            yield from self._all()
        except StoppedError:
            return
        finally:
            for pair in self._pairs.values():
                pair.close()

    def _all(self) -> Iterator[Trial | Failure]:
        done = {t.key for t in self.bench.trials}
        # A server that was down, or a download that failed, may work this time.
        self.bench.failures.clear()
        failed: set[int] = set()
        for key in order(self.bench):
            if key in done or key[0] in failed or key[1] in self.bench.left_out:
                continue
            self._stand_by()
            found = self._measured(key)
            if isinstance(found, Failure):
                failed.add(found.cell)
                self.bench.failures.append(found)
            elif found is not None:
                self.bench.trials.append(replace(found, order=len(self.bench.trials)))
            if found is not None:
                yield found

    def _stand_by(self) -> None:
        if self.paused():
            self.wait.on_progress(Progress("Paused"))
        while self.paused() and not self.wait.cancelled():
            self.sleep(_PAUSE_S)
        if self.wait.cancelled():
            raise StoppedError("The sweep was stopped.")

    def _measured(self, key: tuple[int, int, int]) -> Trial | Failure | None:
        """One run; None where its prompt does not fit into the context and is left out."""
        number, prompt, _ = key
        plan = self.bench.plan
        cell = plan.cells()[number]
        began = self.clock()
        try:
            pair = self._pair(cell)
            if prompt not in self._ids and not self._prepared(pair, cell, prompt):
                return None
            if number not in self._warm and plan.warm_up:
                # Compiles kernels, fills the allocator, opens connections.
                self._tell(f"Warming up {cell.name}")
                self._one(pair, cell, key, plan.warm_up)
            self._warm.add(number)
            self._tell(f"Measuring {cell.name}")
            return self._one(pair, cell, key, None)
        except StoppedError:
            raise
        except SpecvizError as exc:
            if self.wait.cancelled():
                raise StoppedError("The sweep was stopped.") from exc
            return Failure(number, self.secrets.strike(exc.message), self.secrets.strike(exc.remedy))
        finally:
            self.bench.seconds += self.clock() - began

    def _one(self, pair: Pair, cell: Cell, key: tuple[int, int, int], max_tokens: int | None) -> Trial:
        ids = self._ids[key[1]]
        return run_cell(pair, self.bench.plan, cell, key, ids, max_tokens=max_tokens, wait=self.wait, clock=self.clock)

    def _tell(self, what: str) -> None:
        total = self.bench.total
        self.wait.on_progress(Progress(what, total - self.bench.missing, total, "runs"))

    def _pair(self, cell: Cell) -> Pair:
        plan = self.bench.plan
        if cell.baseline:
            # A remote target may take its tokenizer from the draft, so it is opened with one.
            draft = next((d for d in plan.drafts if d != PLAIN and self._is_open(d)), plan.drafts[0])
            cell = replace(cell, draft=draft)
        settings = plan.settings_of(cell)
        key = _key(settings)
        if key not in self._pairs:
            self._pairs[key] = pair = self.open_pair(settings)
            self._record(versions() | machine() | computed_by(pair.target.capabilities))
        return self._pairs[key]

    def _record(self, provenance: Mapping[str, str]) -> None:
        """Add to the bench what it is measured with; a resumed one may have been begun with something else."""
        for name, value in provenance.items():
            now = self.secrets.strike(value)
            before = self.bench.machine.get(name, NOT_RECORDED) if self.bench.trials else now
            self.bench.machine[name] = before if before.split(_THEN)[-1] == now else f"{before}{_THEN}{now}"

    def _is_open(self, draft: str) -> bool:
        """Whether the draft did not fail: the baseline must not fail with it."""
        failed = {self.bench.plan.cells()[f.cell].draft for f in self.bench.failures}
        return draft not in failed

    def _prepared(self, pair: Pair, cell: Cell, number: int) -> bool:
        prompt, plan = self.bench.prompts[number], self.bench.plan
        try:
            settings = replace(plan.settings_of(cell), k=max(plan.ks))
            before = self._conversations.before(prompt.before, lambda: self._answering(cell), settings)
            _, self._ids[number] = prepare(pair.target, plan.settings, prompt.text, before)
            if before:
                self.bench.answers[number] = tuple(self.secrets.strike(answer) for _, answer in before)
        except PromptError as exc:
            self.bench.left_out[number] = self.secrets.strike(exc.message)
            return False
        return True

    def _answering(self, cell: Cell) -> Pair:
        """The pair of the cell at temperature 0."""
        return self._pair(replace(cell, temperature=0.0, rule="probabilistic"))


def _key(settings: Settings) -> tuple[object, ...]:
    """What a pair depends on: the way of a completions target follows from temperature and rule."""
    if parse_target(settings.target).place == "completions":
        return settings.draft, settings.temperature, settings.rule
    return (settings.draft,)


def order(bench: Bench) -> Iterator[tuple[int, int, int]]:
    """Keys of all runs in the order of measuring: the same for the same seed, so that a sweep can be resumed.

    Yields:
        Indices of cell and prompt, and the number of the repeat.
    """
    rng = np.random.default_rng(bench.plan.settings.seed)
    cells = len(bench.plan.cells())
    for repeat in range(bench.plan.repeats):
        for prompt in rng.permutation(len(bench.prompts)):
            for cell in rng.permutation(cells):
                yield int(cell), int(prompt), repeat


def seconds_left(bench: Bench) -> float | None:
    """How long the rest takes at the mean time of the runs so far; None before the first run."""
    return bench.seconds / len(bench.trials) * bench.missing if bench.trials else None
