"""The target continues the text, and the draft is compared with it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from specviz.core.errors import AnswerError, LackingError
from specviz.core.noise import Noise
from specviz.core.ports import Tokenizer
from specviz.core.rounds import EMPTY, Candidate, Round
from specviz.core.sampling import to_probs
from specviz.core.settings import Rule, Sampling
from specviz.engines.toy import ToyScorer
from specviz.targets.completions.server import Server
from specviz.targets.completions.values import Completions
from specviz.targets.completions.ways import generating
from specviz.targets.completions.ways.draws import Judged
from tests.targets.completions.remotes import TOY, Scripted, findings_of, legacy
from tests.targets.completions.toyserver import InMemory, ToyServer
from tests.toys import LetterTokenizer, MarkovScorer, block, draft

TABLE = [[0.15, 0.6, 0.25], [0.5, 0.2, 0.3], [0.3, 0.25, 0.45]]
LETTERS = LetterTokenizer()
STOPS = frozenset({9})


def verify(
    api: Completions,
    context: Sequence[int],
    candidate: Candidate,
    sampling: Sampling | None = None,
    *,
    seed: int = 0,
    tokenizer: Tokenizer = LETTERS,
    vocab_size: int = 10,
    stop_ids: frozenset[int] = STOPS,
    dialect: str = "generates",
    **found: object,
) -> Judged:
    server = Server(api, findings_of(dialect, **found), tokenizer, vocab_size, stop_ids)
    return generating.verify(
        server, Round(tuple(context), draft(candidate), sampling or Sampling(), Rule(), Noise(seed))
    )


def statuses(verdict: Judged) -> list[str]:
    return [d.status for d in verdict.decisions]


@pytest.mark.parametrize("dialect", ["vllm", "mlx", "generates"])
def test_sampled_output_is_distributed_as_the_targets(dialect: str) -> None:
    """Two tokens of each round, or the owed ones, with any draft."""
    counts, n, warm = np.zeros((3, 3)), 1500, Sampling(0.7)
    api = InMemory(ToyServer(TABLE, dialect))
    for seed in range(n):
        judged = verify(api, [0], block(1), warm, seed=seed, vocab_size=3, dialect=dialect)
        ids = [*judged.token_ids, *judged.owed]
        if len(ids) == 1:
            ids += verify(api, [0, *ids], EMPTY, warm, seed=n + seed, vocab_size=3, dialect=dialect).token_ids
        counts[ids[0], ids[1]] += 1
    rows = [to_probs(MarkovScorer(TABLE).score([i], 1)[0], warm) for i in range(3)]
    p = np.array([[rows[0][i] * rows[i][j] for j in range(3)] for i in range(3)])
    error = 0.4 * np.sqrt(p * (1 - p) / n).sum()
    assert 0.5 * np.abs(counts / n - p).sum() < 2 * error


def test_by_ids_what_stands_behind_the_correction_is_dropped() -> None:
    api = Scripted(legacy("abcd", ids=[[0, 1, 2, 3]]))
    judged = verify(api, [5], block(0, 7, 2), ids_in=True)
    assert api.requests[0].prompts == ((5,),) and api.requests[0].max_tokens == 4
    assert statuses(judged) == ["accepted", "rejected", "ignored"]
    assert judged.token_ids == (0, 1) and judged.owed == ()
    assert judged.guarantee.kind == "EXACT" and "saves nothing" in judged.guarantee.reason


def test_by_text_nothing_is_dropped() -> None:
    judged = verify(Scripted(legacy("abcd", prompt_tokens=1, completion_tokens=4)), [5], block(0, 7, 2))
    assert judged.token_ids == (0, 1) and judged.owed == (2, 3)
    assert (judged.prompt_tokens, judged.drawn) == (1, 4)


def test_without_a_proposal_it_is_one_plain_step() -> None:
    api = Scripted(legacy("a", ids=[[0]]))
    judged = verify(api, [5], EMPTY, ids_in=True)
    assert api.requests[0].max_tokens == 1 and statuses(judged) == ["bonus"] and judged.token_ids == (0,)


def test_sampled_calls_are_seeded_and_greedy_ones_need_no_seed() -> None:
    api = InMemory(ToyServer(TABLE, "vllm"))
    for seed in (1, 1, 2):
        verify(api, [0], block(1), Sampling(1.0), seed=seed, vocab_size=3, dialect="vllm")
    first, second, third = (r.seed for r in api.requests)
    assert first == second != third and first is not None
    verify(api, [0], block(1), Sampling(), vocab_size=3, dialect="vllm")
    assert api.requests[-1].seed is None


@pytest.mark.parametrize(
    ("draft", "expected", "emitted"),
    [
        ((0, 1, 2, 3), ["accepted", "accepted", "rejected", "ignored"], (0, 1, 9)),
        ((0, 1, 9), ["accepted", "accepted", "accepted"], (0, 1, 9)),
        ((0, 1), ["accepted", "accepted", "bonus"], (0, 1, 9)),
        ((5, 1), ["rejected", "ignored"], (0,)),
    ],
)
@pytest.mark.parametrize("ids", [None, [[0, 1]], [[0, 1, 9]]])
def test_an_end_inside_a_block(
    draft: tuple[int, ...], expected: list[str], emitted: tuple[int, ...], ids: list[list[int]] | None
) -> None:
    """Servers that leave out the stop token, and servers that give it."""
    judged = verify(Scripted(legacy("ab", ids=ids, finish="stop")), [5], block(*draft), ids_in=ids is not None)
    assert statuses(judged) == expected and judged.token_ids == emitted
    # By ids, the end is dropped like every token after a correction: to keep only ends would make ends more likely.
    assert judged.owed == (() if ids or emitted[-1] == 9 else (1, 9))


def test_an_end_that_only_the_server_knows_is_owed_behind_its_token() -> None:
    judged = verify(Scripted(legacy("ab", ids=[[0, 1]], finish="stop")), [5], block(0), ids_in=True)
    assert judged.token_ids == (0, 1) and judged.owed == (9,)


def test_the_end_of_a_turn_is_the_one_that_the_context_uses() -> None:
    stops = frozenset({2, 7, 9})
    ended = legacy("", finish="stop")
    assert verify(Scripted(ended), [7, 5], block(0), stop_ids=stops).token_ids == (7,)
    assert verify(Scripted(ended), [5], block(0), stop_ids=stops).token_ids == (2,)
    assert statuses(verify(Scripted(ended), [7, 5], block(9), stop_ids=stops)) == ["accepted"]
    with pytest.raises(AnswerError, match="no stop token"):
        verify(Scripted(ended), [5], block(0), stop_ids=frozenset())


@pytest.mark.parametrize("finish", ["length", None])
def test_nothing_written_is_an_error_where_nothing_ended(finish: str | None) -> None:
    with pytest.raises(AnswerError, match="wrote nothing"):
        verify(Scripted(legacy("", finish=finish)), [5], block(0))  # type: ignore[arg-type]


def test_fewer_tokens_than_asked_for_judge_fewer() -> None:
    judged = verify(Scripted(legacy("ab", ids=[[0, 1]])), [5], block(0, 1, 2, 3), ids_in=True)
    assert statuses(judged) == ["accepted", "accepted", "ignored", "ignored"] and judged.token_ids == (0, 1)


def test_ids_that_were_found_and_are_missing_lack() -> None:
    body = legacy("ab")
    body["choices"][0]["logprobs"] = {"tokens": ["a", "b"], "token_logprobs": [-0.5, -0.7]}
    with pytest.raises(LackingError, match="ids"):
        verify(Scripted(body), [5], block(0), ids_in=True, ids_out=True, dialect="vllm", top=0)


def test_an_id_beyond_the_vocabulary_is_refused() -> None:
    with pytest.raises(AnswerError):
        verify(Scripted(legacy("ab", ids=[[0, 10]])), [5], block(0), ids_in=True)


class Pieces(LetterTokenizer):
    """Longest piece first."""

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        while text:
            piece = max((p for p in self.pieces if text.startswith(p)), key=len)
            ids.append(self.pieces.index(piece))
            text = text[len(piece) :]
        return ids


def test_text_is_matched_as_far_as_the_draft_writes_it() -> None:
    """The draft's "he" + "llo" matches the target's text, whatever the target's tokens were."""
    words = Pieces(["x", "he", "llo", "hello", " w", "\n"])
    answer = legacy("hello w", prompt_tokens=1, completion_tokens=2)
    judged = verify(Scripted(answer), [0], block(1, 2, 0), tokenizer=words, vocab_size=6)
    assert statuses(judged) == ["accepted", "accepted", "rejected"] and judged.token_ids == (1, 2, 4)
    judged = verify(Scripted(answer), [0], block(0), tokenizer=words, vocab_size=6)
    assert judged.token_ids == (3,) and judged.owed == (4,)


