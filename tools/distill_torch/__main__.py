"""The recipe of `python -m specviz distill` with PyTorch: for a CUDA GPU, or a CPU with bfloat16 matrix units.

    python tools/distill_torch write --target FOLDER --work WORK --seed 1 --minutes 30
    python tools/distill_torch train --target FOLDER --work WORK --student 4L --layers 0,1,2,29 --minutes 60
    python tools/distill_torch export --target FOLDER --work WORK --student 4L --out FOLDER
    python -m specviz acceptance --draft model:FOLDER --json > acceptance.json, and `export` again with --acceptance

FOLDER of the target is what `python -m specviz models path smollm2-135m` prints. `write` and `train` may run at the
same time, several of each; each may be killed and started again. Texts are kept in the shards of
`specviz.distill.samples`; the folder of the draft is written by `specviz.distill.folder`.

Training has a constant learning rate, so that it can always go on; `train --decay-minutes` goes from the last
checkpoint down to a rate of nothing, beside it, which is what gets exported.

Needs torch, transformers and safetensors; only `export` needs MLX.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))


def _write(options: argparse.Namespace) -> None:
    from writing import write

    write(options)


def _train(options: argparse.Namespace) -> None:
    from training import train

    train(options)


def _export(options: argparse.Namespace) -> None:
    from export import export

    export(options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(required=True)
    w = jobs.add_parser("write")
    w.set_defaults(run=_write)
    w.add_argument("--batch", type=int, default=192, help="texts that are written at once")
    w.add_argument("--limit", type=int, default=192, help="tokens of an answer")
    t = jobs.add_parser("train")
    t.set_defaults(run=_train)
    t.add_argument("--layers", default="0,1,2,29")
    t.add_argument("--ffn", type=int, default=1536)
    t.add_argument("--vocab", type=int, default=12288)
    t.add_argument("--padded", type=int, default=4096, help="positions of a batch")
    t.add_argument("--rows", type=int, default=256, help="rows of logits at once")
    t.add_argument("--lr", type=float, default=1e-3)
    t.add_argument("--move", type=float, default=2e6, help="tokens over which the loss moves from KL to acceptance")
    t.add_argument("--decay-minutes", type=float, default=0.0)
    t.add_argument("--every", type=int, default=50, help="steps between two lines")
    t.add_argument("--compile", action="store_true", help="a third faster on a CPU with a C++ compiler, after minutes")
    e = jobs.add_parser("export")
    e.set_defaults(run=_export)
    e.add_argument("--out", type=Path, required=True)
    e.add_argument("--name", default="smollm2-135m", help="of the target")
    e.add_argument("--bits", type=int, default=6)
    e.add_argument(
        "--acceptance", type=Path, metavar="FILE", help="for the model card: what `specviz acceptance --json` printed"
    )
    e.add_argument("--machine", default="2 CPU cores with bfloat16 matrix units", help="what it ran on, for the card")
    for job in (w, t, e):
        job.add_argument("--target", type=Path, required=True)
    for job in (w, t):
        job.add_argument("--seed", type=int, default=0)
        job.add_argument("--minutes", type=float, default=30)
    for job in (t, e):
        job.add_argument("--student", default="student")
    for job in (w, t, e):
        job.add_argument("--work", type=Path, required=True)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
