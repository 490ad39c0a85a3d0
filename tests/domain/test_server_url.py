"""proxy.2: what a proxy URL may be. creds.3 and vault.1 share the grammar of hosts and ports."""

from __future__ import annotations

import ipaddress
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.errors import ConfigError
from publish.domain.server_url import Origin, parse_origin, parse_proxy_url, plaintext_risk


@pytest.mark.parametrize(
    "url",
    [
        "http://proxy.example",
        "http://proxy.example:3128",
        "https://proxy.example:443",
        "http://localhost:1",
        "http://proxy:65535",
        "http://my_proxy:8080",
        "http://proxy.example.:3128",
        "http://10.0.0.1:3128",
        "http://[::1]:3128",
        "http://[fe80::1:2]",
        "http://[::ffff:10.0.0.1]:80",
        "http://[1:2:3:4:5:6:7:8]",
        "http://[1:2:3:4:5:6:10.0.0.1]",
        "http://[1::]",
        "http://1.example",
        "http://" + ".".join(["a" * 63] * 3 + ["b" * 61]),
    ],
)
def test_a_host_with_an_optional_port_is_kept_unchanged(url: str) -> None:
    assert parse_proxy_url(url) == url


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("http://user:hunter2@proxy.example", "user name"),
        ("http://hunter2@proxy.example:3128", "user name"),
        ("http://@proxy.example", "user name"),
        ("http://proxy.example/", "path"),
        ("http://proxy.example/hunter2", "path"),
        ("http://proxy.example?hunter2", "query"),
        ("http://proxy.example#hunter2", "fragment"),
        ("socks5://proxy.example", "must start with"),
        ("HTTP://proxy.example", "must start with"),
        ("socks5://user:hunter2@proxy.example", "must start with"),
        ("proxy.example:3128", "must start with"),
        ("//proxy.example", "must start with"),
        ("http:proxy.example", "must start with"),
        (" http://proxy.example", "must start with"),
        ("", "must start with"),
        ("http://", "host"),
        ("http://:3128", "host"),
        ("http://proxy.example:", "port"),
        ("http://proxy.example:0", "port"),
        ("http://proxy.example:080", "port"),
        ("http://proxy.example:99999", "port over 65535"),
        ("http://proxy.example:65536", "port over 65535"),
        ("http://proxy.example:123456", "port"),
        ("http://proxy.example:3128:3128", "port"),
        ("http://proxy.example:+1", "port"),
        ("http://proxy.example:٣", "port"),
        ("http://no..such", "host"),
        ("http://.example", "host"),
        ("http://proxy.example..", "host"),
        ("http://-proxy.example", "host"),
        ("http://proxy-.example", "host"),
        ("http://" + "a" * 64, "host"),
        ("http://" + ".".join(["a" * 63] * 3 + ["b" * 62]), "host"),
        ("http://pro xy", "host"),
        ("http://proxy\n", "host"),
        ("http://proxy.example\n", "host"),
        ("http://pro\txy", "host"),
        ("http://pro%78y", "host"),
        ("http://pröxy.example", "host"),
        ("http://proxy\\x", "host"),
        ("http://1.2.3", "host"),
        ("http://1.2.3.256", "host"),
        ("http://1.2.3.4.5", "host"),
        ("http://01.2.3.4", "host"),
        ("http://1234", "host"),
        ("http://1.2.3.4.", "host"),
        ("http://::1", "port"),
        ("http://[::1", "port"),
        ("http://[]", "host"),
        ("http://[1:2]", "host"),
        ("http://[1::2::3]", "host"),
        ("http://[1:2:3:4:5:6:7:8:9]", "host"),
        ("http://[1:2:3:4::5:6:7:8]", "host"),
        ("http://[::12345]", "host"),
        ("http://[10.0.0.1::]", "host"),
        ("http://[fe80::1%25eth0]", "host"),
        ("http://[::1]x", "port"),
    ],
)
def test_any_other_url_is_refused_for_its_reason_and_never_quoted(url: str, fault: str) -> None:
    """proxy.2, cli.9."""
    with pytest.raises(ConfigError, match=r"invalid proxy URL \(expected http://HOST\[:PORT\] or https") as raised:
        parse_proxy_url(url)
    said = str(raised.value).partition("): ")[2]
    assert fault in said
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


@given(st.ip_addresses(v=6))
def test_every_ipv6_address_is_a_host(address: ipaddress.IPv6Address) -> None:
    for text in (str(address), address.exploded):
        assert parse_proxy_url(f"http://[{text}]:1") == f"http://[{text}]:1"


@given(st.text(alphabet="0123456789abcdef:.", max_size=20))
def test_brackets_hold_exactly_the_ipv6_addresses(text: str) -> None:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        with pytest.raises(ConfigError):
            parse_proxy_url(f"http://[{text}]")
    else:
        parse_proxy_url(f"http://[{text}]")


@given(st.text())
def test_any_text_is_formatted_unchanged_or_raises_one_error(text: str) -> None:
    try:
        origin, rest = Origin.split(text)
    except ConfigError:
        return
    assert str(origin) + rest == text


@pytest.mark.parametrize(
    "url",
    [
        "https://store.example",
        "http://localhost:9000",
        "http://LOCALHOST.",
        "http://127.0.0.1:9000",
        "http://127.8.8.8",
        "http://[::1]:9000",
    ],
)
def test_encrypted_and_local_connections_are_not_a_risk(url: str) -> None:
    """s3.16"""
    assert plaintext_risk(parse_origin(url), "read") is None


@pytest.mark.parametrize(
    "url", ["http://store.example:9000", "http://10.0.0.1", "http://[fe80::1]", "http://localhost.example"]
)
def test_an_unencrypted_connection_through_a_network_is_a_risk(url: str) -> None:
    """s3.16"""
    note = plaintext_risk(parse_origin(url), "read it")
    assert note == f"the connection to {url} is not encrypted: an attacker on the network can read it (use https)"
