"""The models among the GGUF files of a repository or folder: quantizations, and the parts of models that are split."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from specviz.core.errors import UnknownModelError
from specviz.store.gguf.parts import PART

#: What is taken where a name chooses no quantization: the first of these that there is.
PREFERRED = ("Q4_K_M", "Q8_0", "Q4_0", "Q5_K_M", "Q6_K", "Q4_K_S", "BF16", "F16")

# A name that is shown, and handed to other programs: nothing in it controls a terminal or leaves a folder.
_NAME = re.compile(r"(?!.*\.\.)[\w+()\[\] ,=@#-][\w+()\[\] ,=@#./-]{0,400}\.gguf", re.IGNORECASE)
_QUANTIZATION = re.compile(
    r"(?:^|[-._/])((?:UD-)?(?:I?Q\d\w*|TQ\d_\d|MXFP4\w*|B?F16|F32|FP16|FP32))(?=$|/)", re.IGNORECASE
)
#: Files beside models: the part of a model that sees or hears, and what quantizers have measured.
_NO_MODEL = re.compile(r"mmproj|imatrix", re.IGNORECASE)
_SHOWN_MAX = 40


@dataclass(frozen=True, slots=True)
class Variant:
    """One model in a repository or folder.

    Attributes:
        label: its quantization, as in Q4_K_M; the name of the file where that says none.
        stem: the file's name without ending and number of the part.
        files: in order; more than one for a model that is split.
        missing: the parts that are not there.
    """

    label: str
    stem: str
    files: tuple[str, ...]
    missing: tuple[str, ...] = ()


def variants_of(names: Iterable[str]) -> list[Variant]:
    """The models among these files, by label; other files and hostile names are left out.

    Args:
        names: with "/" between folders.
    """
    split: dict[tuple[str, int], dict[int, str]] = {}
    found: list[Variant] = []
    for name in sorted(set(names)):
        if not _NAME.fullmatch(name) or _NO_MODEL.search(name):
            continue
        stem = name[: -len(".gguf")]
        if part := PART.fullmatch(stem):
            number, count = int(part["number"]), int(part["count"])
            if 1 <= number <= count:
                split.setdefault((part["stem"], count), {})[number] = name
        else:
            found.append(Variant(_label(stem), stem, (name,)))
    for (stem, count), parts in split.items():
        there = tuple(parts[number] for number in sorted(parts))
        missing = tuple(f"{stem}-{n:05}-of-{count:05}.gguf" for n in range(1, count + 1) if n not in parts)
        found.append(Variant(_label(stem), stem, there, missing))
    return sorted(found, key=lambda variant: (variant.label, variant.stem))


def matching(variants: list[Variant], tag: str) -> list[Variant]:
    """The models that a tag may mean: a file of this name, else this quantization, else a name with this word in it.

    Args:
        tag: in upper or lower case; empty takes the first of `PREFERRED`, or the only model that there is.
    """
    if not tag:
        preferred = ([v for v in variants if v.label == label] for label in PREFERRED)
        return next(filter(None, preferred), variants)
    wanted = tag.lower()
    word = re.compile(rf"(?:^|[-._/]){re.escape(wanted)}(?:[-./]|$)")
    tests = (
        lambda v: any(wanted in (name.lower(), name.lower().rpartition("/")[2]) for name in v.files),
        lambda v: v.label.lower() == wanted,
        lambda v: word.search(v.stem.lower()) is not None,
    )
    return next(filter(None, ([v for v in variants if test(v)] for test in tests)), [])


def choose(variants: list[Variant], tag: str, repository: str) -> Variant:
    """The model of a repository that a tag means; see `matching`.

    Raises:
        UnknownModelError: none or several; those that there are get listed.
    """
    if not variants:
        raise UnknownModelError(f"{repository} has no GGUF model.", "Give a repository with .gguf files.")
    chosen = matching(variants, tag)
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise UnknownModelError(
            f"{repository} has no model {tag!r}.", f"It has {_listed([v.label for v in variants])}."
        )
    files = [v.files[0] for v in chosen]
    what = f"{tag!r} means" if tag else "No quantization is given, and there are"
    raise UnknownModelError(
        f"{what} {len(chosen)} models in {repository}.", f"Give one of them as {repository}:FILE: {_listed(files)}."
    )


def _label(stem: str) -> str:
    # The last part of the path that has one at its end: the file's own name before its folder's.
    found = _QUANTIZATION.findall(stem)
    return found[-1].upper() if found else stem.rpartition("/")[2]


def _listed(names: list[str]) -> str:
    shown = list(dict.fromkeys(names))
    more = f" and {len(shown) - _SHOWN_MAX} more" if len(shown) > _SHOWN_MAX else ""
    return ", ".join(shown[:_SHOWN_MAX]) + more