HALF = TOY.first_half_id

verify_toy = partial(verify, tokenizer=TOY, vocab_size=TOY.vocab_size, stop_ids=TOY.stop_ids)


def emoji_body(ids: list[int] | None, text: str) -> dict[str, Any]:
    return legacy(text, ids=None if ids is None else [ids], prompt_tokens=1, completion_tokens=2)


def test_a_prompt_that_goes_out_as_text_ends_with_a_whole_character() -> None:
    """The block ends between the halves of an emoji: the second half is requested, and owed."""
    api = Scripted(emoji_body([0, HALF], " the\ufffd"), emoji_body([0, HALF, HALF + 1], " the😀"))
    judged = verify_toy(api, [1], block(0), Sampling(0.7))
    assert judged.token_ids == (0, HALF) and judged.owed == (HALF + 1,) and judged.guarantee.kind == "EXACT"
    assert [r.max_tokens for r in api.requests] == [2, 3] and api.requests[0].seed == api.requests[1].seed
    assert judged.requests == 2 and judged.billed_completion_tokens == 4
    # A correction before the emoji is not affected.
    api = Scripted(emoji_body([0, HALF], " the\ufffd"))
    judged = verify_toy(api, [1], block(5), Sampling(0.7))
    assert judged.token_ids == (0,) and judged.owed == ()


