"""Calls add up; what no server said stays unknown."""

from specviz.targets.completions.costs import Cost, Metered
from specviz.targets.completions.values import Answer, Reply, Request, Usage
from tests.targets.completions.remotes import Scripted

REPLY = Reply({}, call_ms=100.0, waited_ms=30.0, sent_bytes=10, received_bytes=20, attempts=2)


def test_a_call_that_says_nothing_is_one_time() -> None:
    cost = Cost.of(REPLY, Answer(()))
    assert (cost.call_ms, cost.queue_ms, cost.network_ms, cost.compute_ms) == (100.0, 30.0, None, None)
    assert (cost.billed_prompt_tokens, cost.billed_completion_tokens, cost.requests) == (None, None, 2)


def test_a_server_that_says_its_computing_time_divides_the_call() -> None:
    cost = Cost.of(REPLY, Answer((), Usage(7, 3), queue_ms=5.0, compute_ms=60.0))
    assert (cost.call_ms, cost.queue_ms, cost.network_ms, cost.compute_ms) == (0.0, 35.0, 35.0, 60.0)
    # Its clock may say more than ours.
    assert Cost.of(REPLY, Answer((), compute_ms=600.0)).network_ms == 0.0


def test_sums_keep_what_is_known() -> None:
    both = Cost.of(REPLY, Answer((), Usage(7, 3))) + Cost.of(REPLY)
    assert (both.billed_prompt_tokens, both.call_ms, both.requests, both.sent_bytes) == (7, 200.0, 4, 20)
    assert (Cost() + Cost()).billed_prompt_tokens is None


def test_calls_whose_answers_were_of_no_use_are_counted_once() -> None:
    api = Metered(Scripted({}, {}))
    for _ in range(2):
        api.complete(Request(((1,),)))
    assert (api.lost().requests, api.lost().requests) == (2, 0)
