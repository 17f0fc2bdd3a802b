"""A student: its vocabulary, and its first weights, cut out of the target."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from model import DEVICE, Llama
from progress import log
from torch import Tensor

from specviz.distill.samples import TeacherText


def choose_vocabulary(
    samples: Sequence[TeacherText], target: Llama, size: int, always: Sequence[int]
) -> dict[str, Tensor]:
    """tokens (V,) ascending target ids; inputs (target tokens,) the draft id that stands for each."""
    total = target.embed.weight.shape[0]
    counts = np.zeros(total)
    for sample in samples:
        # What it might have written counts as what it wrote; prompts count a little, since their tokens are read.
        np.add.at(counts, sample.rows.ids.ravel(), np.exp(sample.rows.logprobs).ravel())
        np.add.at(counts, sample.prompt_ids, 0.1)
    ranked = np.sort(counts)[::-1]
    for cut in (4096, 8192, 12288, 16384):
        log(f"the {cut} most frequent tokens: {ranked[:cut].sum() / ranked.sum():.4f} of all")
    counts[list(always)] = counts.max() + 1
    tokens = torch.from_numpy(np.sort(np.argsort(-counts, kind="stable")[:size]))
    rows = F.normalize(target.embed.weight.float().cpu(), dim=-1)
    inputs = torch.cat([(part @ rows[tokens].T).argmax(-1) for part in rows.split(4096)])
    inputs[tokens] = torch.arange(len(tokens))
    return {"tokens": tokens, "inputs": inputs}


@torch.no_grad()
def cut_student(target: Llama, tokens: Tensor, layers: Sequence[int], ffn: int) -> Llama:
    """Layers of the target, their feed-forward blocks thinned to the neurons with the largest weights."""
    config = {k: v for k, v in target.config.items() if k != "quantization"}
    config |= {"vocab_size": len(tokens), "num_hidden_layers": len(layers), "intermediate_size": ffn}
    student = Llama(config).to(DEVICE)
    student.embed.weight.copy_(target.embed.weight[tokens])
    student.norm.copy_(target.norm)
    for mine, number in zip(student.layers, layers, strict=True):
        theirs = dict(target.layers[number].named_parameters())
        strength = theirs["down_proj.weight"].norm(dim=0)
        for name in ("gate_proj.weight", "up_proj.weight"):
            strength = strength * theirs[name].norm(dim=1)
        kept = strength.topk(ffn).indices.sort().values
        for name, parameter in mine.named_parameters():
            if name in ("gate_proj.weight", "up_proj.weight"):
                parameter.copy_(theirs[name][kept])
            else:
                parameter.copy_(theirs[name][:, kept] if name == "down_proj.weight" else theirs[name])
    return student
