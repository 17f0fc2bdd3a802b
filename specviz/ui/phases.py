"""One line that says where a run stands, in words, with a bar where there is something to wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from specviz.events import Error, FinishReason
from specviz.ui import page
from specviz.views import pacing, summary, words
from specviz.views.pacing import Standing

if TYPE_CHECKING:
    from specviz.ports import Progress
    from specviz.run import Run


#: What ends the sentence "There is no text: …", with what may help.
_EMPTY: dict[FinishReason, str] = {
    "stop_token": " at once. Another prompt, or the raw prompt switched the other way, may get more out of it.",
    "stop_string": " before any other text.",
    "max_tokens": " by tokens that are no text. More max tokens may get further.",
    "context_full": ". A shorter prompt leaves room for an answer.",
    "stopped": ".",
}


def show_header(run: Run) -> None:
    """The guarantee and its reason, the rule in force, and who drafts for whom."""
    colour, name = summary.badge(run.state.guarantee)
    guarantee = run.state.guarantee
    rule = summary.rule_in_force(run.settings, run.state)
    named = run.state.started or run.settings
    facts = f"rule **{words.escape_markdown(rule)}**, temperature **{run.settings.temperature:g}**"
    if run.state.started and (way := words.WAYS[run.state.started.way]):
        facts += f" · **{words.escape_markdown(way)}**"
    pair = f"target **{words.escape_markdown(named.target)}**, draft **{words.escape_markdown(named.draft)}**"
    reason = words.escape_markdown(guarantee.reason) if guarantee else "The guarantee is known once the run has begun."
    network = summary.network(run.settings, run.state)
    simulated = f":orange-badge[{words.escape_markdown(network)}] " if network else ""
    st.markdown(
        f":{colour}-badge[{words.escape_markdown(name)}] {reason}  \n{simulated}:small[:gray[{facts} · {pair}]]"
    )


def show_phase(run: Run) -> None:
    """Where the run stands: waiting, working, ended, failed."""
    state = run.state
    if state.error is not None:
        _failed(state.error, bool(state.text))
    elif state.done is not None:
        _finished(run)
    elif run.phase == "queued":
        ahead = run.queue_position
        st.info(
            f"Waiting for {ahead} other {'run' if ahead == 1 else 'runs'}. The models serve one run at a time."
            if ahead
            else "Waiting for the models.",
            icon=":material/hourglass_top:",
        )
    elif run.phase in ("running", "finished"):
        _going_on(run)
    elif run.progress is not None:
        show_progress(run.progress)
    else:
        st.info("Getting ready.", icon=":material/hourglass_top:")


def _going_on(run: Run) -> None:
    """Of a run that is not shown to its end, whatever the models are at."""
    tokens, budget = len(run.state.text), run.settings.max_tokens
    said = pacing.sentence(
        Standing(
            len(run.state.rounds), run.rounds_computed, tokens, budget,
            paused=run.pace.paused, finished=run.phase == "finished", full=run.full,
            rounds_per_s=run.pace.rounds_per_s,
        )
    )  # fmt: skip
    # The same bar either way: a page that jumps at each pause cannot be followed.
    st.progress(min(1.0, tokens / budget), f":material/pause_circle: {said}" if run.pace.paused else said)
    if run.progress is not None:
        show_progress(run.progress)


def show_progress(progress: Progress) -> None:
    """What is being waited for, and how far it has come."""
    what = words.escape_markdown(progress.what)
    if progress.total:
        share = min(1.0, progress.done / progress.total)
        if progress.unit == "bytes":
            amount = f": {words.size(progress.done)} of {words.size(progress.total)}"
        else:
            # "1 of 2 steps" would tell a person nothing that the bar does not.
            amount = "" if progress.unit == "steps" else f": {progress.done:,} of {progress.total:,} {progress.unit}"
        st.progress(share, what + amount)
    elif progress.done:
        amount = words.size(progress.done) if progress.unit == "bytes" else f"{progress.done:,} {progress.unit}"
        st.info(f"{what}: {amount}", icon=":material/hourglass_top:")
    else:
        st.info(what, icon=":material/hourglass_top:")


def _failed(error: Error, something_came: bool) -> None:
    kept = "\n\nWhat was written until then is below." if something_came else ""
    page.show_error(words.complaint(error) + kept)


def _finished(run: Run) -> None:
    done = run.state.done
    assert done is not None
    reason = words.FINISHES[done.finish_reason]
    if done.finish_reason == "stop_string" and done.stop_string:
        reason = f"the stop string “{words.escape_markdown(words.label(done.stop_string, 40))}” appeared"
    if done.finish_reason == "stopped":
        st.warning(f"Stopped by you after {done.total_tokens:,} tokens.", icon=":material/stop_circle:")
    elif done.total_tokens == 0 or not done.generated_text:
        st.warning(f"There is no text: {reason}{_EMPTY[done.finish_reason]}", icon=":material/text_fields:")
    else:
        seconds = done.total.wall_ms / 1000
        st.success(
            f"Finished: {reason}. {done.total_tokens:,} tokens in {done.total_rounds:,} rounds, {seconds:,.1f} s.",
            icon=":material/check_circle:",
        )
