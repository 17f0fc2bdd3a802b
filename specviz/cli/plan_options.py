"""What to measure or predict: the options that `bench` and `predict` share, and the plan that follows from them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from specviz.bench.sweep.plan import SweepPlan
from specviz.bench.sweep.sweep import baselines_of
from specviz.cli.engine_options import ENGINE_FIELDS, add_engine_options
from specviz.core.names import draft_name
from specviz.core.settings import RULES, Settings
from specviz.setup import validation

KS = (1, 2, 4, 8)


def add_plan_options(p: argparse.ArgumentParser) -> None:
    """Add the options whose values are combined to cells."""
    p.add_argument("--draft", type=draft_name, nargs="+", metavar="NAME", help="drafts; none is plain decoding")
    p.add_argument("--k", type=int, nargs="+", metavar="K", help="tokens drafted a round (default: 1 2 4 8)")
    p.add_argument("--temperature", type=float, nargs="+", metavar="T", help="0 to 2 (default: 0)")
    p.add_argument("--rule", choices=RULES, nargs="+", help="acceptance rules (default: probabilistic)")


def add_sampling_options(p: argparse.ArgumentParser) -> None:
    """Add the options that are the same for every cell."""
    p.add_argument("--max-tokens", type=int, dest="max_tokens", metavar="N", help="of an answer (default: 128)")
    p.add_argument("--top-k", type=int, dest="top_k", help="keep only this many tokens; 0 is off")
    p.add_argument("--top-p", type=float, dest="top_p", help="keep only the nucleus of this mass; 1 is off")
    p.add_argument("--tau", type=float, help="the bar of the rule threshold (default: 0.3)")
    p.add_argument(
        "--min-confidence", type=float, dest="min_confidence", metavar="P",
        help="where drafts end early (default: each draft's own)",
    )  # fmt: skip
    p.add_argument("--seed", type=int, help="of all random draws (default: 0)")
    add_engine_options(p)


#: Fields of `Settings` that either command may have an option for.
_FIELDS = (
    "target", "max_tokens", "top_k", "top_p", "tau", "seed", "tokenizer", "verification", "simulated_rtt_ms",
    "simulated_jitter_ms", *ENGINE_FIELDS,
)  # fmt: skip


def settings_of(options: argparse.Namespace, draft: str, variables: Mapping[str, str]) -> Settings:
    """The settings from command line, environment and defaults, with one draft.

    Raises:
        SettingsError: a value breaks its rule.
    """
    given = {name: getattr(options, name, None) for name in _FIELDS}
    return Settings.resolve(given | {"draft": draft}, environment=variables)


def plan_of(options: argparse.Namespace, variables: Mapping[str, str], repeats: int = 1, warm_up: int = 8) -> SweepPlan:
    """The plan that the options describe; its names are checked.

    Raises:
        SettingsError: a value breaks its rule.
        UnknownModelError, PairingError: see `specviz.setup.validation.check`.
    """
    settings = settings_of(options, options.draft[0], variables)
    plan = SweepPlan(
        settings,
        drafts=tuple(options.draft),
        ks=tuple(options.k or KS),
        temperatures=tuple(options.temperature or (settings.temperature,)),
        rules=tuple(options.rule or (settings.rule,)),
        baselines=baselines_of(settings),
        suite=str(options.suite),
        repeats=repeats,
        warm_up=warm_up,
        min_confidence=options.min_confidence,
    )
    for draft in plan.drafts:
        validation.check(settings_of(options, draft, variables), variables)
    return plan
