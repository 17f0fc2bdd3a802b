"""From a trained student to the folder of a draft."""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path

import numpy as np
import torch
from model import Llama, in_halves, names
from specviz.record.provenance import versions

from specviz.core.acceptance import AcceptanceFigure
from specviz.distill.card import Training, describe
from specviz.distill.folder import finish
from specviz.distill.samples import load_shard
from specviz.engines.distilled import DraftVocabulary
from specviz.engines.tokenizer import ModelTokenizer

#: What the model card says; `{...}` are filled in.
COMMANDS = (
    "python tools/distill_torch write --target TARGET --work WORK --seed 1; "
    "python tools/distill_torch train --target TARGET --work WORK --layers {layers} --vocab {vocab} --lr {lr}; "
    "the same with --decay-minutes; python tools/distill_torch export --work WORK --out OUT"
)
DATA = (
    "Prompts written for specviz in ten domains (chat, explanation, story, list, e-mail, Python, JavaScript, JSON, "
    "summarise, fix), some that the target asked itself, continuing an empty user turn, and its own earlier answers as "
    "texts to summarise and to correct. Answered with the chat template at temperatures 0, 0.5, 0.8 and 1.0, in part "
    "while the student was learning already, by writers with the seeds {seeds}."
)
RECIPE = (
    "Loss: forward KL at temperature 1, moving to 1 - Σ min(p, q) at temperatures 0.8 and 0.3. AdamW, bfloat16 matrix "
    "products over float32 weights, a constant rate, and a linear decay in the end."
)


def export(options: argparse.Namespace) -> None:
    """The folder of a draft, from the decayed weights where there are some."""
    folder: Path = options.work / options.student
    path = folder / "decayed.pt" if (folder / "decayed.pt").exists() else folder / "checkpoint.pt"
    stored, vocabulary = torch.load(path, map_location="cpu"), torch.load(folder / "vocabulary.pt")
    model = Llama(stored["config"])
    model.load_state_dict(stored["student"])
    weights = {}
    for parameter, name in names(model):
        value = parameter.detach().float()
        if name.split(".")[-2] in ("q_proj", "k_proj") and stored["config"].get("rope_traditional"):
            value = in_halves(value, model.layers[0].head_dim, back=True)
        weights[name] = value.numpy()
    own = DraftVocabulary(*(vocabulary[n].numpy().astype(np.int32) for n in ("tokens", "inputs")))
    chosen_at = (folder / "vocabulary.pt").stat().st_mtime
    shards = {p: load_shard(p) for p in sorted((options.work / "shards").glob("*.npz"))}
    # Coverage of what was written after the vocabulary was chosen: by what it was chosen from it is near 100 %.
    later = [s for p, shard in shards.items() if p.stat().st_mtime > chosen_at for s in shard.samples]
    unseen = np.concatenate([s.token_ids for s in later]) if later else np.zeros(0)
    facts, state = stored["facts"], stored["state"]
    training = Training(
        command=COMMANDS.format(layers=",".join(map(str, facts["layers"])), vocab=len(own.tokens), lr=facts["lr"]),
        seed=facts["seed"],
        layers=tuple(facts["layers"]),
        texts=sum(len(shard.samples) for shard in shards.values()),
        tokens=sum(len(s.token_ids) for shard in shards.values() for s in shard.samples),
        tokens_seen=state["learned"],
        coverage=float(np.isin(unseen, own.tokens).mean()) if later else 0.0,
        minutes=(sum(shard.seconds for shard in shards.values()) + state["seconds"]) / 60,
        machine=options.machine,
        date=datetime.date.today().isoformat(),
        data=DATA.format(seeds=", ".join(sorted({p.name.split("-")[0].lstrip("0") for p in shards}))),
        recipe=RECIPE,
        complete=True,
        versions=versions(("torch", "numpy")),
    )
    found = json.loads(options.acceptance.read_text())["acceptance"] if options.acceptance else []
    about = describe(
        options.name, ModelTokenizer(options.target).vocabulary, training, [AcceptanceFigure(**row) for row in found]
    )
    finish(options.out, {**stored["config"], "model_type": "llama"}, weights, own, about, bits=options.bits)
