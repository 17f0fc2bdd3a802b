"""A run in one JSON object, as `generate --json` prints it."""

from __future__ import annotations

from typing import Any

from specviz.core.events import TimeSplit
from specviz.core.tally import rate
from specviz.record.state import RunState


def summary(state: RunState) -> dict[str, Any]:
    """Text, counts, rates, guarantee and time split of a run, also of an unfinished or failed one.

    Unknown figures are None. Times are in ms; the known ones add up to `wall`. Calls to a server that does not report
    how much of them was network and how much computing are in `call`. The billed tokens are those of the run, without
    its baselines.
    """
    started, last, sums = state.started, state.latest, state.sums
    rounds = len(state.rounds)
    split = last.total if last else TimeSplit()
    per_call = started.per_call_tps if started else None
    guarantee = state.guarantee
    return {
        "text": state.done.generated_text if state.done else state.output_bytes().decode("utf-8", errors="replace"),
        "token_ids": [state.nodes[i].token_id for i in state.text],
        "rounds": rounds,
        "drafted": sums.drafted,
        "tested": sums.tested,
        "accepted": sums.accepted,
        "acceptance_rate": rate(sums.accepted, sums.tested),
        "accepted_per_round": sums.accepted / rounds if rounds else None,
        "tokens_per_round": sums.emitted / rounds if rounds else None,
        "acceptance_by_position": state.acceptance_by_position(),
        "tokens_per_second": last.effective_tps if last else None,
        "baseline_tokens_per_second": started.baseline_tps if started else None,
        "baseline": state.baseline if started and started.baseline_tps else None,
        "per_call_tokens_per_second": per_call,
        "speedup": last.speedup if last else None,
        "speedup_per_call": last.effective_tps / per_call if last and last.effective_tps and per_call else None,
        "guarantee": str(guarantee) if guarantee else None,
        "guarantee_reason": guarantee.reason if guarantee else None,
        "place": started.place if started else None,
        "engine": (started.engine or None) if started else None,
        "precision": (started.precision or None) if started else None,
        "model_file": (started.model_file or None) if started else None,
        "way": state.way_of(-1),
        "simulated_rtt_ms": started.simulated_rtt_ms if started else None,
        "simulated_jitter_ms": started.simulated_jitter_ms if started else None,
        "requests": sums.requests if sums.asking else None,
        "billed_prompt_tokens": sums.billed_prompt,
        "billed_completion_tokens": sums.billed_completion,
        "rule": started.settings.get("rule") if started else None,
        "target": started.target if started else None,
        "draft": started.draft if started else None,
        "k": started.settings.get("k") if started else None,
        "temperature": started.settings.get("temperature") if started else None,
        "seed": started.settings.get("seed") if started else None,
        "prompt_tokens": len(started.prompt_ids) if started else None,
        "finish_reason": state.finish_reason,
        "error": state.error.message if state.error else None,
        "time_ms": {
            "wall": split.wall_ms,
            "draft": split.draft_ms,
            "network": split.network_ms,
            "queue": split.queue_ms,
            "target": split.target_ms,
            "call": split.call_ms,
            "rule": split.rule_ms,
            "other": split.other_ms,
        },
    }
