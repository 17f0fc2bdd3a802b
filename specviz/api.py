"""specviz in a notebook or a script: `specviz.run`. docs/python.md has examples."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specviz.cli.terminal import ProgressLine
from specviz.core import session
from specviz.core.baseline import Baselines
from specviz.core.errors import RunError
from specviz.core.events import Event
from specviz.core.settings import Settings
from specviz.core.wait import OnProgress, Wait
from specviz.record import report, trace
from specviz.record.state import EMITTED, RunState
from specviz.setup.builder import Builder
from specviz.setup.environment import environment, secrets

if TYPE_CHECKING:
    import pandas as pd


class _Kept(threading.local):
    """The models and baselines of the runs before, one set per thread: loaded models belong to their thread."""

    def __init__(self) -> None:
        self.builder, self.baselines = Builder(), Baselines()


_kept = _Kept()


def run(
    prompt: str,
    *,
    baseline: bool = True,
    on_progress: OnProgress | None = None,
    **settings: Any,
) -> Generation:
    """Decode one prompt with a draft.

    Args:
        prompt: as a user types it; the target's chat template is applied unless `raw=True`.
        baseline: whether plain decoding is measured first, so that there is a speed-up. It is measured once for equal
            target and sampling settings.
        on_progress: receives the progress of downloads, loading and the baseline; by default it is printed on standard
            error.
        settings: fields of `specviz.Settings`, such as `target`, `draft`, `k`, `temperature`, `max_tokens`, `rule`,
            `seed`. What is not given comes from the environment, then from `.env`, then from the defaults. The key of a
            remote target is read from TARGET_API_KEY.

    Returns:
        A run that has not begun: iterate over it, or ask it for its results.

    Raises:
        SettingsError: a setting is unknown or breaks its rule.
    """
    resolved = Settings.resolve(settings, environment=environment())
    return Generation(prompt, resolved, baseline=baseline, on_progress=on_progress or ProgressLine())


class Generation:
    """One run: an iterator over its events, which decodes while it is iterated.

    Everything but iteration first decodes to the end. `state` follows the iteration, and may be read at any time.

    Attributes:
        prompt: as given. settings: complete.
        state: what happened so far: nodes of the token tree, rounds, counts. See `specviz.record.state.RunState`.
        events: those that happened so far.
    """

    def __init__(self, prompt: str, settings: Settings, *, baseline: bool, on_progress: OnProgress) -> None:
        self.prompt, self.settings = prompt, settings
        self.state = RunState()
        self.events: list[Event] = []
        self._stream = self._decode(baseline, Wait(on_progress))

    def __iter__(self) -> Iterator[Event]:
        """The events that have not happened yet. They end with `Done`, or with `Error`, which is not raised here.

        Raises:
            SpecvizError: a model cannot be fetched or loaded, or draft and target do not fit together.
        """
        return self._stream

    def finish(self) -> Generation:
        """Decode to the end; returns the run itself.

        Raises:
            RunError: the run failed. `state` has what was decoded before.
            SpecvizError: see `__iter__`.
        """
        for _ in self._stream:
            pass
        if self.state.error:
            raise RunError(self.state.error.message, self.state.error.remedy)
        return self

    @property
    def text(self) -> str:
        """The output."""
        return str(self.summary()["text"])

    @property
    def guarantee(self) -> str:
        """How exact the output is, such as "EXACT"; `summary` has the reason."""
        return str(self.finish().state.guarantee)

    @property
    def speedup(self) -> float | None:
        """Tokens per second against plain decoding, both without their first round; None if not measured."""
        latest = self.finish().state.latest
        return latest.speedup if latest else None

    def summary(self) -> dict[str, Any]:
        """Text, counts, rates, guarantee and times, as `specviz generate --json` prints them."""
        return report.summary(self.finish().state)

    def tokens(self) -> pd.DataFrame:
        """One row per token of the tree, in order of appearance, also for those that are not in the output.

        Columns:
            index: position in the output. round, position: where it was drafted or drawn.
            status: accepted, rejected, ignored, resampled or bonus. emitted: whether the output contains it.
            token, token_id. p, q: probabilities under target and draft. acceptance_prob: min(1, p/q). u: the number
            drawn against it. overlap: Σ min(p, q) at this position. entropy: in bits. Unknown values are null.
        """
        import pandas as pd  # slow to load

        figures = ("p", "q", "acceptance_prob", "u", "overlap", "entropy")
        names = ("index", "round", "position", "status", "token", "token_id")
        rows = [
            {name: getattr(node, name) for name in (*names, *figures)} | {"emitted": node.status in EMITTED}
            for node in self.finish().state.nodes
        ]
        return pd.DataFrame(rows, columns=[*names, "emitted", *figures]).astype(dict.fromkeys(figures, "float64"))

    def rounds(self) -> pd.DataFrame:
        """One row per round: the fields of `specviz.core.events.Metrics`, and its times in ms."""
        import pandas as pd  # slow to load

        left_out = ("split", "total", "guarantee")
        rows = [
            {name: value for name, value in asdict(m).items() if name not in left_out}
            | asdict(m.split)
            | {"guarantee": str(m.guarantee)}
            for m in self.finish().state.rounds
        ]
        return pd.DataFrame(rows)

    def save(self, path: str | Path) -> Path:
        """Write the recording, which `specviz replay` reads. It contains no keys.

        Raises:
            TraceError: the file cannot be written.
        """
        path = Path(path)
        self.finish()
        with trace.TraceWriter(path, self.settings, secrets(environment())) as writer:
            for event in self.events:
                writer.write(event)
        return path

    def _decode(self, baseline: bool, wait: Wait) -> Iterator[Event]:
        with closing(_kept.builder.build(self.settings, wait)) as pair:
            baselines = _kept.baselines if baseline else None
            for event in session.run(pair, self.prompt, self.settings, baselines=baselines, explain=2, wait=wait):
                self.events.append(event)
                self.state.apply(event)
                yield event
