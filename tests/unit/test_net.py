"""Which way a request goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd import net
from agentd.errors import ConfigError

PROXY = {"HTTPS_PROXY": "http://p:3128", "HTTP_PROXY": "http://q:3128"}


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://a.example", PROXY, "http://p:3128"),
        ("http://a.example", PROXY, "http://q:3128"),
        ("https://a.example", {}, None),
        ("https://a.example", {"https_proxy": "http://low", **PROXY}, "http://low"),
        ("https://a.example", {"ALL_PROXY": "p:1"}, "http://p:1"),
        ("https://a.example", {"HTTPS_PROXY": "", "all_proxy": "http://p"}, "http://p"),
        ("http://a.example", {"REQUEST_METHOD": "GET", "HTTP_PROXY": "http://x"}, None),
        ("http://a.example", {"REQUEST_METHOD": "GET", "http_proxy": "http://x"}, "http://x"),
        ("http://localhost:8", PROXY, None),
        ("http://127.8.8.8:8", PROXY, None),
        ("http://[::1]:8", PROXY, None),
        ("http://a.localhost", PROXY, None),
        ("http://localhost.example", PROXY, "http://q:3128"),
    ],
)
def test_the_way(url: str, environ: dict[str, str], proxy: str | None) -> None:
    assert net.proxy_for(url, environ) == proxy


@pytest.mark.parametrize(
    ("no_proxy", "direct", "proxied"),
    [
        ("*", ["https://a.example"], []),
        ("example", ["https://example", "https://a.example"], ["https://aexample"]),
        (".example", ["https://a.example"], []),
        ("*.example", ["https://a.example"], ["https://b.test"]),
        ("a.example:8443", ["https://a.example:8443"], ["https://a.example"]),
        ("a.example:443", ["https://a.example"], []),
        ("10.0.0.0/8", ["https://10.1.2.3"], ["https://11.1.2.3", "https://a.example"]),
        ("fd07:b51a:cc66:f0::/64", ["https://[fd07:b51a:cc66:f0::9]"], ["https://[fd08::1]"]),
        ("[fd07::1]", ["https://[fd07::1]"], ["https://[fd07::2]"]),
        ("[fd07::1]:8443", ["https://[fd07::1]:8443"], ["https://[fd07::1]"]),
        ("fd07::1, 1.2.3.4", ["https://[fd07::1]", "https://1.2.3.4"], ["https://1.2.3.5"]),
        ("A.Example", ["https://a.EXAMPLE"], []),
        ("  ,, b", ["https://b"], ["https://a"]),
        (":", [], ["https://a"]),
    ],
)
def test_no_proxy(no_proxy: str, direct: list[str], proxied: list[str]) -> None:
    for url in direct + proxied:
        found = net.proxy_for(url, {**PROXY, "NO_PROXY": no_proxy})
        assert (found is None) is (url in direct), url


@given(st.text(max_size=60), st.sampled_from(["https://a.example", "https://[fd07::1]", "http://1.2.3.4:5"]))
def test_any_no_proxy_is_safe(no_proxy: str, url: str) -> None:
    net.proxy_for(url, {**PROXY, "NO_PROXY": no_proxy})


@given(st.text(max_size=40))
def test_any_proxy_is_used_or_named(value: str) -> None:
    environ = {"HTTPS_PROXY": value}
    try:
        used = net.proxy_for("https://a.example", environ)
    except ConfigError as e:
        assert "HTTPS_PROXY" in str(e)
        assert net.proxy_findings(environ) == [("HTTPS_PROXY", str(e).removeprefix("HTTPS_PROXY "))]
    else:
        assert bool(used) is bool(value.strip()) and net.proxy_findings(environ) == []


def test_what_is_wrong_is_said_without_the_value() -> None:
    environ = {"ALL_PROXY": "socks5://u:pw@h:1", "HTTP_PROXY": "not a url pw", "https_proxy": "ftp://pw"}
    found = dict(net.proxy_findings(environ))
    assert set(found) == set(environ) and "pw" not in str(found.values()) and "SOCKS" in found["ALL_PROXY"]


def test_trust_is_made_once_and_names_what_cannot_be_read() -> None:
    assert net.tls_context() is net.tls_context()
    with pytest.raises(ConfigError, match="SSL_CERT_FILE"):
        net.tls_context(None, "/nonexistent")
    with pytest.raises(ConfigError, match="tls_ca"):
        net.tls_context("/nonexistent")
    with pytest.raises(ConfigError, match="tls_ca"):
        net.tls_context(__file__)
