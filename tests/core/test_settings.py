"""Every invalid value is refused with its rule and value; the order of sources is fixed."""

import dataclasses
import math
import re
from pathlib import Path

import pytest

from specviz.core import names
from specviz.core.connection import Secret
from specviz.core.errors import SettingsError
from specviz.core.names import draft_name
from specviz.core.settings import ENVIRONMENT, SECRETS, Settings
from specviz.setup.environment import environment, secrets


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("k", 0, "K must be a whole number from 1 to 16, not 0"),
        ("k", 99, "not 99"),
        ("k", 4.0, "not 4.0"),
        ("k", True, "not True"),
        ("temperature", -1, "temperature must be a number from 0 to 2, not -1"),
        ("temperature", math.nan, "not nan"),
        ("temperature", math.inf, "not inf"),
        ("temperature", 2.1, "not 2.1"),
        ("max_tokens", 0, "max tokens must be a whole number from 1 to 1048576, not 0"),
        ("max_tokens", 1_048_577, "not 1048577"),
        ("top_k", -1, "top-k"),
        ("top_p", 0, "top-p"),
        ("top_p", 1.1, "top-p"),
        ("top_p", math.nan, "top-p"),
        ("rule", "typical", "Unknown rule 'typical'"),
        ("tau", 0, "tau"),
        ("seed", -1, "seed"),
        ("min_confidence", -0.1, "min confidence must be at least 0 and below 1, not -0.1"),
        ("min_confidence", 1, "below 1, not 1"),
        ("min_confidence", math.nan, "not nan"),
        ("min_confidence", True, "not True"),
        ("simulated_rtt_ms", -1, "the simulated RTT in ms must be a number from 0 to 2000, not -1"),
        ("simulated_rtt_ms", 2000.5, "not 2000.5"),
        ("simulated_rtt_ms", math.nan, "not nan"),
        ("simulated_jitter_ms", -0.5, "the simulated jitter in ms must be a number from 0 to 1000, not -0.5"),
        ("simulated_jitter_ms", 1001, "not 1001"),
        ("simulated_jitter_ms", 5, "at most the simulated RTT, 0 ms, not 5 ms"),
        ("ngram_min", 0, "shortest n-gram"),
        ("ngram_max", 0, "longest n-gram"),
        ("target", " ", "target has no name"),
        ("draft", "", "draft has no name"),
        ("draft", draft_name(" "), "draft has no name"),
        ("stop", ("",), "stop string is empty"),
    ],
)
def test_a_bad_value_is_named_with_its_rule(field: str, value: object, words: str) -> None:
    with pytest.raises(SettingsError, match=words.replace("(", r"\(")):
        Settings(**{field: value})  # type: ignore[arg-type]


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().k = 5  # type: ignore[misc]


def test_command_line_beats_environment_beats_dotenv_beats_defaults(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    for variable in ENVIRONMENT:
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / ".env").write_text("SPECULATION_K=2\nTEMPERATURE=0.5\nMAX_TOKENS=32\n")
    monkeypatch.setenv("TEMPERATURE", "0.7")
    monkeypatch.setenv("SPECULATION_K", "3")
    found = Settings.resolve({"k": 9, "temperature": None}, environment=environment(tmp_path))
    assert (found.k, found.temperature, found.max_tokens, found.rule) == (9, 0.7, 32, "probabilistic")


def test_the_names_of_speculatoviz_keep_their_meaning() -> None:
    found = Settings.resolve(
        environment={
            "CEREBRAS_TARGET_MODEL": "gpt-oss-120b",
            "DRAFT_MODEL": "mlx-community/Llama-3.2-1B-Instruct-4bit",
            "SPECULATION_K": "8",
            "TEMPERATURE": "0",
            "MAX_TOKENS": "64",
        }
    )
    assert found.remote_model == "gpt-oss-120b"
    assert found.draft == "model:mlx-community/Llama-3.2-1B-Instruct-4bit"
    assert (found.k, found.temperature, found.max_tokens) == (8, 0.0, 64)


def test_seed_0_from_the_environment_is_0() -> None:
    assert Settings.resolve(environment={"SPECVIZ_SEED": "0"}).seed == 0


@pytest.mark.parametrize(
    ("variable", "text"), [("SPECULATION_K", "four"), ("TEMPERATURE", "warm"), ("MAX_TOKENS", "1e3")]
)
def test_a_bad_text_is_named_with_its_variable(variable: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable} must be .* not '{text}'"):
        Settings.resolve(environment={variable: text})


def test_an_empty_variable_is_not_given() -> None:
    assert Settings.resolve(environment={"SPECULATION_K": " "}).k == Settings().k


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(SettingsError, match="'kk'"):
        Settings.resolve({"kk": 4})


def test_json_has_every_field() -> None:
    data = Settings(stop=("a", "b"), temperature=0.8).to_json()
    assert data["stop"] == ["a", "b"] and Settings(**data | {"stop": ("a", "b")}).to_json() == data


def test_a_system_prompt_and_a_raw_prompt_exclude_each_other() -> None:
    with pytest.raises(SettingsError, match="chat template"):
        Settings(system="Be brief.", raw=True)


@pytest.mark.parametrize("bad", [{"system": "\udcff"}, {"stop": ("\udcff",)}])
def test_what_is_no_text_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="not valid text"):
        Settings(**bad)  # type: ignore[arg-type]


