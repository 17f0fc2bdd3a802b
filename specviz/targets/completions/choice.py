"""Which way a round is verified, and what may be promised about it."""

from __future__ import annotations

from collections.abc import Callable

from specviz.core.errors import IncapableError
from specviz.core.events import Guarantee, Way, badness, worst
from specviz.core.sampling import promise
from specviz.core.settings import Rule, Sampling, Verification
from specviz.targets.completions.values import Findings
from specviz.targets.completions.ways import scoring
from specviz.targets.completions.ways.generating import OWN_TEXT
from specviz.targets.completions.ways.prefixes import OWN_DRAWS
from specviz.targets.completions.wire.dialect import sampling_differs

_LONGEST = 300


def choose(
    findings: Findings, verification: Verification, sampling: Sampling, rule: Rule, vocab_size: int
) -> tuple[Way, Guarantee]:
    """The way that keeps most of a draft and is exact, or the one that was asked for.

    Raises:
        IncapableError: it cannot be had; says why.
    """
    if verification != "auto":
        _check(verification, findings, sampling, rule)
        return verification, _guarantee(verification, findings, sampling, rule, vocab_size)
    refusals: list[IncapableError] = []
    able: dict[Way, Guarantee] = {}
    for way in _CHECKS:
        try:
            _check(way, findings, sampling, rule)
        except IncapableError as refusal:
            refusals.append(refusal)
        else:
            able[way] = _guarantee(way, findings, sampling, rule, vocab_size)
    if not able:
        raise refusals[0]
    best = min(able, key=lambda way: badness(able[way]))
    return best, able[best]


def _check(way: Way, findings: Findings, sampling: Sampling, rule: Rule) -> None:
    _CHECKS[way](findings, sampling, rule)


def _check_scoring(findings: Findings, sampling: Sampling, rule: Rule) -> None:
    if not findings.same_tokens:
        raise IncapableError(
            "Scoring needs the target's own tokenizer: the server counts other tokens than this one.",
            "Name it (--tokenizer), or verify by generating.",
        )
    if findings.scores and not findings.ids_in:
        raise IncapableError(
            "Scoring needs a server that takes token ids." + _found(findings), "Verify by another way: auto finds one."
        )
    try:
        scoring.check(findings, sampling, rule)
    except IncapableError as exc:
        found = "" if findings.scores else _found(findings)
        remedy = (
            "Choose the rule probabilistic." if rule.name == "threshold" else "Verify by another way: auto finds one."
        )
        raise IncapableError(exc.message + found, exc.remedy or remedy) from exc


def _check_prefixes(findings: Findings, sampling: Sampling, rule: Rule) -> None:
    _check_draws(rule, findings)
    if not findings.same_tokens:
        raise IncapableError(
            "Prefixes end between tokens, and the server counts other tokens than this tokenizer.",
            "Name the target's own tokenizer (--tokenizer), or verify by generating.",
        )
    if not findings.batch:
        raise IncapableError(
            "The server does not take several prompts in one call." + _found(findings),
            "Verify by another way: auto finds one.",
        )


def _check_draws(rule: Rule, findings: Findings) -> None:
    if rule.name == "threshold":
        raise IncapableError(
            "The rule threshold needs the target's probability of a draft token, and only scoring tells it."
            + ("" if findings.scores else _found(findings)),
            "Choose the rule probabilistic.",
        )


def _check_generating(findings: Findings, sampling: Sampling, rule: Rule) -> None:
    _check_draws(rule, findings)


#: In the order of what they keep of a draft.
_CHECKS: dict[Way, Callable[[Findings, Sampling, Rule], None]] = {
    "scoring": _check_scoring,
    "prefixes": _check_prefixes,
    "generating": _check_generating,
}


def _found(findings: Findings) -> str:
    """What the probe found, as far as it fits."""
    notes = " ".join(findings.notes)
    if not notes:
        return ""
    return " " + (notes if len(notes) <= _LONGEST else notes[: _LONGEST - 1] + "…")


def _guarantee(way: Way, findings: Findings, sampling: Sampling, rule: Rule, vocab_size: int) -> Guarantee:
    promised = promise(rule, sampling)
    if promised.kind == "LOSSY":
        return promised
    if way == "scoring":
        return worst(_scored(findings, sampling, vocab_size), _doubt(findings, sampling))
    base = OWN_DRAWS if way == "prefixes" else OWN_TEXT
    return worst(_naming_rule(base, sampling, rule), _doubt(findings, sampling))


def _naming_rule(base: Guarantee, sampling: Sampling, rule: Rule) -> Guarantee:
    """Above temperature 0 this is not the rule of the settings, so it is named."""
    if rule.name != "probabilistic" or sampling.temperature == 0:
        return base
    return Guarantee(base.kind, f"{base.reason} Rule in force: own draws compared, not rejection sampling.")


def _scored(findings: Findings, sampling: Sampling, vocab_size: int) -> Guarantee:
    t, known = sampling.temperature, min(findings.top, scoring.BEST)
    if t == 0:
        return Guarantee("EXACT", "Temperature 0: every token is the target's most probable one.")
    # Where top-k or top-p cut within the row, its normaliser is known; where that is not certain, the target draws.
    cut = 0 < sampling.top_k <= known or sampling.top_p < 1
    if t == 1 or cut or known >= vocab_size:
        return Guarantee(
            "EXACT", "Rejection sampling with the target's own probabilities; what it lacks is drawn by the target."
        )
    return Guarantee(
        "BOUNDED",
        f"At temperature {t:g} the best tokens do not tell the target's normaliser; how far off a token's distribution "
        "can be is shown as the run goes on.",
        0.0,
    )


def _doubt(findings: Findings, sampling: Sampling) -> Guarantee | None:
    """Whether the server's own draws are at the wanted settings; every way needs some."""
    if sampling.temperature == 0:
        return None
    if why := sampling_differs(findings.engine, sampling.temperature, sampling.top_k, sampling.top_p):
        return Guarantee("LOSSY", f"The server draws from another distribution: {why}.")
    if findings.own_samplers:
        return Guarantee("UNKNOWN", "Samplers of the server's own may be on: only its plain completions API is open.")
    if sampling.top_k and findings.takes_top_k is False:
        return Guarantee("LOSSY", f"The server does not do as top-k {sampling.top_k} says.")
    if sampling.top_k and findings.takes_top_k is None:
        return Guarantee("UNKNOWN", f"Whether the server does as top-k {sampling.top_k} says was not tried.")
    return None
