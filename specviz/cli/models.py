"""`specviz models`: the known models, which of them are on this machine, and what other programs have here."""

from __future__ import annotations

import argparse
from typing import Any

from specviz.cli.terminal import ProgressLine
from specviz.core.errors import UnknownModelError, UnsupportedModelError
from specviz.core.wait import Wait
from specviz.setup.environment import environment
from specviz.setup.weights import engine_wish, fetch_weights, weights_of
from specviz.store.gguf.found import found
from specviz.store.known import KNOWN


def add_models(commands: Any) -> None:
    """Register the command."""
    p: argparse.ArgumentParser = commands.add_parser(
        "models",
        help="list, fetch or locate models",
        description="Models that have a short name, and GGUF models that Ollama, LM Studio, llama.cpp and the Hugging "
        "Face client have put on this machine. Any Hugging Face repository (org/name), GGUF model of one "
        "(org/name:Q4_K_M), folder or .gguf file can be given as a name too.",
    )
    jobs = p.add_subparsers(dest="job", required=True, metavar="JOB")
    jobs.add_parser("list", help="known models and found ones, and whether they are on this machine").set_defaults(
        run=_list
    )
    pull = jobs.add_parser("pull", help="fetch a model, for use without a network")
    pull.add_argument("name", metavar="NAME")
    pull.set_defaults(run=_pull)
    path = jobs.add_parser("path", help="print the folder or file of a model that is on this machine")
    path.add_argument("name", metavar="NAME")
    path.set_defaults(run=_path)


def _list(options: argparse.Namespace) -> int:
    wish = engine_wish(environment())
    rows = [("NAME", "PARAMETERS", "DOWNLOAD", "HERE", "GOOD FOR")]
    for model in KNOWN:
        size = f"{model.parameters / 1e6:,.0f} M" if model.parameters else "n/a"
        try:
            weights = weights_of(model.name, wish)
        except UnsupportedModelError as exc:  # there is no engine for it here
            rows.append((model.name, size, "n/a", "no", exc.message))
            continue
        download, here = f"{weights.download_bytes / 1e6:,.0f} MB", "yes" if weights.path else "no"
        rows.append((model.name, size, download, here, model.good_for))
    for other in found():
        rows.append((other.name, other.summary.size or "n/a", "0 MB", "yes", other.about))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]))
    return 0


def _pull(options: argparse.Namespace) -> int:
    progress = ProgressLine()
    path = fetch_weights(options.name, Wait(progress), engine_wish(environment()))
    progress.clear()
    print(path)
    return 0


def _path(options: argparse.Namespace) -> int:
    path = weights_of(options.name, engine_wish(environment())).path
    if path is None:
        raise UnknownModelError(
            f"{options.name} is not on this machine.", f"Fetch it with: python -m specviz models pull {options.name}"
        )
    print(path)
    return 0
