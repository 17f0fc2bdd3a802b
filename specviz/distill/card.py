"""The model card of a distilled draft, from its draft.json."""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from specviz import __version__
from specviz.core.acceptance import AcceptanceFigure
from specviz.core.vocabulary import Vocabulary
from specviz.distill.subject import TOY
from specviz.engines.distilled import Description

_SMOLLM2 = """\
Apache-2.0. The weights are derived from SmolLM2 by Hugging Face
(https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct), which is licensed under Apache-2.0: its layers were the
start, and the training texts are its own answers."""
_OTHER = """\
The weights are derived from the target {target}: its licence holds for them too. The code that made them is specviz,
Apache-2.0."""
_TOY = "Apache-2.0, as specviz. The toy target is part of specviz."


@dataclass(frozen=True, slots=True)
class Training:
    """How a draft came to be: what draft.json holds under "training".

    Attributes:
        command: that makes such a draft again.
        seed: of every random draw.
        layers: of the target, that the student began with; empty for a new one.
        texts, tokens: that the target wrote.
        tokens_seen: that the student learned from, repeats included.
        coverage: share of the tokens that the draft has, of answers that its vocabulary was not chosen by.
        minutes: of work, over all sessions.
        machine: what it ran on. versions: package → version. date: ISO, UTC.
        complete: false where it was stopped before its time.
        data: where the prompts come from and how they were answered, in sentences.
        recipe: in a sentence: loss, optimizer, rates.
    """

    command: str
    seed: int
    layers: tuple[int, ...]
    texts: int
    tokens: int
    tokens_seen: int
    coverage: float
    minutes: float
    machine: str
    date: str
    data: str
    recipe: str
    complete: bool = True
    versions: Mapping[str, str] = field(default_factory=dict)


def describe(target: str, vocabulary: Vocabulary, training: Training, found: Iterable[AcceptanceFigure]) -> Description:
    """draft.json of a draft.

    Args:
        target: its name. vocabulary: the target's.
        found: held-out acceptance, see `specviz.core.acceptance`.
    """
    told = {**asdict(training), "layers": list(training.layers), "versions": dict(training.versions)}
    return Description.of(target, vocabulary, training=told, acceptance=[asdict(f) for f in found])


def versions(*packages: str) -> dict[str, str]:
    """Package → version: specviz, Python, and those of these that are installed."""
    found = {"specviz": __version__, "python": platform.python_version()}
    for package in packages or ("mlx", "mlx-lm", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def card(description: Description, config: Mapping[str, Any], bits: int) -> str:
    """README.md of a finished folder."""
    training: Mapping[str, Any] = description.more.get("training", {})
    rows: Sequence[Mapping[str, Any]] = description.more.get("acceptance", ())
    layers = training.get("layers") or ()
    start = f"layers {', '.join(map(str, layers))} of the target" if layers else "new weights"
    precision = "float16" if bits == 16 else f"{bits} bits, groups of 64"
    target = description.target if description.target == TOY else f"local:{description.target}"
    short = (
        "" if training.get("complete", True) else "\nThe run was stopped before its time: more training would help.\n"
    )
    return f"""\
---
license: {"apache-2.0" if _is_free(description.target) else "other"}
library_name: mlx
tags:
- speculative-decoding
- draft-model
- distillation
---
# A draft for {description.target}

A small Llama that proposes tokens to **{description.target}** in speculative decoding. It speaks that target's token
ids and serves no other target; alone it is a poor language model. The output of speculative decoding is the target's
own whatever the draft says: a better draft makes it faster, not better.

    python -m specviz generate --target {target} --draft model:FOLDER --prompt "..."

| | |
|---|---|
| layers | {config.get("num_hidden_layers")}, hidden size {config.get("hidden_size")}, from {start} |
| vocabulary | {config.get("vocab_size"):,} of the target's {description.target_tokens:,} tokens; \
they are {training.get("coverage", 0):.1%} of answers that they were not chosen by |
| weights | {precision} |
{short}
## Measured acceptance

Held-out prompts, in no training text. The target answers each at the temperature named; at every token of its answer,
acceptance is the probability that the draft's token would have been kept, Σ min(p, q) (at temperature 0: both have the
same argmax). Length is the number of tokens to expect accepted of a block of 4.

{acceptance_table(rows)}

## Data

{_paragraph(f"{training.get('data', 'n/a')} {_written(training)}")}

## Recipe

{_paragraph(f"{training.get('recipe', 'n/a')} {training.get('tokens_seen', 0):,} tokens seen, repeats included.")}

    {training.get("command", "n/a")}

{_paragraph(_circumstances(training))}

The idea of fitting a draft to its target's own distributions is that of DistillSpec (Zhou et al. 2023,
arXiv:2310.08461).

## Licence

{_licence(description.target)}

## Limits

- For this target alone, and with its chat template: other formats were not trained.
- Acceptance falls on text unlike the training prompts: other languages than English, long contexts, rare formats.
- Tokens outside its vocabulary are never proposed, and are read as a similar token.
- Acceptance is no speed: whether it pays depends on the machine. Measure it there.
"""


def acceptance_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: a line per domain, a pair of columns per temperature."""
    if not rows:
        return "Not measured."
    temperatures = sorted({row["temperature"] for row in rows})
    domains = list(dict.fromkeys(row["domain"] for row in rows if row["domain"] != "all"))
    cells = {(row["domain"], row["temperature"]): row for row in rows}
    head = ["domain", *(f"T={t:g}: {what}" for t in temperatures for what in ("acceptance", "length", "tokens"))]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for domain in [*domains, "all"]:
        line = [f"**{domain}**" if domain == "all" else domain]
        for t in temperatures:
            row = cells.get((domain, t))
            if row is None:
                line += ["n/a"] * 3
            else:
                length = "n/a" if row["length"] is None else f"{row['length']:.2f}"
                line += [f"{row['acceptance']:.3f}", length, f"{row['tokens']:,}"]
        lines.append(f"| {' | '.join(line)} |")
    return "\n".join(lines)


def _written(training: Mapping[str, Any]) -> str:
    return (
        f"The target wrote {training.get('texts', 0):,} texts, {training.get('tokens', 0):,} tokens; its 64 most "
        "probable tokens were kept at each. No text of anybody else was learned from."
    )


def _circumstances(training: Mapping[str, Any]) -> str:
    made_with = ", ".join(f"{k} {v}" for k, v in training.get("versions", {}).items())
    return (
        f"Seed {training.get('seed', 'n/a')}. {training.get('minutes', 0):,.1f} minutes on "
        f"{training.get('machine', 'n/a')}, {training.get('date', 'n/a')}. {made_with}."
    )


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _is_free(target: str) -> bool:
    return target == TOY or "smollm2" in target.lower()


def _licence(target: str) -> str:
    if target == TOY:
        return _TOY
    return _SMOLLM2 if _is_free(target) else _OTHER.format(target=target)
