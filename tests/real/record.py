"""Record a live server, for `tests/targets/completions/test_recorded.py`: see the README of this folder.

SPECVIZ_REAL_BASE_URL=http://127.0.0.1:8000/v1 SPECVIZ_REAL_MODEL=… python -m tests.real.record vllm
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from specviz.core.ports import Tokenizer
from specviz.core.settings import Sampling
from specviz.targets.completions.values import Completions, Findings
from tests.real.contract import K, ModelTokens, Reference, Scenario, check, done, remote, requests_of, run, scenarios
from tests.real.recording import NotedTokenizer, Outcome, Recording, read, stored, write
from tests.real.server import connected, find, local_target, named, references
from tests.real.wire import Recorder, without_context

STREAM_TOKENS = 16
#: How a model is named in a recording: some servers want a path.
MODEL = "smollm2-135m"


def main() -> int:
    """Run every scenario through a recorder, and write what was said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", help="name of the recording, such as vllm")
    parser.add_argument("--known", metavar="NAME", help="take the local target's texts from that recording")
    options = parser.parse_args()
    asked = named()
    if asked is None:
        print("Set SPECVIZ_REAL_BASE_URL and SPECVIZ_REAL_MODEL.", file=sys.stderr)
        return 2
    local = local_target(asked.local)
    known = read(options.known).references if options.known else references(local)
    tokens = NotedTokenizer(_with_limits(local.tokenizer))
    recorder = Recorder(asked.base_url, {asked.model: MODEL})
    outcomes: dict[str, Outcome] = {}
    with recorder.serve() as base_url, connected(base_url, asked.model, asked.key) as api:
        recorder.part = "probe"
        findings = find(api, asked.model, tokens)
        print(findings)
        for scenario in scenarios(findings.ways):
            recorder.part = scenario.name
            outcomes[scenario.name] = _outcome(scenario, api, findings, tokens, known[scenario.prompt])
        recorder.part = "stream"
        print("streamed tokens:", streamed(api, findings, tokens, known["sky"].prompt_ids))
    kept = [e if e.part == "probe" else without_context(e, K + 2) for e in recorder.exchanges]
    path = write(Recording(options.server, MODEL, findings, known, outcomes, stored(tokens), tuple(kept)))
    print(f"{path}: {len(kept)} exchanges, {path.stat().st_size / 1000:.0f} kB")
    return 0


def _outcome(
    scenario: Scenario, api: Completions, findings: Findings, tokens: ModelTokens, known: Reference
) -> Outcome:
    events = run(scenario, remote(api, findings, tokens, scenario), known)
    ended = done(events)
    tokens.decode(ended.token_ids)
    tie = check(scenario, events, findings, known)
    print(
        f"{scenario.name}: {ended.total_tokens} tokens, {ended.total_rounds} rounds, {requests_of(events)} requests, "
        f"{ended.total_accepted} of {ended.total_drafted} kept, {ended.guarantee} {tie}",
        flush=True,
    )
    return Outcome(ended.token_ids, ended.guarantee.kind, ended.finish_reason, requests_of(events))


def streamed(api: Completions, findings: Findings, tokens: ModelTokens, prompt_ids: Sequence[int]) -> int:
    """How many tokens the server counts in a streamed answer."""
    target = remote(api, findings, tokens, Scenario("generating", 0.0, "sky", "ngram"))
    counts = [piece.tokens for piece in target.stream_plain(prompt_ids, Sampling(), STREAM_TOKENS)]
    return sum(count for count in counts if count is not None)


def _with_limits(tokenizer: Tokenizer) -> ModelTokens:
    assert hasattr(tokenizer, "stop_ids") and hasattr(tokenizer, "vocab_size")
    return tokenizer  # type: ignore[return-value]


if __name__ == "__main__":
    raise SystemExit(main())
