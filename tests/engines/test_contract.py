"""What every engine's scorers and models have to do: see `specviz.core.ports`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from specviz.core.errors import PromptError
from specviz.core.ports import Scorer
from specviz.core.sampling import Logits
from specviz.engines.llama import distilled_model
from specviz.engines.llama.draft_file import write_draft
from specviz.engines.mlx.language_model import LanguageModel
from specviz.engines.toy import DRAFT_NOISE, ToyModel
from specviz.setup.loading import Loading, load_draft, load_mlx_model, load_model
from tests.engines.sound_gguf import write_sound_gguf
from tests.engines.tiny import write_tiny_model
from tests.engines.tiny_distilled import write_tiny_distilled

TOY = ToyModel()


@dataclass(frozen=True)
class Case:
    """An engine's scorer, and what is known about it.

    Attributes:
        scorer: makes a new one.
        vocab_size: ids that it takes. max_context: how many at once.
        width: of its rows.
        token_of: the id that stands for a column of its rows.
    """

    scorer: Callable[[], Scorer]
    vocab_size: int
    max_context: int
    width: int
    token_of: Callable[[int], int] = int


def toy(noise: float) -> Case:
    model = ToyModel(noise)
    return Case(model.scorer, model.tokenizer.vocab_size, model.max_context, model.tokenizer.vocab_size)


def mlx(folder: Path, padding: int = 0) -> Case:
    model = load_mlx_model(str(write_tiny_model(folder, padding=padding)))
    size = model.tokenizer.vocab_size
    return Case(model.scorer, size, model.max_context, size + padding)


def distilled(folder: Path) -> Case:
    kept = list(range(0, TOY.tokenizer.vocab_size, 3))
    path = write_tiny_distilled(folder, TOY.vocabulary, kept, name="toy")
    draft = load_draft(str(path), how=Loading("mlx"))
    return Case(draft.scorer, TOY.tokenizer.vocab_size, draft.max_context, len(kept), kept.__getitem__)


def llama(folder: Path) -> Case:
    model = load_model(str(write_sound_gguf(folder / "sound.gguf")), how=Loading("llama"))
    size = len(model.vocabulary.pieces)
    return Case(model.scorer, size, model.max_context, size)


def llama_distilled(folder: Path) -> Case:
    kept = list(range(0, TOY.tokenizer.vocab_size, 3))
    path = write_tiny_distilled(folder / "draft", TOY.vocabulary, kept, name="toy")
    draft = distilled_model.load("toy's", path, draft_of(path, folder / "draft.gguf"))
    return Case(draft.scorer, TOY.tokenizer.vocab_size, draft.max_context, len(kept), kept.__getitem__)


def draft_of(folder: Path, path: Path) -> Path:
    write_draft(folder, path)
    return path


CASES: dict[str, Callable[[Path], Case]] = {
    "toy": lambda folder: toy(0.0),
    "toy draft": lambda folder: toy(DRAFT_NOISE),
    "mlx": mlx,
    "mlx, padded": lambda folder: mlx(folder, padding=12),
    "mlx, distilled": distilled,
    "llama": llama,
    "llama, distilled": llama_distilled,
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    yield CASES[request.param](tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="module")
def ids(case: Case) -> list[int]:
    return [int(i) for i in np.random.default_rng(0).integers(0, case.vocab_size, 60)]


def equal(a: Logits, b: Logits) -> None:
    np.testing.assert_allclose(a, b, atol=1e-4)
    assert (a.argmax(-1) == b.argmax(-1)).all()


def scored(scorer: Scorer, ids: list[int], rows: int) -> Logits:
    """A copy, because the next call may overwrite the rows."""
    return np.array(scorer.score(ids, rows))


@pytest.mark.parametrize("rows", [1, 7, 40])
def test_the_number_of_rows(case: Case, ids: list[int], rows: int) -> None:
    found = scored(case.scorer(), ids[:40], rows)
    assert found.shape == (rows, case.width) and found.dtype == np.float32
    assert np.isfinite(found).any(-1).all() and not np.isnan(found).any()


def test_each_row_depends_on_the_ids_up_to_it_alone(case: Case, ids: list[int]) -> None:
    block = scored(case.scorer(), ids[:40], 9)
    for i in range(9):
        equal(block[i : i + 1], scored(case.scorer(), ids[: 32 + i], 1))


def test_generate_rewind_and_regenerate_gives_equal_logits(case: Case, ids: list[int]) -> None:
    scorer, prompt = case.scorer(), ids[:20]

    def generate() -> Iterator[Logits]:
        context = prompt
        for _ in range(12):
            row = scored(scorer, context, 1)
            yield row
            context = [*context, case.token_of(int(row[-1].argmax()))]

    first = list(generate())
    # Another continuation of the same prompt, so that everything generated has to be removed.
    scored(scorer, [*prompt, *ids[50:58]], 3)
    for before, after in zip(first, generate(), strict=True):
        equal(before, after)


def test_the_same_context_again_with_more_rows(case: Case, ids: list[int]) -> None:
    scorer = case.scorer()
    scored(scorer, ids[:30], 1)
    equal(scored(scorer, ids[:30], 30), scored(case.scorer(), ids[:30], 30))


def test_blocks_are_scored_as_each_of_them_alone(case: Case, ids: list[int]) -> None:
    context = ids[:20]
    blocks = [ids[20:24], ids[20:22] + ids[40:43], [], ids[30:31], ids[20:24]]
    scorer = case.scorer()
    found = scorer.score_blocks(context, blocks)
    assert [rows.shape for rows in found] == [(len(block) + 1, case.width) for block in blocks]
    for block, rows in zip(blocks, found, strict=True):
        equal(rows, scored(case.scorer(), [*context, *block], len(block) + 1))
    # What the blocks have left in the cache changes nothing.
    equal(scored(scorer, [*context, *ids[50:53]], 4), scored(case.scorer(), [*context, *ids[50:53]], 4))


def test_no_blocks_give_no_rows(case: Case, ids: list[int]) -> None:
    assert case.scorer().score_blocks(ids[:5], []) == []


def test_scorers_do_not_see_each_other(case: Case, ids: list[int]) -> None:
    one, two = case.scorer(), case.scorer()
    expected = scored(one, ids[:30], 1)
    scored(two, ids[30:50], 1)
    equal(scored(one, ids[:30], 1), expected)


def test_a_reset_changes_no_row(case: Case, ids: list[int]) -> None:
    scorer = case.scorer()
    expected = scored(scorer, ids[:30], 5)
    scorer.reset()
    equal(scored(scorer, ids[:30], 5), expected)


def test_what_cannot_be_scored_is_refused(case: Case) -> None:
    size, most = case.vocab_size, case.max_context
    scorer = case.scorer()
    assert scored(scorer, [size - 1], 1).shape == (1, case.width)
    for bad, message in (
        ([], "empty"),
        ([5, size], f"{size} is outside .* 0 to {size - 1}"),
        ([-1, 5], "-1 is outside"),
        ([5] * (most + 1), f"{most:,} tokens"),
    ):
        with pytest.raises(PromptError, match=message):
            scored(scorer, bad, 1)
    with pytest.raises(PromptError, match=f"{size} is outside"):
        scorer.score_blocks([5], [[6], [size]])


@pytest.mark.parametrize("rows", [0, 4])
def test_rows_out_of_range_are_a_bug(case: Case, rows: int) -> None:
    with pytest.raises(ValueError, match="from 1 to 3"):
        scored(case.scorer(), [5, 6, 7], rows)


@pytest.mark.parametrize("engine", ["mlx", "toy"])
def test_a_model_has_the_attributes_of_the_port(tiny: LanguageModel, engine: str) -> None:
    model: LanguageModel | ToyModel = tiny if engine == "mlx" else TOY
    assert model.engine == engine and model.name and isinstance(model.blas, str) and model.precision == "float32"
    assert model.vocabulary == model.tokenizer.vocabulary
    assert len(model.vocabulary.pieces) == model.tokenizer.vocab_size
    assert model.stop_ids and all(0 <= i < model.tokenizer.vocab_size for i in model.stop_ids)
    context = model.tokenizer.encode("the draft model")
    assert model.scorer().score(context, 1).shape[-1] >= model.tokenizer.vocab_size
    assert len(context) <= model.max_context
