"""The choice of the way to verify a round, and the guarantee that it gives."""

from __future__ import annotations

from collections.abc import Callable

from specviz.core.errors import IncapableError
from specviz.core.events import Way
from specviz.core.guarantee import Guarantee, badness, worst
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
    """The way of the settings; for `auto`, the one with the best guarantee, of several the one that accepts most.

    Raises:
        IncapableError: the server or the rule does not allow it; the message says why.
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
            "Scoring needs the target's own tokenizer, and this one splits text into other tokens than the server.",
            "Name the right one with --tokenizer, or verify by generating.",
        )
    if findings.scores and not findings.ids_in:
        raise IncapableError(
            "Scoring needs a server that takes token ids." + _found(findings),
            "Choose another verification, such as auto.",
        )
    try:
        scoring.check(findings, sampling, rule)
    except IncapableError as exc:
        found = "" if findings.scores else _found(findings)
        remedy = "Choose another verification, such as auto."
        if rule.name == "threshold":
            remedy = "Choose the rule probabilistic."
        raise IncapableError(exc.message + found, exc.remedy or remedy) from exc


def _check_prefixes(findings: Findings, sampling: Sampling, rule: Rule) -> None:
    _check_draws(rule, findings)
    if not findings.same_tokens:
        raise IncapableError(
            "Prefixes end where a token ends, and the server splits text into other tokens than this tokenizer.",
            "Name the target's own tokenizer with --tokenizer, or verify by generating.",
        )
    if not findings.batch:
        raise IncapableError(
            "The server does not accept several prompts in one call." + _found(findings),
            "Choose another verification, such as auto.",
        )


def _check_draws(rule: Rule, findings: Findings) -> None:
    if rule.name == "threshold":
        raise IncapableError(
            "The rule threshold needs the target's probability of a draft token, and only scoring gives it."
            + ("" if findings.scores else _found(findings)),
            "Choose the rule probabilistic.",
        )


def _check_generating(findings: Findings, sampling: Sampling, rule: Rule) -> None:
    _check_draws(rule, findings)


#: The way that accepts most of a draft comes first.
_CHECKS: dict[Way, Callable[[Findings, Sampling, Rule], None]] = {
    "scoring": _check_scoring,
    "prefixes": _check_prefixes,
    "generating": _check_generating,
}


def _found(findings: Findings) -> str:
    """The notes of the probe, cut to a readable length; empty where there are none."""
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
    """Name the rule that is used, where it is not the rule of the settings: above temperature 0."""
    if rule.name != "probabilistic" or sampling.temperature == 0:
        return base
    return Guarantee(
        base.kind, f"{base.reason} Rule in force: comparison with the target's draws, not rejection sampling."
    )


def _scored(findings: Findings, sampling: Sampling, vocab_size: int) -> Guarantee:
    t, known = sampling.temperature, min(findings.top, scoring.BEST)
    if t == 0:
        return Guarantee("EXACT", "Temperature 0: every token is the target's most probable one.")
    # Where top-k or top-p keep only listed tokens, the normaliser is known. Where that is uncertain, the target draws.
    cut = 0 < sampling.top_k <= known or sampling.top_p < 1
    if t == 1 or cut or known >= vocab_size:
        return Guarantee(
            "EXACT", "Rejection sampling with the target's own probabilities; the target draws what they do not cover."
        )
    return Guarantee(
        "BOUNDED",
        f"At temperature {t:g} the most probable tokens do not give the target's exact normaliser. The bound on the "
        "error of a token's distribution is shown during the run.",
        0.0,
    )


def _doubt(findings: Findings, sampling: Sampling) -> Guarantee | None:
    """Why the server may not draw at the settings; every way uses draws of the server. None where it does."""
    if sampling.temperature == 0:
        return None
    if why := sampling_differs(findings.engine, sampling.temperature, sampling.top_k, sampling.top_p):
        return Guarantee("LOSSY", f"The server draws from another distribution: {why}.")
    if findings.own_samplers:
        return Guarantee(
            "UNKNOWN", "The server may apply its own samplers: only its plain completions API is available."
        )
    if sampling.top_k and findings.takes_top_k is False:
        return Guarantee("LOSSY", f"The server does not apply top-k {sampling.top_k}.")
    if sampling.top_k and findings.takes_top_k is None:
        return Guarantee("UNKNOWN", f"It was not tested whether the server applies top-k {sampling.top_k}.")
    return None
