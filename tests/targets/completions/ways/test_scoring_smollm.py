"""The cost of scoring with the real pair: SmolLM2 behind a server, and its small draft in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from specviz.core.noise import Noise
from specviz.core.ports import HasScorer, Scorer
from specviz.core.prompt import prepare
from specviz.core.rounds import Candidate, Round, Verdict
from specviz.core.sampling import Logits
from specviz.core.settings import Rule, Sampling, Settings
from specviz.setup.builder import Builder
from specviz.targets.completions.server import Server
from specviz.targets.completions.values import Findings
from specviz.targets.completions.ways import scoring
from tests.targets.completions.toyserver import InMemory, ToyServer

pytestmark = pytest.mark.smollm

PROMPTS = (
    "Explain why the sky is blue.",
    "Write a short story about a lighthouse keeper who finds a letter.",
    "List five things to check before buying a used bicycle.",
)
ROUNDS = 20
FINDINGS = Findings(engine="sglang", ids_in=True, ids_out=True, batch=True, scores=True, top=20, after_temperature=True)


class Remembering(Scorer):
    """A scorer that computes every row once, all rows of a new context in one pass."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._rows: dict[tuple[int, ...], Logits] = {}

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        ids = tuple(token_ids)
        wanted = [ids[: len(ids) - rows + 1 + i] for i in range(rows)]
        first = next((i for i in range(1, len(ids) + 1) if ids[:i] not in self._rows), None)
        if any(w not in self._rows for w in wanted) and first is not None:
            n = len(ids) - first + 1
            for i, row in enumerate(self._scorer.score(ids, n)):
                self._rows[ids[: first + i]] = row
        return np.stack([self._rows[w] for w in wanted])

    def reset(self) -> None:
        self._rows.clear()


@dataclass
class Measured:
    """Sums over rounds."""

    rounds: int = 0
    tested: int = 0
    kept: int = 0
    requests: int = 0
    samples: int = 0
    tails: list[float] = field(default_factory=list)

    def add(self, verdict: Verdict, candidate: Candidate, server: ToyServer, context: list[int]) -> None:
        reached = [d for d in verdict.decisions if d.status in ("accepted", "rejected")]
        self.rounds += 1
        self.tested += len(reached)
        self.kept += sum(d.status == "accepted" for d in reached)
        self.requests += (verdict.requests or 0) - 1
        self.samples += (verdict.billed_completion_tokens or 0) - 1
        for i in range(len(reached)):
            row = np.exp(server.logprobs([*context, *candidate.token_ids[:i]]))
            self.tails.append(1 - float(np.sort(row)[-20:].sum()))


def test_a_round_of_the_smollm2_pair_needs_few_extra_requests() -> None:
    # A draft that never stops early has the most tested positions, and so the most possible rejections.
    pair = Builder().build(Settings(draft="model:smollm2-draft", k=4, temperature=1.0, min_confidence=0.0))
    target, sampling = pair.target, Sampling(1.0)
    assert isinstance(target, HasScorer)
    scorer = Remembering(target.scorer)
    stops = target.capabilities.stop_ids
    api = InMemory(ToyServer(scorer, "sglang", target.tokenizer, seed=1, stop_ids=stops))
    server = Server(api, FINDINGS, target.tokenizer, target.capabilities.vocab_size)
    measured = Measured()
    for prompt in PROMPTS:
        _, context = prepare(target, Settings(), prompt)
        start = list(context)
        for _ in range(ROUNDS):
            noise = Noise(2, measured.rounds)
            draft = pair.drafter.propose(context, 4, sampling, noise)
            verdict = scoring.verify(server, Round(tuple(context), draft, sampling, Rule(), noise))
            measured.add(verdict, draft.first, api.toy, list(context))
            context = [*context, *verdict.token_ids]
            if stops & set(verdict.token_ids):
                context = list(start)
        scorer.reset()
    each, tails = measured.requests / measured.rounds, np.array(measured.tails)
    print(
        f"\n{measured.rounds} rounds: {measured.tested / measured.rounds:.2f} tested and "
        f"{measured.kept / measured.rounds:.2f} kept a round; extra requests {each:.3f} a round, "
        f"{measured.samples / measured.rounds:.2f} samples a round; tail share mean {tails.mean():.3f}, "
        f"median {np.median(tails):.3f}, most {tails.max():.3f}"
    )
    assert measured.rounds == ROUNDS * len(PROMPTS)
    assert each <= 0.3
