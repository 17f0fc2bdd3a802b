"""What plain decoding wrote at temperature 0, and whether a run's output is the same.

A target that scores a draft should choose what it writes by itself. Whether it does is seen where both exist: in the
tokens that were decoded to measure the baseline of the same prompt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from specviz.core.guarantee import Guarantee, worst
from specviz.core.ports import Tokenizer
from specviz.core.rounds import Decision

#: Log-probabilities that are closer are a near tie: kernels differ by that much between a block and a single token.
_TIE = 0.15
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class PlainOutput:
    """The first tokens of plain decoding after one prompt, at temperature 0.

    Attributes:
        prompt: digest of the prompt's ids.
        token_ids: None where a server gave a text only. text: used where there are no ids.
    """

    prompt: bytes
    token_ids: tuple[int, ...] | None
    text: str = ""

    def follows(self, prompt_ids: Sequence[int]) -> bool:
        """Whether it was written after this prompt."""
        return self.prompt == digest(prompt_ids)

    def first_difference(self, output: Sequence[int], tokenizer: Tokenizer) -> int | None:
        """Index of the first token of an output that plain decoding did not write; None as far as both are equal."""
        if self.token_ids is not None:
            pairs = zip(output, self.token_ids, strict=False)
            return next((i for i, (one, other) in enumerate(pairs) if one != other), None)
        if not self._differs(output, tokenizer):
            return None
        return next(i for i in range(len(output)) if self._differs(output[: i + 1], tokenizer))

    def reaches_beyond(self, output: Sequence[int], tokenizer: Tokenizer) -> bool:
        """Whether it is longer than an output, so that more of the output can be compared."""
        if self.token_ids is not None:
            return len(self.token_ids) > len(output)
        return len(_whole(self.text)) > len(_whole(tokenizer.decode(output)))

    def _differs(self, output: Sequence[int], tokenizer: Tokenizer) -> bool:
        """Servers write special tokens by their names or not at all, and some leave out space at the beginning."""
        named = b"".join(tokenizer.token_bytes(i) or tokenizer.token_name(i).encode() for i in output)
        forms = (tokenizer.decode(output), named.decode("utf-8", errors="replace"))
        return all(not _agree(_whole(form), _whole(self.text)) for form in forms)


def _whole(text: str) -> str:
    """The text up to its first incomplete character."""
    return text.partition(_REPLACEMENT)[0].lstrip()


def _agree(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def digest(prompt_ids: Sequence[int]) -> bytes:
    """Stands for a prompt, in little memory."""
    return hashlib.blake2b(np.asarray(prompt_ids, dtype=np.int64).tobytes(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Difference:
    """The first token of a run that plain decoding of the same prompt did not write.

    Attributes:
        index: in the output. gap: between the log-probabilities of both tokens; None where that is not known.
    """

    index: int
    gap: float | None

    @classmethod
    def at(cls, index: int, decision: Decision, plain: PlainOutput) -> Difference:
        """The difference at a token, whose decision has the most probable tokens of its row."""
        known = {a.token_id: a.logprob for a in decision.alternatives}
        if plain.token_ids is None:
            best = sorted(known.values(), reverse=True)[:2]
            return cls(index, best[0] - best[1] if len(best) > 1 else None)
        own = decision.final_logprob
        other = known.get(plain.token_ids[index])
        return cls(index, None if own is None or other is None else abs(own - other))

    def lowered(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee of the output: a near tie is a remark, everything else leaves no promise."""
        what = f"Plain decoding of the same prompt wrote another token {self.index + 1} of the output"
        if self.gap is None:
            return worst(guarantee, Guarantee("UNKNOWN", f"{what}; how close the two tokens are is not known."))
        apart = f"the log-probabilities of the two tokens are {self.gap:.2g} apart"
        if self.gap < _TIE:
            tie = "a near tie, which other kernels may decide otherwise"
            return replace(guarantee, reason=f"{guarantee.reason} {what}: {apart}, {tie}.")
        why = "no near tie: the target does not give the same rows each time"
        return worst(guarantee, Guarantee("UNKNOWN", f"{what}: {apart}, {why}."))