def test_a_damaged_dotenv_is_an_error_with_a_remedy(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / ".env").write_bytes(b"TEMPERATURE=\xff")
    with pytest.raises(SettingsError, match=".env cannot be read"):
        environment(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_dotenv_that_an_editor_or_powershell_saved_is_read(tmp_path, monkeypatch, encoding: str) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.delenv("TEMPERATURE", raising=False)
    (tmp_path / ".env").write_bytes("TEMPERATURE=0.5\r\nMAX_TOKENS=32\r\n".encode(encoding))
    assert environment(tmp_path)["TEMPERATURE"] == "0.5"


def test_secrets_of_dotenv_are_known(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.delenv("CEREBRAS_API_KEY", raising=False)
    (tmp_path / ".env").write_text("CEREBRAS_API_KEY=csk-planted-123\n")
    assert secrets(environment(tmp_path)).strike("with csk-planted-123") == "with [secret]"


def test_what_the_environment_and_a_visitor_keep_secret_is_struck_out() -> None:
    variables = {"TARGET_API_KEY": "sk-planted-1", "TARGET_BASE_URL": "https://me:pass%2Fword@host/v1"}
    struck = secrets(variables, Secret("typed-in-2")).strike("sk-planted-1 pass/word typed-in-2 host")
    assert struck == "[secret] [secret] [secret] host"
    assert not secrets({"TARGET_API_KEY": "EMPTY"}, Secret("none"))


def test_no_setting_is_a_secret() -> None:
    assert not set(SECRETS) & set(ENVIRONMENT)


def test_the_example_file_lists_every_variable() -> None:
    example = (Path(__file__).parents[2] / ".env.example").read_text()
    listed = set(re.findall(r"^(?:# )?([A-Z_]+)=", example, re.MULTILINE))
    assert {*ENVIRONMENT, *SECRETS, "SPECVIZ_CACHE", "SPECVIZ_BLAS"} <= listed


def test_draft_names() -> None:
    assert [draft_name(n) for n in ("ngram", "none", "toy", "auto", "model:x", "smollm2-135m")] == [
        "ngram", "none", "toy", "auto", "model:x", "model:smollm2-135m",
    ]  # fmt: skip


def test_draft_names_behind_lookup() -> None:
    assert [draft_name(n) for n in ("ngram+toy", " ngram+smollm2-draft", "ngram+model:x", "ngram+org/name")] == [
        "ngram+toy", "ngram+model:smollm2-draft", "ngram+model:x", "ngram+model:org/name",
    ]  # fmt: skip


def test_a_draft_that_nobody_chose_is_the_targets_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_DEFAULT_DRAFTS", {"local:small": "ngram+model:its-draft"})
    assert Settings(target="local:small").draft == "ngram+model:its-draft"
    assert Settings(target="local:large").draft == "ngram"
    assert Settings(target="local:small", draft="ngram").draft == "ngram"
    found = Settings.resolve({"draft": None, "target": "local:small"}, environment={"DRAFT_MODEL": " auto "})
    assert found.draft == found.to_json()["draft"] == "ngram+model:its-draft"


def test_an_early_end_that_nobody_chose_is_the_drafts_default() -> None:
    assert Settings(draft="ngram+model:smollm2-draft").min_confidence == 0.4
    assert Settings(draft="model:smollm2-draft", min_confidence=0.0).min_confidence == 0.0
    assert Settings(draft="model:smollm2-135m").min_confidence == Settings(target="toy").min_confidence == 0.0


def test_min_confidence_from_the_environment() -> None:
    assert Settings.resolve(environment={"SPECVIZ_MIN_CONFIDENCE": "0.3"}).min_confidence == 0.3
    with pytest.raises(SettingsError, match="SPECVIZ_MIN_CONFIDENCE must be a number, not 'high'"):
        Settings.resolve(environment={"SPECVIZ_MIN_CONFIDENCE": "high"})


def test_jitter_is_at_most_the_round_trip() -> None:
    assert Settings(simulated_rtt_ms=80, simulated_jitter_ms=80).simulated_jitter_ms == 80
    with pytest.raises(SettingsError, match="at most the simulated RTT, 80 ms, not 80.5 ms: .* Lower the jitter"):
        Settings(simulated_rtt_ms=80, simulated_jitter_ms=80.5)


@pytest.mark.parametrize("target", ["openai:some-model", "openai", "openai:"])
def test_a_network_in_front_of_a_server_is_refused_with_the_remedy(target: str) -> None:
    with pytest.raises(SettingsError, match=f"{target} has a real one.*at 0, or use a local: target or toy"):
        Settings(target=target, simulated_rtt_ms=1)
    with pytest.raises(SettingsError, match="openai:m has a real one"):
        Settings.resolve({"target": "openai"}, environment={"TARGET_MODEL": "m", "SPECVIZ_SIMULATED_RTT_MS": "1"})
    assert Settings(target=target, simulated_rtt_ms=0).target == target


def test_a_network_from_the_environment_and_into_json() -> None:
    named = {"SPECVIZ_SIMULATED_RTT_MS": "80", "SPECVIZ_SIMULATED_JITTER_MS": "2.5"}
    found = Settings.resolve({"simulated_rtt_ms": 100.0}, environment=named)
    assert (found.simulated_rtt_ms, found.simulated_jitter_ms) == (100, 2.5)
    assert found.to_json() | {"simulated_rtt_ms": 80.0} == Settings.resolve(environment=named).to_json()
    with pytest.raises(SettingsError, match="SPECVIZ_SIMULATED_RTT_MS must be a number, not 'far'"):
        Settings.resolve(environment={"SPECVIZ_SIMULATED_RTT_MS": "far"})


def test_without_the_network_everything_else_stays() -> None:
    there = Settings(target="toy", k=7, seed=3, simulated_rtt_ms=80, simulated_jitter_ms=20)
    assert there.without_network() == Settings(target="toy", k=7, seed=3)
