"""`specviz doctor`: what the server of a remote target can do, and what may be promised with it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from specviz import catalog
from specviz.cli.terminal import INTERRUPTED, ProgressLine, columns, safe, stop_on_interrupt, write_json
from specviz.environment import environment
from specviz.errors import DownloadError, IncapableError, StoppedError
from specviz.events import Guarantee, Way
from specviz.models.remote_tokenizer import RemoteTokenizer
from specviz.settings import RULES, VERIFICATIONS, Rule, Sampling, Settings, draft_name
from specviz.targets.remote.choice import choose
from specviz.targets.remote.values import Findings
from specviz.views import trial

_HELP = """\
Try a remote target out: what its server takes and gives, which way a round would be verified at temperatures 0, 0.7
and 1, and how exact that is. It costs a few calls of one token each. The key comes from TARGET_API_KEY alone.

  python -m specviz doctor --target openai:MODEL --base-url http://127.0.0.1:8000/v1
  python -m specviz doctor --target openai:MODEL --draft model:NAME --json
"""
TEMPERATURES = (0.0, 0.7, 1.0)
_FIELDS = ("target", "draft", "tokenizer", "rule", "verification", "top_k", "top_p")


@dataclass(frozen=True, slots=True)
class Plan:
    """How a round would be verified at a temperature; no way where there is none, and why.

    Attributes:
        reason: of the guarantee, or of there being none.
    """

    temperature: float
    way: Way | None
    guarantee: Guarantee | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Field by field."""
        kind = self.guarantee.kind if self.guarantee else None
        return {"temperature": self.temperature, "way": self.way, "guarantee": kind, "reason": self.reason}


def add_doctor(commands: Any) -> None:
    """Register the command."""
    p: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="find out what a remote target's server can do",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--target", metavar="NAME", help="openai:MODEL (default: the model in TARGET_MODEL)")
    p.add_argument("--base-url", dest="base_url", metavar="URL", help="of its API (default: TARGET_BASE_URL)")
    p.add_argument("--draft", type=draft_name, metavar="NAME", help="whose tokenizer stands in where none is named")
    p.add_argument("--tokenizer", metavar="NAME", help="a known model, a folder or a Hugging Face repository")
    p.add_argument("--rule", choices=RULES, help="acceptance rule to plan for (default: probabilistic)")
    p.add_argument("--verification", choices=VERIFICATIONS, help="way to plan for (default: auto, the best exact one)")
    p.add_argument("--top-k", type=int, dest="top_k", help="top-k to plan for; 0 is off")
    p.add_argument("--top-p", type=float, dest="top_p", help="top-p to plan for; 1 is off")
    p.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    p.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    variables = {"SPECVIZ_TARGET": "openai", **environment()}
    if options.base_url is not None:
        # Not into the settings: it may hold a password, and they never do.
        variables["TARGET_BASE_URL"] = options.base_url
    given = {name: getattr(options, name) for name in _FIELDS}
    settings = Settings.resolve(given, environment=variables)
    progress = ProgressLine()
    with stop_on_interrupt("Stopping after this call. Ctrl-C once more ends at once.") as stopping:
        try:
            findings, tokens, shown = catalog.probe_target(settings, variables, None, progress, stopping.is_set)
        except (DownloadError, StoppedError):
            if stopping.is_set():
                return INTERRUPTED
            raise
        finally:
            progress.clear()
    planned = plans(findings, settings, tokens.vocab_size)
    if options.json:
        write_json(summary(settings, findings, tokens, shown, planned))
    else:
        print(report(settings, findings, tokens, shown, planned))
    return 0


def plans(findings: Findings, settings: Settings, vocab_size: int) -> list[Plan]:
    """The way that would be taken at each temperature, other settings as they are."""
    return [_plan(findings, settings, vocab_size, temperature) for temperature in TEMPERATURES]


def _plan(findings: Findings, settings: Settings, vocab_size: int, temperature: float) -> Plan:
    sampling = Sampling(temperature, settings.top_k, settings.top_p)
    try:
        way, guarantee = choose(
            findings, settings.verification, sampling, Rule(settings.rule, settings.tau), vocab_size
        )
    except IncapableError as exc:
        return Plan(temperature, None, None, str(exc))
    return Plan(temperature, way, guarantee, guarantee.reason)


def summary(
    settings: Settings, findings: Findings, tokens: RemoteTokenizer, shown: str, planned: Sequence[Plan]
) -> dict[str, Any]:
    """Everything, for a program."""
    found = asdict(findings) | {"notes": list(findings.notes)}
    return {
        "target": settings.target,
        "address": shown,
        "tokenizer": tokens.name,
        "tokenizer_is_the_targets_own": tokens.own,
        "ways": list(findings.ways),
        "plans": [plan.to_json() for plan in planned],
        **found,
    }


def report(settings: Settings, findings: Findings, tokens: RemoteTokenizer, shown: str, planned: Sequence[Plan]) -> str:
    """The same for a person."""
    rows = [*trial.findings(findings), *_more(findings, tokens)]
    width = max(len(name) for name, _ in rows)
    lines = [f"{settings.target} at {shown}", ""]
    lines += [f"  {name.ljust(width)}  {value}" for name, value in rows]
    lines += ["", columns([("TEMPERATURE", "WAY", "GUARANTEE"), *map(_row, planned)])]
    lines += ["", "Why:", *_reasons(planned), "", "What was tried:", *(f"  {note}" for note in trial.notes(findings))]
    return safe("\n".join(lines))


def _more(findings: Findings, tokens: RemoteTokenizer) -> list[tuple[str, str]]:
    whose = "the target's own" if tokens.own else "the draft's, which stands in"
    heeded = {True: "done as it says", False: "not done as it says", None: "not tried, or not to be seen"}
    return [
        ("Tokenizer", f"{tokens.name} ({whose})"),
        ("Same tokens", "yes, as far as was tried" if findings.same_tokens else "no"),
        ("Top-k", heeded[findings.takes_top_k]),
        ("Calls made", str(findings.calls)),
    ]


def _row(plan: Plan) -> tuple[str, str, str]:
    # The bound itself is found as a run goes on.
    return f"{plan.temperature:g}", plan.way or "none", plan.guarantee.kind if plan.guarantee else "none"


def _reasons(planned: Sequence[Plan]) -> list[str]:
    """Each reason once, with the temperatures that it holds for."""
    at: dict[str, list[str]] = {}
    for plan in planned:
        at.setdefault(plan.reason, []).append(f"{plan.temperature:g}")
    return [f"  {', '.join(temperatures)}: {reason}" for reason, temperatures in at.items()]
