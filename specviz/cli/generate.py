"""`specviz generate`: one run in the terminal."""

from __future__ import annotations

import argparse
import re
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, get_args

from specviz.cli.engine_options import ENGINE_FIELDS, add_engine_options
from specviz.cli.terminal import (
    ProgressLine,
    Utf8Stream,
    painted,
    print_error,
    print_warning,
    safe,
    stop_on_interrupt,
    write_json,
)
from specviz.core import session
from specviz.core.baseline import Baselines
from specviz.core.errors import DownloadError, PromptError, SettingsError, StoppedError
from specviz.core.events import Metrics, RunStarted
from specviz.core.names import draft_name
from specviz.core.process import INTERRUPTED
from specviz.core.prompt import refuse_empty
from specviz.core.reading import Wanted, read_stream, read_text, text_of, without_mark
from specviz.core.rounds import Explain
from specviz.core.settings import RULES, VERIFICATIONS, Settings
from specviz.core.wait import Wait
from specviz.record import report
from specviz.record.state import RunState
from specviz.record.trace import TraceWriter
from specviz.setup import validation
from specviz.setup.builder import Builder
from specviz.setup.completions import warning
from specviz.setup.environment import environment, secrets
from specviz.views import words
from specviz.views.speed import speed_word

_HELP = """\
Generate text for one prompt with a draft, and report the speed-up.

Accepted draft tokens are green, resampled ones yellow, bonus tokens blue. --json prints one object instead.
The baseline is measured first: a few dozen tokens of plain decoding by the same target at the same settings.

A remote target is openai:MODEL with --base-url (or TARGET_BASE_URL): any server with an OpenAI-compatible completions
API. What it supports is tested first and decides how a round is verified. Its key is read from TARGET_API_KEY only.
It has two baselines: its own streaming, and one call per token.

--simulated-rtt-ms puts a network in front of a target in this process: every call waits for a round trip, the text
stays the same. It also has two baselines: without the network, and one call per token through it.

Exact output: the rules probabilistic and deterministic, and greedy at temperature 0. The rule threshold is lossy.
Settings come from the command line, then the environment, then .env (see .env.example), then defaults.
"""


def add_generate(commands: Any) -> None:
    """Register the command."""
    p: argparse.ArgumentParser = commands.add_parser(
        "generate",
        help="generate text for one prompt with a draft",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = p.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", help="the prompt; - reads standard input as --prompt-file reads a file")
    source.add_argument(
        "--prompt-file",
        type=Path,
        metavar="FILE",
        help="read the prompt from a text file, in UTF-8 or UTF-16; its byte-order mark and the newline at its end are "
        "left out (to keep a newline, end the file with an empty line)",
    )
    p.add_argument("--target", help="local:NAME, openai:MODEL or toy (default: local:smollm2-135m)")
    p.add_argument(
        "--base-url",
        dest="base_url",
        metavar="URL",
        help="address of a remote target's API, such as http://127.0.0.1:8000/v1 (default: TARGET_BASE_URL)",
    )
    p.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="source of a remote target's tokenizer: a known model, a folder or a Hugging Face repository (default: "
        "the target's own if it is on this machine, else the draft model's)",
    )
    p.add_argument(
        "--verification",
        choices=VERIFICATIONS,
        help="how a remote target verifies a round: scoring the draft in one call, drawing one token after each of its "
        "prefixes, or generating and comparing (default: auto, the best exact way that the server supports)",
    )
    add_engine_options(p)
    p.add_argument(
        "--draft",
        type=draft_name,
        help="ngram, model:NAME, toy or none; ngram+model:NAME copies where the text repeats and lets the model draft "
        "elsewhere (default: auto, the best one for the target)",
    )
    p.add_argument("--k", type=int, metavar="K", help="tokens drafted per round, 1 to 16 (default: 4)")
    p.add_argument("--temperature", type=float, help="0 to 2; 0 is greedy (default: 0)")
    p.add_argument("--top-k", type=int, dest="top_k", help="keep only this many tokens; 0 is off")
    p.add_argument("--top-p", type=float, dest="top_p", help="keep only the nucleus of this mass; 1 is off")
    p.add_argument(
        "--max-tokens",
        type=int,
        dest="max_tokens",
        help="output budget; the context may end a run before (default: 128)",
    )
    p.add_argument("--rule", choices=RULES, help="acceptance rule (default: probabilistic)")
    p.add_argument("--tau", type=float, help="τ of the rule threshold (default: 0.3)")
    p.add_argument("--seed", type=int, help="seed of every random draw (default: 0)")
    p.add_argument("--system", type=without_mark, help="system prompt")
    p.add_argument(
        "--raw",
        action="store_true",
        default=None,
        help="send the prompt without the chat template; special tokens in it, such as <|im_end|>, are read as such",
    )
    p.add_argument(
        "--stop",
        action="append",
        metavar="TEXT",
        help=r"end the output with the token that completes this text; \n, \t, \r, \uXXXX and \\ are a newline, a tab, "
        "a carriage return, a character by its code and a backslash; may be repeated",
    )
    p.add_argument("--ngram-max", type=int, dest="ngram_max", help="longest match of the ngram drafter (default: 4)")
    p.add_argument(
        "--ngram-min",
        type=int,
        dest="ngram_min",
        help="shortest match of the ngram drafter (default: 1; in front of a model at least 2)",
    )
    p.add_argument(
        "--min-confidence",
        type=float,
        dest="min_confidence",
        metavar="P",
        help="end a draft model's block before a token whose estimated chance of being kept is below this; from 0 to "
        "below 1, 0 always drafts K tokens (default: 0.4 for smollm2-draft, 0 for others)",
    )
    p.add_argument(
        "--simulated-rtt-ms",
        type=float,
        dest="simulated_rtt_ms",
        metavar="MS",
        help="simulate a network with this round trip in front of a target in this process; 0 to 2000 (default: 0)",
    )
    p.add_argument(
        "--simulated-jitter-ms",
        type=float,
        dest="simulated_jitter_ms",
        metavar="MS",
        help="largest deviation of a single round trip, drawn uniformly; at most the round trip (default: 0)",
    )
    p.add_argument("--trace", type=Path, metavar="FILE", help="record the run as JSON lines")
    p.add_argument(
        "--explain",
        type=int,
        choices=get_args(Explain),
        default=1,
        help="what a trace holds of each token: 1, its own numbers (default); 2, also entropies and the most probable "
        "tokens of draft and target",
    )
    p.add_argument("--no-baseline", action="store_true", help="skip the baseline; no speed-up is reported")
    p.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    p.set_defaults(run=_run)


