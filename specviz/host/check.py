"""A test of a target or a draft, queued like a run."""

from __future__ import annotations

import dataclasses

from specviz.core.connection import Secret
from specviz.core.names import parse_target
from specviz.core.pair import PairBuilder
from specviz.core.settings import Settings
from specviz.host.job import Queue
from specviz.host.task import Task
from specviz.host.trial import TrialOutcome, Tried, try_draft, try_target


class Check(Task):
    """A test of a target or a draft, started by `ModelHost.test`.

    Attributes:
        what: whether the target or the draft is tested.
        result: the outcome; None before the end, after a failure, and when it was stopped.
    """

    def __init__(self, what: Tried, settings: Settings, queue_of: Queue, key: Secret | None = None) -> None:
        super().__init__(settings, queue_of, key)
        self.what = what
        self.result: TrialOutcome | None = None

    # The methods below are called by the host.

    def do(self, builder: PairBuilder) -> None:
        """Build the target or the draft, and test it."""
        if self.cancelled():
            return
        self.phase = "loading"
        # The test is about the model: a simulated network would only add waiting time.
        settings = self.settings.without_network()
        if self.what == "draft":
            settings = dataclasses.replace(settings, min_confidence=0.0)
        elif parse_target(settings.target).place != "completions":
            # A completions target may take its tokenizer from the draft.
            settings = dataclasses.replace(settings, draft="none")
        pair = builder.build(settings, self.wait, self._key)
        try:
            self.phase = "running"
            if self.what == "target":
                tried = try_target(pair.target, settings, self.wait)
            else:
                tried = try_draft(pair.drafter, pair.target, settings, self.wait)
        finally:
            pair.close()
        self.result = self._secrets.strike_in(tried)
