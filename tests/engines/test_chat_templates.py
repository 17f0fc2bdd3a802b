"""The built-in chat formats, compared character by character."""

import pytest

from specviz.engines.chat_templates import chatml, format_of, harmony, llama3
from specviz.engines.tokenizer import Format, ModelTokenizer
from specviz.store import store


def test_llama3() -> None:
    assert llama3("Hi") == (
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )
    assert llama3(" Hi\n", "Be brief. ") == (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )


def test_chatml() -> None:
    assert chatml("Hi") == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert chatml("Hi", "Be brief.") == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_harmony() -> None:
    model = (
        "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
        "Knowledge cutoff: 2024-06\n\nReasoning: medium\n\n"
        "# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>"
    )
    assert harmony("Hi") == f"{model}<|start|>user<|message|>Hi<|end|><|start|>assistant"
    assert harmony("Hi", "Be brief.") == (
        f"{model}<|start|>developer<|message|># Instructions\n\nBe brief.<|end|>"
        "<|start|>user<|message|>Hi<|end|><|start|>assistant"
    )


BEFORE = [("Hi", "Hello."), ("Why?", "So.")]


def test_earlier_turns_stand_between_the_system_prompt_and_the_prompt() -> None:
    llama = "<|start_header_id|>{}<|end_header_id|>\n\n{}<|eot_id|>"
    said = [("system", "S"), ("user", "Hi"), ("assistant", "Hello."), ("user", "Why?"), ("assistant", "So.")]
    asked = [*said, ("user", "And?")]
    assert llama3("And?", "S", BEFORE) == (
        "<|begin_of_text|>"
        + "".join(llama.format(*t) for t in asked)
        + "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )
    assert chatml("And?", "S", BEFORE) == (
        "".join("<|im_start|>{}\n{}<|im_end|>\n".format(*t) for t in asked) + "<|im_start|>assistant\n"
    )
    assert harmony("And?", "", BEFORE).endswith(
        "<|start|>user<|message|>Hi<|end|><|start|>assistant<|channel|>final<|message|>Hello.<|end|>"
        "<|start|>user<|message|>Why?<|end|><|start|>assistant<|channel|>final<|message|>So.<|end|>"
        "<|start|>user<|message|>And?<|end|><|start|>assistant"
    )
    for made in (llama3, chatml, harmony):
        assert made("And?", "S", ()) == made("And?", "S")


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("llama3.1-8b", llama3),
        ("llama-3.3-70b", llama3),
        ("meta-llama/Llama-3.3-70B-Instruct", llama3),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo", llama3),
        ("accounts/fireworks/models/llama-v3p1-8b-instruct", llama3),
        ("qwen-3-32b", chatml),
        ("Qwen/Qwen2.5-7B-Instruct", chatml),
        ("smollm2-135m", chatml),
        ("NousResearch/Hermes-3-Llama-3.1-8B", chatml),
        ("gpt-oss-120b", harmony),
        ("openai/gpt-oss-20b", harmony),
        ("meta-llama/Llama-3.1-8B", None),
        ("Qwen/Qwen3-8B-Base", None),
        ("deepseek-r1-distill-llama-3-70b", None),
        ("llama-2-7b-chat", None),
        ("my-database-model", None),
        ("default_model", None),
        ("", None),
    ],
)
def test_the_format_follows_from_the_name_of_a_model(name: str, made: Format | None) -> None:
    assert format_of(name) is made


@pytest.mark.smollm
def test_chatml_is_what_smollms_own_template_gives() -> None:
    tokenizer = ModelTokenizer(store.pull("smollm2-135m"))
    assert tokenizer.chat("Why?", "Be brief.") == chatml("Why?", "Be brief.")
    assert tokenizer.chat("And?", "Be brief.", BEFORE) == chatml("And?", "Be brief.", BEFORE)
    ids = tokenizer.encode(chatml("Why?", "Be brief."))
    assert [tokenizer.token_name(i) for i in ids].count("<|im_start|>") == 3, "its special tokens are parsed as such"
