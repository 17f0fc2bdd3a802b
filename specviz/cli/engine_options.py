"""What runs the models in this process: options that several commands share."""

from __future__ import annotations

import argparse

from specviz.core.settings import ENGINES

#: Their fields of `Settings`.
ENGINE_FIELDS = ("engine", "context")


def add_engine_options(p: argparse.ArgumentParser) -> None:
    """Add --engine and --context."""
    p.add_argument(
        "--engine",
        choices=ENGINES,
        help="what runs models in this process: llama reads GGUF files, mlx folders of MLX and GGUF files of the Llama "
        "family (default: auto, llama for GGUF files where MLX has no GPU)",
    )
    p.add_argument(
        "--context",
        type=int,
        metavar="TOKENS",
        help="of prompt and output that llama makes room for; the memory for it is taken at once (default: the "
        "model's own, at most 8192)",
    )
