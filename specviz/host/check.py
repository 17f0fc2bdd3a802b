"""The test of a target or a draft, which queues among the runs."""

from __future__ import annotations

import dataclasses

from specviz.core.connection import Secret
from specviz.core.names import parse_target
from specviz.core.pair import PairBuilder
from specviz.core.settings import Settings
from specviz.host.job import Queue
from specviz.host.task import Task
from specviz.host.trial import TrialOutcome, Tried, try_draft, try_target
from specviz.setup.environment import environment, secrets


class Check(Task):
    """A test of a target or a draft: started by `ModelHost.test`, looked at by whoever shows it.

    Attributes:
        what: which of the two.
        result: what came of it; None before the end, after a failure, and when it was stopped.
    """

    def __init__(self, what: Tried, settings: Settings, queue_of: Queue, key: Secret | None = None) -> None:
        super().__init__(settings, queue_of, key)
        self.what = what
        self.result: TrialOutcome | None = None

    # What follows is the host's side.

    def do(self, builder: PairBuilder) -> None:
        """Build what is tested, and try it."""
        if self.cancelled():
            return
        self.phase = "loading"
        # How a model does is asked of the model; a simulated network would only be waited for.
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
        # A server may answer with what it was sent.
        self.result = dataclasses.replace(tried, text=secrets(environment(), self._key).strike(tried.text))
