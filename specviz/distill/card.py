"""The model card of a distilled draft, from its draft.json."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from specviz.core.acceptance import AcceptanceFigure
from specviz.core.names import TOY, local_name
from specviz.core.vocabulary import Vocabulary
from specviz.distill.texts import card_template
from specviz.engines.distilled import Description

_SMOLLM2 = """\
Apache-2.0. The weights are derived from SmolLM2 by Hugging Face
(https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct), which is licensed under Apache-2.0: the student
started from its layers, and the training texts are its own answers."""
_OTHER = """\
The weights are derived from the target {target}: its licence applies to them too. The code that made them is specviz,
Apache-2.0."""
_TOY = "Apache-2.0, as specviz. The toy target is part of specviz."


@dataclass(frozen=True, slots=True)
class Training:
    """How a draft was made: what draft.json holds under "training".

    Attributes:
        command: makes such a draft again.
        seed: of every random draw.
        layers: of the target, that the student started from; empty for a new one.
        texts, tokens: that the target wrote.
        tokens_seen: that the student learned from, repeats included.
        coverage: share of the tokens of held-out answers that the draft's vocabulary has.
        minutes: of work, over all sessions.
        machine: what it ran on. versions: package → version. date: ISO, UTC.
        complete: false where the run was stopped before its time.
        data: where the prompts come from and how they were answered, in sentences.
        recipe: loss, optimizer and rates, in a sentence.
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
    return Description.of(
        target, vocabulary, training=msgspec.to_builtins(training), acceptance=[msgspec.to_builtins(f) for f in found]
    )


def card(description: Description, config: Mapping[str, Any], bits: int) -> str:
    """README.md of a finished folder."""
    training, target = description.more["training"], description.target
    layers = ", ".join(map(str, training["layers"]))
    return card_template().format(
        license="apache-2.0" if _is_free(target) else "other",
        target=target,
        target_option=target if target == TOY else local_name(target),
        layers=config["num_hidden_layers"],
        hidden_size=config["hidden_size"],
        start=f"layers {layers} of the target" if layers else "new weights",
        vocabulary=config["vocab_size"],
        target_tokens=description.target_tokens,
        coverage=training["coverage"],
        weights="float16" if bits == 16 else f"{bits} bits, groups of 64",
        incomplete="" if training["complete"] else "\nThe run was stopped before its time: more training would help.\n",
        acceptance=acceptance_table(description.more["acceptance"]),
        data=_paragraph(
            f"{training['data']} The target wrote {training['texts']:,} texts, {training['tokens']:,} tokens; its 64 "
            "most probable tokens were kept at each position. Only these texts were learned from."
        ),
        recipe=_paragraph(f"{training['recipe']} {training['tokens_seen']:,} tokens seen, repeats included."),
        command=training["command"],
        made=_paragraph(
            f"Seed {training['seed']}. {training['minutes']:,.1f} minutes on {training['machine']}, "
            f"{training['date']}. {', '.join(f'{name} {number}' for name, number in training['versions'].items())}."
        ),
        licence=_licence(target),
    )


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


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _is_free(target: str) -> bool:
    return target == TOY or "smollm2" in target.lower()


def _licence(target: str) -> str:
    if target == TOY:
        return _TOY
    return _SMOLLM2 if _is_free(target) else _OTHER.format(target=target)
