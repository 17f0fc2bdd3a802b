"""Which model of a repository a name means."""

from __future__ import annotations

import pytest

from specviz.core.errors import UnknownModelError
from specviz.store.gguf.variants import PREFERRED, choose, matching, variants_of


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Llama-3.2-1B-Instruct-Q4_K_M.gguf", "Q4_K_M"),
        ("qwen2.5-0.5b-instruct-q8_0.gguf", "Q8_0"),
        ("Qwen2.5-0.5B-Instruct_Q5_K_M.gguf", "Q5_K_M"),
        ("SmolLM2-135M-Instruct.Q4_1.GGUF", "Q4_1"),
        ("Some-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("some.i1-IQ3_XXS.gguf", "IQ3_XXS"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("m-fp16.gguf", "FP16"),
        ("BF16/Some-00001-of-00002.gguf", "BF16"),
        ("Q8_0/other.gguf", "Q8_0"),
        ("sub/model.gguf", "model"),
    ],
)
def test_the_quantization_of_a_file(name: str, label: str) -> None:
    (variant,) = variants_of([name])
    assert variant.label == label and variant.files == (name,)


def test_parts_are_one_model_and_their_number_is_bounded() -> None:
    names = [f"m-Q8_0-{n:05}-of-00003.gguf" for n in (3, 1)]
    (variant,) = variants_of(names)
    assert variant.files == (names[1], names[0]) and variant.missing == ("m-Q8_0-00002-of-00003.gguf",)
    assert [v.missing for v in variants_of(["m-00001-of-99999.gguf"])] == [()]
    assert variants_of(["m-00004-of-00003.gguf"]) == []


@pytest.mark.parametrize(
    ("tag", "label"),
    [("q4_k_xl", "Q4_K_XL"), ("UD-Q4_K_XL", "UD-Q4_K_XL"), ("ud-q2_k_xl", "UD-Q2_K_XL"), ("Q2_K_XL", "UD-Q2_K_XL")],
)
def test_the_nearest_meaning_of_a_tag_is_taken(tag: str, label: str) -> None:
    there = variants_of(["m-UD-Q4_K_XL.gguf", "m-Q4_K_XL.gguf", "m-UD-Q2_K_XL.gguf"])
    assert choose(there, tag, "org/m").label == label


def test_without_a_tag_the_stated_order_holds() -> None:
    names = [f"m-{label}.gguf" for label in (*PREFERRED, "Q3_K_S")]
    for label in PREFERRED:
        assert choose(variants_of(names), "", "org/m").label == label
        names.remove(f"m-{label}.gguf")
    assert choose(variants_of(names), "", "org/m").label == "Q3_K_S", "the only one"
    names.append("m-Q2_K.gguf")
    with pytest.raises(UnknownModelError, match="No quantization is given, and there are 2 models") as caught:
        choose(variants_of(names), "", "org/m")
    assert "m-Q2_K.gguf, m-Q3_K_S.gguf" in caught.value.remedy


def test_a_part_of_a_word_is_no_match() -> None:
    there = variants_of(["m-Q4_K_M.gguf", "m-Q4_K_S.gguf"])
    assert matching(there, "Q4") == [] and matching(there, "Q4_K") == []


def test_a_long_list_is_shown_in_part() -> None:
    there = variants_of([f"model-{n}.gguf" for n in range(5000)])
    with pytest.raises(UnknownModelError) as caught:
        choose(there, "Q8_0", "org/m")
    assert "and 4960 more" in caught.value.remedy and len(caught.value.remedy) < 1000


def test_a_repository_without_models() -> None:
    with pytest.raises(UnknownModelError, match="has no GGUF model"):
        choose(variants_of(["README.md", "mmproj-F16.gguf", "imatrix.gguf"]), "", "org/m")