def test_a_server_that_draws_anew_for_an_equal_seed_is_not_vouched_for() -> None:
    bodies = [emoji_body([0, HALF], " the\ufffd"), emoji_body([4, 4, 4], " draft" * 3)]
    judged = verify_toy(Scripted(*bodies), [1], block(0), Sampling(0.7))
    assert judged.guarantee.kind == "UNKNOWN" and "equal seed" in judged.guarantee.reason
    assert verify_toy(Scripted(*bodies), [1], block(0)).guarantee.kind == "EXACT"


def test_text_without_ids_is_asked_for_until_it_ends_with_a_whole_character() -> None:
    api = Scripted(emoji_body(None, " the\ufffd"), emoji_body(None, " the😀"))
    judged = verify_toy(api, [1], block(0))
    assert [*judged.token_ids, *judged.owed] == [0, HALF, HALF + 1] and judged.guarantee.kind == "EXACT"
    never = [emoji_body(None, " the\ufffd") for _ in range(4)]
    judged = verify_toy(Scripted(*never), [1], block(0))
    assert judged.token_ids == (0,) and judged.guarantee.kind == "UNKNOWN"


class Breaks(LetterTokenizer):
    """Two line breaks at the end of a text are one token, as in many tokenizers."""

    def __init__(self) -> None:
        super().__init__(["\n", "a", "b", "\n\n"])

    def encode(self, text: str) -> list[int]:
        end = text.endswith("\n\n")
        return [*super().encode(text[:-2] if end else text), *([3] if end else [])]


def test_a_prompt_that_goes_out_as_text_is_read_as_what_was_drawn() -> None:
    """The block ends with two line breaks, which would be one token: the next token is requested, and owed."""
    judge = partial(verify, tokenizer=Breaks(), vocab_size=4)
    api = Scripted(legacy("\n\n", ids=[[0, 0]]), legacy("\n\nb", ids=[[0, 0, 2]]))
    judged = judge(api, [1], block(0))
    assert judged.token_ids == (0, 0) and judged.owed == (2,) and judged.guarantee.kind == "EXACT"
    assert [r.max_tokens for r in api.requests] == [2, 3]
    # Where the context is already encoded as other ids, there are no more calls: they would not help.
    api = Scripted(legacy("\n\n", ids=[[0, 0]]))
    judged = judge(api, [1, 0, 0], block(0))
    assert judged.owed == () and judged.guarantee.kind == "UNKNOWN" and judged.requests == 1
    # Where more calls do not help, the answer is compared all the same.
    never = [legacy("\n" * n, ids=[[0] * (n - 2) + [0, 0]]) for n in (2, 3, 4, 5)]
    judged = judge(Scripted(*never), [1], block(0))
    assert judged.token_ids == (0, 0) and judged.owed == () and judged.requests == 4


def test_the_toy_writes_its_emoji_through_text() -> None:
    """Every context that is sent is valid text. The toy takes text and answers with ids."""
    api = InMemory(ToyServer(ToyScorer(TOY), "mlx", TOY))
    for seed in range(60):
        judged = verify(
            api, [0, 1], block(2), Sampling(1.5), seed=seed, tokenizer=TOY, vocab_size=TOY.vocab_size, dialect="mlx"
        )
        whole = [0, 1, *judged.token_ids, *judged.owed]
        assert "\ufffd" not in TOY.decode(whole) and judged.guarantee.kind == "EXACT"
