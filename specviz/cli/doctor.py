"""`specviz doctor`: what a completions server supports, and which guarantee follows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from specviz.cli.terminal import ProgressLine, columns, print_warning, safe, stop_on_interrupt, write_json
from specviz.core.errors import DownloadError, StoppedError
from specviz.core.names import draft_name
from specviz.core.process import INTERRUPTED
from specviz.core.settings import RULES, VERIFICATIONS, Settings
from specviz.core.wait import Wait
from specviz.setup.completions import warning
from specviz.setup.diagnosis import Diagnosis, VerificationPlan, diagnose
from specviz.setup.environment import environment
from specviz.views import trial

_HELP = """\
Test a completions target: what its server supports, how a round would be verified at temperatures 0, 0.7 and 1, and
how exact that is. It costs a few calls of one token each. The key is read from TARGET_API_KEY only.

  python -m specviz doctor --target openai:MODEL --base-url http://127.0.0.1:8000/v1
  python -m specviz doctor --target openai:MODEL --draft model:NAME --json
"""
_FIELDS = ("target", "draft", "tokenizer", "rule", "verification", "top_k", "top_p")


def add_doctor(commands: Any) -> None:
    """Register the command."""
    p: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="test what a completions server supports",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--target", metavar="NAME", help="openai:MODEL (default: the model in TARGET_MODEL)")
    p.add_argument("--base-url", dest="base_url", metavar="URL", help="address of its API (default: TARGET_BASE_URL)")
    p.add_argument(
        "--draft", type=draft_name, metavar="NAME", help="draft model whose tokenizer is used if none is named"
    )
    p.add_argument("--tokenizer", metavar="NAME", help="a known model, a folder or a Hugging Face repository")
    p.add_argument("--rule", choices=RULES, help="acceptance rule to plan for (default: probabilistic)")
    p.add_argument(
        "--verification", choices=VERIFICATIONS, help="way to verify to plan for (default: auto, the best exact one)"
    )
    p.add_argument("--top-k", type=int, dest="top_k", help="top-k to plan for; 0 is off")
    p.add_argument("--top-p", type=float, dest="top_p", help="top-p to plan for; 1 is off")
    p.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    p.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    variables = {"SPECVIZ_TARGET": "openai", **environment()}
    if options.base_url is not None:
        # Not into the settings: it may contain a password, and settings contain no secrets.
        variables["TARGET_BASE_URL"] = options.base_url
    given = {name: getattr(options, name) for name in _FIELDS}
    settings = Settings.resolve(given, environment=variables)
    print_warning(warning(settings, variables))
    progress = ProgressLine()
    with stop_on_interrupt("Stopping after this call. Ctrl-C once more ends at once.") as stopping:
        try:
            found = diagnose(settings, variables, None, Wait(progress, stopping.is_set))
        except (DownloadError, StoppedError):
            if stopping.is_set():
                return INTERRUPTED
            raise
        finally:
            progress.clear()
    if options.json:
        write_json(found.to_json())
    else:
        print(report(found))
    return 0


def report(found: Diagnosis) -> str:
    """The findings as text: a table, the plans with their reasons, what was tested."""
    rows = [*trial.findings(found.findings), *_more(found)]
    width = max(len(name) for name, _ in rows)
    lines = [f"{found.target} at {found.address}", ""]
    lines += [f"  {name.ljust(width)}  {value}" for name, value in rows]
    lines += ["", columns([("TEMPERATURE", "WAY", "GUARANTEE"), *map(_row, found.plans)])]
    lines += ["", "Why:", *_reasons(found.plans), ""]
    lines += ["What was tested:", *(f"  {note}" for note in trial.notes(found.findings))]
    return safe("\n".join(lines))


def _more(found: Diagnosis) -> list[tuple[str, str]]:
    whose = "the target's own" if found.own else "the draft's, as a substitute"
    top_k = {True: "applied", False: "not applied", None: "not tested, or not visible"}
    return [
        ("Tokenizer", f"{found.tokenizer} ({whose})"),
        ("Same tokens", "yes, as far as tested" if found.findings.same_tokens else "no"),
        ("Top-k", top_k[found.findings.takes_top_k]),
        ("Calls made", str(found.findings.calls)),
    ]


def _row(plan: VerificationPlan) -> tuple[str, str, str]:
    return f"{plan.temperature:g}", plan.way or "none", plan.guarantee.kind if plan.guarantee else "none"


def _reasons(plans: Sequence[VerificationPlan]) -> list[str]:
    """Each reason once, with the temperatures that it holds for."""
    at: dict[str, list[str]] = {}
    for plan in plans:
        at.setdefault(plan.reason, []).append(f"{plan.temperature:g}")
    return [f"  {', '.join(temperatures)}: {reason}" for reason, temperatures in at.items()]
