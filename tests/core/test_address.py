"""What people mistype in an address, and which hosts are this machine."""

import pytest

from specviz.core.connection import connection
from specviz.core.errors import SettingsError
from specviz.core.settings import Settings


def shown(url: str) -> str:
    return Settings(target="openai:m", draft="ngram", base_url=url).base_url


#: Each kind of slip (httpx#646 and others), with what only its own sentence says.
SLIPS = {
    "localhost:8000/v1": "neither stands in front",
    "127.0.0.1:8000": "neither stands in front",
    "http:/127.0.0.1:8000/v1": "neither stands in front",
    "ws://127.0.0.1:8000/v1": "another scheme",
    "http://https://example.com/v1": "twice",
    "http:///v1": "no host",
    "http://:8000/v1": "no host",
    "https://?key=sk-planted": "no host",
    "http://127.0.0.1:80000/v1": "port",
    "http://127.0.0.1:0/v1": "port",
    "http://127.0.0.1:8o00/v1": "port",
    "http://::1:8000/v1": "brackets",
    "http://[::1:8000/v1": "brackets",
    "http://exam..ple.com/v1": "neither a name nor an IP address",
    "http://192.168.0.256/v1": "neither a name nor an IP address",
    "http://127.0.0.1:8000/v1/completions": "path of a single call",
    "https://example.com/v1/chat/completions/": "path of a single call",
    "http://127.0.0.1:8000/my model": "no URL can have",
    "http://exa\nmple.com/v1": "no URL can have",
    "http://{host}:8000/v1": "no URL can have",
    '"http://127.0.0.1:8000/v1"': "no URL can have",
    "http://me:80/sk-planted@127.0.0.1/v1": "an @ behind its host",
}


@pytest.mark.parametrize("url", SLIPS)
def test_each_slip_in_an_address_has_its_own_sentence(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        shown(url)
    assert SLIPS[url] in str(caught.value) and caught.value.remedy and "planted" not in str(caught.value)
    assert [said for said in set(SLIPS.values()) if said in str(caught.value)] == [SLIPS[url]]


@pytest.mark.parametrize(
    ("url", "left"),
    [
        (" https://Models.Example.com/v1/ ", "https://models.example.com/v1"),
        ("http://me:p%2Fw@h_1-x.local:8000/V1?a=b@c#d", "http://h_1-x.local:8000/V1"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://10.0.0.1:/openai", "http://10.0.0.1/openai"),
        ("http://completions./v1", "http://completions./v1"),
        ("", ""),
    ],
)
def test_what_is_shown_of_an_address(url: str, left: str) -> None:
    assert shown(url) == left


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True), ("127.0.0.1", True), ("127.8.9.10", True), ("[::1]", True), ("[::ffff:127.0.0.1]", True),
        ("0.0.0.0", True), ("10.0.0.1", False), ("[fe80::1]", False), ("localhost.example.com", False),
    ],
)  # fmt: skip
def test_the_key_of_this_machine_goes_to_every_address_of_it(host: str, here: bool) -> None:
    settings = Settings(target="openai:m", draft="ngram", base_url=f"http://{host}:8000/v1")
    assert bool(connection(settings, {"TARGET_API_KEY": "sk-planted"}).key) is here


def test_the_usual_port_may_be_written_or_left_out() -> None:
    variables = {"TARGET_BASE_URL": "https://example.com:443/v1", "TARGET_API_KEY": "sk-planted"}
    settings = Settings(target="openai:m", draft="ngram", base_url="https://example.com/v1")
    assert connection(settings, variables).key