_FIELDS = (
    "target", "draft", "k", "temperature", "top_k", "top_p", "max_tokens", "rule", "tau", "seed", "system", "raw",
    "ngram_max", "ngram_min", "min_confidence", "tokenizer", "verification", "simulated_rtt_ms", "simulated_jitter_ms",
    *ENGINE_FIELDS,
)  # fmt: skip


def _run(options: argparse.Namespace) -> int:
    given = {name: getattr(options, name) for name in _FIELDS}
    given["stop"] = tuple(map(_unescaped, options.stop)) if options.stop else None
    variables = environment()
    if options.base_url is not None:
        # Not into the settings: it may contain a password, and settings contain no secrets.
        variables["TARGET_BASE_URL"] = options.base_url
    settings = Settings.resolve(given, environment=variables)
    prompt = _read_prompt(options)
    refuse_empty(prompt)
    validation.check(settings, variables)
    print_warning(warning(settings, variables))
    with ExitStack() as stack:
        stopping = stack.enter_context(stop_on_interrupt("Stopping after this step. Ctrl-C once more ends at once."))
        # Before any work: a file that cannot be written should not cost a run.
        trace = stack.enter_context(TraceWriter(options.trace, settings, secrets(variables))) if options.trace else None
        state = _decode(options, settings, variables, prompt, stopping, trace)
    if state is None:
        return INTERRUPTED
    if options.json:
        write_json(report.summary(state))
    else:
        print()
        print_summary(state)
    if state.error:
        print_error(state.error.message, state.error.remedy)
        return 1
    return INTERRUPTED if stopping.is_set() else 0


def _decode(
    options: argparse.Namespace,
    settings: Settings,
    variables: Mapping[str, str],
    prompt: str,
    stopping: threading.Event,
    trace: TraceWriter | None,
) -> RunState | None:
    """Load, measure the baseline, decode; print the text as it grows, unless JSON is printed.

    Returns:
        The run; None when it was interrupted before the first token.
    """
    progress = ProgressLine()
    wait = Wait(progress, stopping.is_set)
    try:
        pair = Builder(variables).build(settings, wait)
    except (DownloadError, StoppedError):
        if stopping.is_set():
            return None
        raise
    state, printer = RunState(), Printer()
    baselines = None if options.no_baseline else Baselines()
    with closing(pair):
        for event in session.run(pair, prompt, settings, baselines=baselines, explain=options.explain, wait=wait):
            if isinstance(event, RunStarted):
                progress.beside_text()
            if trace:
                trace.write(event)
            state.apply(event)
            if isinstance(event, Metrics) and not options.json:
                printer.show(state)
    if state.started is None:
        progress.beside_text()
        return None
    if not options.json:
        printer.finish()
    return state


_PROMPT = Wanted("a prompt", PromptError, "Give a text file in UTF-8.")


def _read_prompt(options: argparse.Namespace) -> str:
    if options.prompt_file is not None:
        return read_text(options.prompt_file, _PROMPT).removesuffix("\n")
    if options.prompt != "-":
        return without_mark(options.prompt)
    if sys.stdin is None:
        raise PromptError("Standard input is closed.", "Give the prompt with --prompt TEXT or --prompt-file FILE.")
    name = "standard input"
    return text_of(read_stream(sys.stdin.buffer, name, _PROMPT), name, _PROMPT).removesuffix("\n")


#: What is written for a character in --stop.
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.?)", re.DOTALL)


