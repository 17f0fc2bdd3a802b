"""The inspector: sentences that are true, numbers that are the event's, and one message for one change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from specviz.core.decoding import speculative
from specviz.core.event_json import from_json, to_json
from specviz.core.events import DraftToken, Event, VerifyResult, Way
from specviz.core.noise import Noise
from specviz.core.ports import Drafter, Target
from specviz.core.rounds import Draft, Explain
from specviz.core.sampling import Row, residual, to_probs
from specviz.core.settings import RULES, Sampling, Settings
from specviz.drafters.block import Drafted, draft_of
from specviz.drafters.ngram import NgramDrafter
from specviz.engines.toy import ToyScorer
from specviz.record.state import Node, RunState
from specviz.views import inspector
from specviz.views.inspector import InspectorView, detail
from specviz.views.palette import LOOKS
from specviz.views.reasons import chances
from specviz.views.weighed import table
from tests.toys import TOKENIZER, combined_draft, fixed_draft, fixed_target, pruned_draft, toy_draft, toy_target
from tests.views.scripted import Special, Story

# transformers#32867 and vllm#40149.
P, Q = [0.4, 0.35, 0.25], [0.1, 0.1, 0.8]


class Copies:
    """Always copies one token: its q is one-hot, as that of a lookup is."""

    name = "copies"
    max_context: int | None = None

    def __init__(self, token_id: int) -> None:
        self._token_id = token_id

    def propose(
        self, context_ids: Sequence[int], k: int, sampling: Sampling, noise: Noise, n: int = 1, explain: Explain = 2
    ) -> Draft:
        return draft_of(self.name, [Drafted.copy(self._token_id, 0.1)] * k)

    def reset(self) -> None: ...


def run(drafter: Drafter, target: Target, seed: int = 0, prompt: Sequence[int] = (0,), **options: Any) -> RunState:
    settings = Settings(**({"k": 2, "max_tokens": 60, "temperature": 1.0} | options))
    return RunState().apply_all(speculative(drafter, target, prompt, settings, seed=seed))


def first(state: RunState, status: str, token_id: int | None = None) -> Node:
    return next(n for n in state.nodes if n.status == status and token_id in (None, n.token_id))


def sibling_of(state: RunState, node: Node) -> Node:
    assert node.sibling is not None
    return state.nodes[node.sibling]


def shown(state: RunState, node: Node) -> dict[str, Any]:
    """The detail, which must be what JSON can carry."""
    made = detail(state, node.id)
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    return made


def column(made: dict[str, Any], kind: str) -> dict[str, str]:
    """Token → text of one column of the table."""
    at = [k for k, _ in made["table"]["columns"]].index(kind)
    return {row["token"]: row["cells"][at][1] for row in made["table"]["rows"]}


def said(state: RunState, node: Node) -> str:
    return str(shown(state, node)["sentence"])


# By hand.


def test_a_token_with_q_above_p_is_kept_with_p_over_q_or_resampled_from_the_residual() -> None:
    state = run(fixed_draft(Q), fixed_target(P))
    refused = first(state, "rejected", 2)
    text = said(state, refused)
    assert text.startswith(
        "The draft gave it more than the target does: q = 0.80, p = 0.25. Kept with probability p/q = 0.31; "
    )
    assert text.endswith("so it was rejected.") and f"drawn was {refused.u:.2f}" in text
    made = shown(state, refused)
    # max(0, p - q) is .3, .25, 0, and Σ min(p, q) .45: vllm#40149.
    assert column(made, "residual") == {"a": "0.545", "b": "0.455", "c": "0", "all others": "0"}
    assert column(made, "p") == {"a": "0.400", "b": "0.350", "c": "0.250", "all others": "0"}
    assert column(made, "q") == {"a": "0.100", "b": "0.100", "c": "0.800", "all others": "0"}
    assert dict(made["facts"])["expected acceptance, Σ min(p, q)"] == "0.4500"
    assert dict(made["facts"])["min(1, p/q)"] == "0.3125"
    assert [row["draft"] for row in made["table"]["rows"][:3]] == [
        row["token"] == "c" for row in made["table"]["rows"][:3]
    ]

    drawn = sibling_of(state, refused)
    answer = said(state, drawn)
    assert answer.startswith("Drawn in place of “c”, which was rejected, from the residual:")
    assert answer.endswith(f"probability there is {dict(a='0.55', b='0.45')[drawn.token]}.")
    assert shown(state, drawn)["table"] == made["table"], "one decision, one table"
    assert [r["token"] for r in made["table"]["rows"] if r.get("final")] == [drawn.token]
    assert (made["go"]["sibling"], shown(state, drawn)["go"]["sibling"]) == (drawn.id, refused.id)

    kept = first(state, "accepted", 2)
    assert said(state, kept).endswith("below that, so it was kept.")
    assert "residual" not in dict(shown(state, kept)["table"]["columns"]), "nothing was drawn from the residual"
    assert said(state, first(state, "accepted", 0)) == (
        "The target gives it at least as much as the draft (p = 0.40, q = 0.10): always kept."
    )


def test_a_copied_token_has_q_one() -> None:
    state = run(Copies(2), fixed_target(P))
    refused = first(state, "rejected")
    assert "copied this token instead of drawing it, so q = 1; the target gives it p = 0.25. Kept with" in said(
        state, refused
    )
    assert column(shown(state, refused), "residual") == {"c": "0", "a": "0.533", "b": "0.467", "all others": "0"}
    assert refused.overlap == pytest.approx(0.25)


def test_a_draft_with_one_possible_token_is_not_called_a_copy() -> None:
    state = run(fixed_draft(Q), fixed_target(P), top_k=1, rule="deterministic")
    assert shown(state, first(state, "rejected"))  # p is one-hot too: nothing to compare
    odd = replace_node(first(run(Copies(2), fixed_target(P)), "rejected"), draft_logprob=-0.2)
    assert "could only propose this token, so q = 1" in said_of(odd)


def test_an_empty_residual_is_not_shown() -> None:
    state = run(fixed_draft([0, 1.0]), fixed_target([0, 1.0]))
    assert {n.status for n in state.nodes} == {"accepted", "bonus"}
    node = first(state, "accepted")
    assert said(state, node) == "The target gives it at least as much as the draft (p = 1, q = 1): always kept."
    assert node.overlap == 1.0 and column(shown(state, node), "q") == {"b": "1", "all others": "0"}
    # If rounding rejected it all the same, the residual would be empty.
    story = run(fixed_draft(Q), fixed_target(P))
    forced = first(story, "rejected")
    forced.overlap = 1.0
    assert "residual" not in dict(shown(story, forced)["table"]["columns"])
    assert said(story, sibling_of(story, forced)).endswith("scaled to 1.")


def test_equal_rows_are_always_kept_by_one_rule_and_rarely_by_another() -> None:
    flat = [0.1] * 10
    for node in run(fixed_draft(flat), fixed_target(flat)).nodes:
        assert node.status in ("accepted", "bonus")
    state = run(fixed_draft(flat), fixed_target(flat), rule="deterministic")
    refused = first(state, "rejected")
    final = sibling_of(state, refused)
    assert said(state, refused) == (
        f"The target drew a token itself, and that was “{final.token}”, and the draft token was “{refused.token}”: "
        "rejected. The probability of a match was p = 0.10."
    )
    assert "Σ" not in str(shown(state, refused)["facts"]), "Σ min(p, q) is not what this rule keeps"
    assert (
        said(state, final)
        == f"The token that the target drew itself, in place of “{refused.token}”, which was rejected."
    )


def test_at_temperature_0_the_argmax_decides_and_untempered_numbers_are_shown() -> None:
    state = run(fixed_draft([0.6, 0.4]), fixed_target([0.3, 0.7]), temperature=0.0)
    refused = first(state, "rejected")
    assert said(state, refused) == (
        "Temperature 0: the target's most probable token is “b”; the draft proposed “a”: rejected."
    )
    made = shown(state, refused)
    assert made["scale"] is None and "before temperature 0" in made["table"]["caption"]
    # From log-probabilities in single precision, so the rest is close to 0 but not exactly 0.
    assert column(made, "p").items() >= {"a": "0.300", "b": "0.700"}.items()
    assert column(made, "q").items() >= {"a": "0.600", "b": "0.400"}.items()
    # The tree shows the numbers after the settings, which are 0 and 1.
    assert {r["token"]: (r["p"], r["q"]) for r in made["table"]["rows"][:2]} == {"a": (0, 1), "b": (1, 0)}
    drawn = sibling_of(state, refused)
    assert said(state, drawn) == "The target's most probable token, in place of “a”, which was rejected."

    same = run(fixed_draft([0.4, 0.6]), fixed_target([0.3, 0.7]), temperature=0.0)
    assert said(same, first(same, "accepted")) == (
        "Temperature 0: the target's most probable token is “b”, and the draft proposed the same: kept."
    )
    assert said(same, first(same, "bonus")) == (
        "All 2 draft tokens were kept, so the target adds one more: this is its most probable one."
    )


def test_greedy_and_threshold() -> None:
    greedy = run(fixed_draft(Q), fixed_target(P), rule="greedy")
    assert said(greedy, first(greedy, "rejected", 2)) == (
        "The rule accepts only the target's most probable token, which is “a”; the draft proposed “c”: rejected."
    )
    barred = run(fixed_draft(Q), fixed_target(P), rule="threshold", tau=0.3)
    below = "The target gives it p = 0.25, below the threshold τ = 0.30: rejected."
    assert said(barred, first(barred, "rejected", 2)) == below
    assert shown(barred, first(barred, "rejected"))["scale"] == {
        "from": 0.3, "to": 1.0, "at": pytest.approx(0.25), "label": "Kept if p is at least τ = 0.30; p = 0.25.",
    }  # fmt: skip
    lower = run(fixed_draft(Q), fixed_target(P), rule="threshold", tau=0.2)
    above = "The target gives it p = 0.25, at least the threshold τ = 0.20: kept."
    assert said(lower, first(lower, "accepted", 2)) == above
    again = [n for n in barred.nodes if n.status == "resampled"]
    for node in again:
        refused = sibling_of(barred, node)
        assert said(barred, node).endswith("gave the same token.") == (node.token_id == refused.token_id)
    assert {n.token_id for n in again} >= {0, 2}, "the whole distribution, the refused token too"


def test_bonus_pending_and_ignored() -> None:
    state = run(fixed_draft(P), fixed_target(P), k=1)
    assert said(state, first(state, "bonus")).startswith(
        "The one draft token was kept, so the target adds one more: drawn"
    )
    made = shown(state, first(state, "bonus"))
    assert [kind for kind, _ in made["table"]["columns"]] == ["p"] and not any(
        r.get("draft") for r in made["table"]["rows"]
    )
    alone = run(Copies(0), fixed_target(P), max_tokens=1)
    assert re.fullmatch(
        r"Nothing was drafted in this round: the target drew this one, p = 0\.\d\d\.",
        said(alone, alone.nodes[0]),
    )

    behind = run(fixed_draft(Q), fixed_target(P), k=4)
    ignored = first(behind, "ignored")
    refused = next(n for n in behind.nodes if n.status == "rejected" and n.round == ignored.round)
    assert said(behind, ignored) == f"It follows “{refused.token}”, which was rejected: never tested."
    assert [kind for kind, _ in shown(behind, ignored)["table"]["columns"]] == ["q"]

    cut = run(Copies(2), fixed_target([0, 0, 1.0], stop_ids=frozenset({2})), k=3)
    assert said(cut, first(cut, "ignored")) == "It follows the end of the output: never tested."
    cut.done = None
    assert said(cut, first(cut, "ignored")) == "The round ended before this token: never tested."

    pending = RunState()
    for event in speculative(fixed_draft(Q), fixed_target(P), [0], Settings(temperature=1.0), seed=0):
        pending.apply(event)
        if isinstance(event, DraftToken):
            break
    node = pending.nodes[0]
    assert (
        said(pending, node) == f"Proposed by the draft, not judged yet; the draft gave it q = {Q[node.token_id]:.2f}."
    )


# Servers.


def remote(way: Way, *, known: bool = False, **options: Any) -> RunState:
    """A run whose events are those of a server that judges by its own draws."""
    state = run(fixed_draft(Q), fixed_target(P), **options)
    assert state.started is not None
    state.started = replace(state.started, place="completions", way=way)
    for node in state.nodes:
        node.weighed, node.overlap, node.u = (), None, None
        if not known:
            node.p = node.acceptance_prob = None
    return state


@pytest.mark.parametrize("way", ["prefixes", "generating", "scoring"])
def test_a_draw_by_the_server_is_named_as_one(way: Way) -> None:
    state = remote(way)
    refused = first(state, "rejected")
    final = sibling_of(state, refused)
    assert said(state, refused) == (
        f"The server's own token here was “{final.token}”, and the draft token was “{refused.token}”: rejected."
    )
    assert said(state, first(state, "accepted")) == "The server's own token here was the same: kept."
    assert said(state, final) == f"The server's own token, in place of “{refused.token}”, which was rejected."
    made = shown(state, refused)
    assert dict(made["facts"])["target p(x)"] == "n/a" and dict(made["facts"])["u, drawn"] == "n/a"
    assert made["scale"] is None and "before the sampling settings" in made["table"]["caption"]
    assert column(made, "p")["a"] == "0.400", "of the log-probabilities that it told"


def test_without_probabilities_from_the_server_only_those_of_the_draft_are_shown() -> None:
    state = remote("prefixes")
    refused = first(state, "rejected")
    refused.target_alternatives, refused.target_logprob = (), None
    made = shown(state, refused)
    assert [kind for kind, _ in made["table"]["columns"]] == ["q"] and column(made, "q")["c"] == "0.800"


def test_deciding_scores_of_a_server_are_described_as_those_of_a_local_target() -> None:
    state = run(fixed_draft(Q), fixed_target(P))
    assert state.started is not None
    local = said(state, first(state, "rejected"))
    state.started = replace(state.started, place="completions", way="scoring")
    assert said(state, first(state, "rejected")) == local


# Recordings.


def test_an_older_recording_shows_its_best_tokens_and_no_residual() -> None:
    settings = Settings(temperature=0.9, max_tokens=60)
    events = speculative(toy_draft(), toy_target(), TOKENIZER.encode("the"), settings, seed=1)
    new, old = RunState(), RunState()
    for event in events:
        data = to_json(event)
        new.apply(from_json(data))
        old.apply(from_json({k: v for k, v in data.items() if k not in ("weighed", "overlap")}))
    for then, now in zip(old.nodes, new.nodes, strict=True):
        if then.status == "resampled":
            assert said(old, then).endswith("scaled to 1.")
            continue
        before, after = shown(old, then), shown(new, now)
        assert before["sentence"] == after["sentence"] and before["scale"] == after["scale"]
        assert "residual" not in dict(before["table"]["columns"])
        # A token that only one side lists has n/a for the other side.
        for kind in ("p", "q"):
            if any(k == kind for k, _ in before["table"]["columns"]):
                told, known = column(before, kind), column(after, kind)
                assert all(told[t] in (known[t], "n/a") for t in told.keys() & known.keys() - {"all others"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"u": 0.01}, "The target rejected it. The acceptance probability was 0.31."),
        ({"u": None}, "The target rejected it. The acceptance probability was 0.31."),
        ({"p": None}, "The target rejected it. The acceptance probability was 0.31."),
        ({"q": None, "acceptance_prob": None}, "The target rejected it."),
    ],
)
def test_a_contradictory_event_is_not_explained(change: dict[str, Any], words: str) -> None:
    state = run(fixed_draft(Q), fixed_target(P))
    node = first(state, "rejected", 2)
    for name, value in change.items():
        setattr(node, name, value)
    assert said(state, node) == words


def replace_node(node: Node, **changes: Any) -> Node:
    for name, value in changes.items():
        setattr(node, name, value)
    return node


def said_of(node: Node) -> str:
    state = run(Copies(2), fixed_target(P))
    state.nodes[node.id] = node
    return said(state, node)


@pytest.mark.parametrize("given", [{}, {"rule": 5, "temperature": "hot", "tau": None}, {"rule": "later"}])
def test_settings_of_another_version_break_nothing(given: dict[str, Any]) -> None:
    state = run(fixed_draft(Q), fixed_target(P), k=4)
    assert state.started is not None
    state.started = replace(state.started, settings=given)
    for node in state.nodes:
        assert said(state, node)
    assert said(state, first(state, "rejected", 2)) == "The target rejected it. The acceptance probability was 0.31."
    state.started = None
    assert said(state, first(state, "rejected", 2)) == "The target rejected it. The acceptance probability was 0.31."


def test_hostile_tokens_are_cut_and_visible() -> None:
    story = Story().round(["<script>" + "x" * 10_000, "\u202eb\x00"], 0, Special("<|im_end|>"))
    for node in story.state().nodes:
        made = shown(story.state(), node)
        text = json.dumps(made, ensure_ascii=False)
        assert len(text) < 3_000 and "\u202e" not in text and "\\u0000" not in text
    assert shown(story.state(), story.state().nodes[1])["token"] == "⟨U+202E⟩b␀"


# Any run.

DRAFTS: dict[str, Callable[[], Drafter]] = {
    "model": toy_draft,
    "pruned": pruned_draft,
    "ngram": lambda: NgramDrafter(shortest=1),
    "combined": combined_draft,
    "itself": lambda: toy_draft(noise=0.0),
}


def numbers(text: str, before: str) -> list[str]:
    return re.findall(re.escape(before) + r"(\d+(?:\.\d+)?(?:e-\d+)?)", text)


def close(text: str, value: float | None) -> bool:
    """Whether a number was rounded to this text."""
    assert value is not None
    digits, _, power = text.partition("e")
    step = 10.0 ** -len(digits.partition(".")[2]) * 10.0 ** int(power or 0)
    return abs(float(text) - value) <= 0.5 * step * (1 + 1e-9)


@hypothesis_settings(max_examples=40, deadline=None)
@given(
    draft=st.sampled_from(sorted(DRAFTS)),
    rule=st.sampled_from(RULES),
    sampling=st.sampled_from(
        [(0.0, 0, 1.0), (0.4, 0, 1.0), (1.0, 0, 1.0), (1.0, 1, 1.0), (1.2, 6, 1.0), (1.5, 0, 0.6)]
    ),
    tau=st.sampled_from([0.05, 0.3, 0.9]),
    seed=st.integers(0, 10_000),
)
def test_every_sentence_is_true(
    draft: str, rule: str, sampling: tuple[float, int, float], tau: float, seed: int
) -> None:
    temperature, top_k, top_p = sampling
    options = {"rule": rule, "tau": tau, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    context = TOKENIZER.encode("the draft the draft the")
    state = run(DRAFTS[draft](), toy_target(), seed, context, k=4, max_tokens=40, **options)
    for node in state.nodes:
        made = shown(state, node)
        text, sibling = made["sentence"], state.nodes[node.sibling] if node.sibling is not None else None
        assert made["status"] == node.status and made["meaning"] == LOOKS[node.status].meaning
        decided = sibling if node.status == "resampled" else node
        assert decided is not None
        check_sentence(text, node, decided, tau)
        check_scale(made["scale"], node)
        check_table(state, node, decided, [*context], Sampling(*sampling), rule)


def check_sentence(text: str, node: Node, decided: Node, tau: float) -> None:
    kept = node.status == "accepted"
    if node.status in ("accepted", "rejected"):
        assert all(close(n, node.p) for n in numbers(text, " p = ") + numbers(text, "(p = "))
        assert all(close(n, node.q) for n in numbers(text, " q = "))
        assert ("rejected" in text) == (not kept)
    for said_bar in numbers(text, "p/q = "):
        [drawn] = numbers(text, "the number drawn was ")
        assert close(said_bar, node.acceptance_prob) and close(drawn, node.u)
        assert node.u is not None and node.acceptance_prob is not None
        assert (node.u < node.acceptance_prob) == kept == (float(drawn) < float(said_bar))
    if "gave it more than the target does" in text:
        assert node.q is not None and node.p is not None and node.q > node.p
        assert float(numbers(text, "q = ")[0]) > float(numbers(text, ", p = ")[0])
    if "at least as much as the draft" in text:
        assert node.q is not None and node.p is not None and node.p >= node.q and kept
    if "probability 0" in text:
        assert node.p == 0 and not kept
    if "copied" in text:
        assert node.q == 1 and node.draft_logprob is None
    for bar in numbers(text, "τ = "):
        assert close(bar, tau) and node.p is not None and (node.p >= tau) == kept
    if "most probable" in text and node.status in ("rejected", "resampled"):
        best = decided.target_alternatives[0].token
        assert ("“" + best.replace(" ", "·") + "”" in text) or node.status == "resampled" and node.token == best


def check_scale(scale: dict[str, Any] | None, node: Node) -> None:
    if scale is None or scale["at"] is None:
        return
    inside = scale["from"] <= scale["at"] < scale["to"] or scale["from"] <= scale["at"] == scale["to"] == 1
    assert inside == (node.status == "accepted")


def check_table(state: RunState, node: Node, decided: Node, context: list[int], sampling: Sampling, rule: str) -> None:
    """Against the whole rows, which nothing records."""
    made = table(state, node)
    assert 0 < len(made.entries) <= 10 and len({e.token_id for e in made.entries}) == len(made.entries)
    every = (*made.entries, made.rest)
    assert all(s is None or 0 <= s <= 1 for e in every for s in (e.p, e.q, e.residual, e.raw_p, e.raw_q))
    assert {made.draft_id, made.final_id} - {None} <= {e.token_id for e in made.entries}
    for name in ("p", "q", "residual", "raw_p", "raw_q"):
        shares = [getattr(e, name) for e in every]
        if None not in shares:
            assert sum(shares) == pytest.approx(1, abs=1e-9), name
            # The shown probabilities never add up to more than 1.
            assert sum(shares[:-1]) <= 1 + 1e-9
    if decided.status in ("pending", "ignored"):
        return
    ids = [*context, *(state.nodes[i].token_id for i in state.text[: decided.index])]
    p = to_probs(ToyScorer(TOKENIZER).score(ids, 1)[0], sampling)
    assert all(e.p == pytest.approx(p[e.token_id], abs=1e-12) for e in made.entries if e.p is not None)
    if rule != "probabilistic" or decided.status != "rejected" or sampling.temperature == 0:
        assert all(e.residual is None for e in every)
        return
    q = np.zeros(len(p))
    for candidate in decided.weighed:
        q[candidate.token_id] = candidate.q or 0.0
    left = residual(Row(p), Row(q)).probs
    if q.sum() > 1 - 1e-12:  # all of q is known here
        assert all(e.residual == pytest.approx(left[e.token_id], abs=1e-9) for e in made.entries)
        assert made.rest.residual == pytest.approx(1 - left[[e.token_id for e in made.entries]].sum(), abs=1e-9)


@hypothesis_settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=4))
@example([0.3, 0.30000000000000004])
@example([1e-300, 0.0])
@example([0.9999999999999999, 1.0])
@example([5e-324, 1e-5])
def test_unequal_chances_never_look_equal_nor_like_0_or_1(values: list[float]) -> None:
    texts = chances(*values)
    for value, text in zip(values, texts, strict=True):
        assert close(text, value) or float(text) == value
        assert (float(text) in (0, 1)) == (value in (0, 1))
    for (a, x), (b, y) in pairwise(sorted(zip(values, texts, strict=True))):
        assert (x == y) == (a == b) and float(x) <= float(y)


def test_chances_are_short_where_that_is_enough() -> None:
    assert chances(0.62, 0.19) == ("0.62", "0.19")
    assert chances(0.312, 0.314) == ("0.312", "0.314")
    assert chances(0.0003, 0.5, 0, 1) == ("0.0003", "0.50", "0", "1")


# Messages.


def test_a_detail_is_sent_once_and_again_when_it_changes() -> None:
    view, state = InspectorView(), RunState()
    events = list(speculative(fixed_draft(Q), fixed_target(P), [0], Settings(temperature=1.0, max_tokens=9), seed=0))
    until = next(i for i, e in enumerate(events) if isinstance(e, DraftToken)) + 1
    state.apply_all(events[:until])
    assert view.delta(state, "r", 0, None) == {"run": "r", "from": 0, "to": 0, "items": []}
    [waiting] = view.delta(state, "r", 0, 0)["items"]
    assert waiting["status"] == "pending"
    assert view.delta(state, "r", 1, 0) == {"run": "r", "from": 1, "to": 1, "items": []}
    assert view.delta(state, "r", 0, 0)["items"] == [waiting], "a browser that lacks it gets it again"
    state.apply_all(events[until:])
    judged = view.delta(state, "r", 1, 0)
    assert judged["to"] == 2 and judged["items"][0]["status"] != "pending"
    other = view.delta(state, "r", 2, 1)
    assert other["to"] == 3 and other["items"][0]["id"] == 1
    assert view.delta(state, "r", 3, None) == {"run": "r", "from": 3, "to": 4, "items": []}
    assert view.delta(state, "second", 0, None)["to"] == 0


def test_a_poll_makes_a_detail_only_when_it_may_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(state: RunState, i: int) -> dict[str, Any]:
        made.append(i)
        return detail(state, i)

    monkeypatch.setattr(inspector, "detail", counted)
    view, state, have = InspectorView(), RunState(), 0
    settings = Settings(temperature=1.0, max_tokens=200)
    for event in speculative(fixed_draft(Q), fixed_target(P), [0], settings, seed=0):
        state.apply(event)
        if state.nodes:
            have = view.delta(state, "r", have, 0)["to"]
            # The last detail sent is always the present one.
            assert view.delta(state, "r", 0, 0)["items"] == [detail(state, 0)]
    assert len(state.text) == 200 and len(made) <= 4


def test_the_buttons_lead_along_the_output() -> None:
    state = run(fixed_draft(Q), fixed_target(P))
    for at, i in enumerate(state.text):
        go = detail(state, i)["go"]
        assert go["previous"] == (state.text[at - 1] if at else None)
        assert go["next"] == (state.text[at + 1] if at + 1 < len(state.text) else None)
    refused = first(state, "rejected")
    assert detail(state, refused.id)["go"]["to_sibling"] == "The token drawn in its place"
    assert state.text[refused.index] == refused.sibling


def test_judgements_survive_the_trace() -> None:
    def through_json(event: Event) -> Event:
        return from_json(json.loads(json.dumps(to_json(event), allow_nan=False)))

    settings = Settings(temperature=0.8, max_tokens=40)
    prompt = TOKENIZER.encode("the")
    events = list(speculative(toy_draft(), toy_target(), prompt, settings, seed=2))
    assert any(isinstance(e, VerifyResult) and e.weighed for e in events)
    live, replayed = RunState().apply_all(events), RunState().apply_all(map(through_json, events))
    assert [detail(live, n.id) for n in live.nodes] == [detail(replayed, n.id) for n in replayed.nodes]