def _unescaped(text: str) -> str:
    """A stop string as it is meant, from one as it is typed."""

    def character(found: re.Match[str]) -> str:
        word = found[1]
        if len(word) == 5:
            return chr(int(word[1:], 16))
        if word not in _ESCAPES:
            raise SettingsError(
                f"The stop string '{text}' has a single backslash " + (f"before '{word}'." if word else "at its end."),
                r"Known are \n, \t, \r, \uXXXX with four hexadecimal digits, and \\ for a backslash.",
            )
        return _ESCAPES[word]

    plain = _ESCAPE.sub(character, text)
    # A character above U+FFFF is written as two escapes. Half of one stays, and is refused with the settings.
    return plain.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="surrogatepass")


class Printer:
    """Prints the output while it is generated, each token in the colour of its status."""

    def __init__(self) -> None:
        self._shown, self._stream = 0, Utf8Stream()

    def show(self, state: RunState) -> None:
        """Print what was emitted since the last call."""
        for node_id in state.text[self._shown :]:
            node = state.nodes[node_id]
            print(painted(safe(self._stream.feed(node.token_bytes)), node.status, sys.stdout), end="", flush=True)
        self._shown = len(state.text)

    def finish(self) -> None:
        """Print the rest of a character that was cut by the end of the output."""
        print(safe(self._stream.finish()), end="", flush=True)


def print_summary(state: RunState) -> None:
    """Print the figures of a run on standard error."""
    data = report.summary(state)

    def figure(value: float | None, form: str) -> str:
        return "n/a" if value is None else format(value, form)

    lines = [
        f"{data['guarantee']}: {data['guarantee_reason']}"
        if data["guarantee"]
        else "no guarantee: nothing was decoded",
        f"rule {data['rule']}, target {data['target']}, draft {data['draft']}, K {data['k']}",
        f"{len(data['token_ids'])} tokens in {data['rounds']} rounds, {_ending(state)}",
        f"acceptance rate {figure(data['acceptance_rate'], '.1%')} "
        f"(accepted {data['accepted']} of {data['tested']} tested, {data['drafted']} drafted)",
        f"accepted per round {figure(data['accepted_per_round'], '.3f')}, "
        f"tokens per round {figure(data['tokens_per_round'], '.3f')}",
        *_engine_lines(data, state),
        *_remote_lines(data, state),
        *_network_lines(data),
        f"{figure(data['tokens_per_second'], '.1f')} tokens/s over {_steady_tokens(state)} tokens, {_compared(data)}",
    ]
    print("\n".join(map(safe, lines)), file=sys.stderr)


def _ending(state: RunState) -> str:
    if state.error:
        return "ended by an error"
    return f"ended by {state.finish_reason}" if state.finish_reason else "not ended"


def _steady_tokens(state: RunState) -> int:
    """Tokens after the first round, which is in no rate."""
    return sum(r.emitted for r in state.rounds[1:])


def _engine_lines(data: dict[str, Any], state: RunState) -> list[str]:
    """What ran the target in this process, and why, where it is not the usual engine."""
    if data["place"] != "here" or not data["model_file"] or state.started is None:
        return []
    note = f". {state.started.engine_note}" if state.started.engine_note else ""
    return [f"engine {data['engine']}, {data['model_file']}, {data['precision']}{note}"]


def _remote_lines(data: dict[str, Any], state: RunState) -> list[str]:
    """How a completions target verified, its requests, and its billed tokens."""
    if data["place"] != "completions":
        return []
    prompt, completion = data["billed_prompt_tokens"], data["billed_completion_tokens"]
    billed = " + ".join(
        f"{what} {'n/a' if count is None else f'{count:,}'}"
        for what, count in (("prompt", prompt), ("completion", completion))
    )
    requests = "n/a" if data["requests"] is None else f"{data['requests']:,}"
    return [f"verified by {', then '.join(state.ways)}, {requests} requests; billed tokens: {billed}"]


def _network_lines(data: dict[str, Any]) -> list[str]:
    """A line that names the simulated network, if there was one."""
    delay = words.network(data["simulated_rtt_ms"] or 0.0, data["simulated_jitter_ms"] or 0.0)
    return [f"simulated network: {delay} before every call"] if delay else []


def _compared(data: dict[str, Any]) -> str:
    """The baseline, or both of them where there is a network, and the speed-up against each."""
    base, kind, per_call = data["baseline_tokens_per_second"], data["baseline"], data["per_call_tokens_per_second"]
    if base is None:
        return "n/a in plain decoding: speed-up n/a"
    speed = _verdict(data["speedup"], kind)
    if kind == "plain decoding":
        return f"{base:.1f} in plain decoding: {speed}"
    if kind == "one call per token":
        return f"{base:.1f} with one call per token: {speed} (its streaming could not be measured)"
    how = "streamed" if kind == "streaming" else f"in {kind}"
    if per_call is None:
        return f"{base:.1f} {how}: {speed}"
    times = f"{data['speedup_per_call']:.2f} x one call per token" if data["speedup_per_call"] else "n/a"
    return f"{base:.1f} {how}: {speed}; {per_call:.1f} with one call per token: {times}"


def _verdict(speedup: float | None, other: str) -> str:
    if speedup is None:
        return "speed-up n/a"
    return f"{speedup:.2f} x" + (f", slower than {other}" if speed_word(speedup) == "slower" else "")
