"""What the egress guard says of an address and of a URL."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.security.egress import EgressRefused, check_url, refusal, vet

FORBIDDEN = [
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.1.1", "169.254.169.254", "172.31.0.1", "192.0.0.9",
    "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "203.0.113.9", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1",
    "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "168.63.129.16", "100.100.100.200",
    "not-an-address", "", "0x7f000001", "2130706433", "127.1", "010.0.0.1",
]  # fmt: skip
ALLOWED = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8",
           "64:ff9b::8.8.8.8"]  # fmt: skip
NEVER = ["169.254.169.254", "fe80::1", "fd00:ec2::254", "100.100.100.200", "64:ff9b::a9fe:a9fe", "0.0.0.0",
         "::ffff:169.254.169.254", "224.0.0.1", "255.255.255.255", "2002:a9fe:a9fe::", "::", "240.1.1.1"]  # fmt: skip


@pytest.mark.parametrize("address", FORBIDDEN)
def test_refuses_what_is_not_global(address: str) -> None:
    assert refusal(address)


@pytest.mark.parametrize("address", ALLOWED)
def test_admits_global_addresses(address: str) -> None:
    assert refusal(address) == ""


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "192.168.0.1", "100.64.0.1", "::1", "fd12::1",
                                     "::ffff:10.0.0.1", "64:ff9b::10.0.0.1"])  # fmt: skip
def test_private_ranges_are_a_decision(address: str) -> None:
    assert refusal(address)
    assert refusal(address, allow_private=True) == ""


@pytest.mark.parametrize("address", NEVER)
def test_metadata_and_no_unicast_are_never_admitted(address: str) -> None:
    assert refusal(address, allow_private=True)


@given(st.ip_addresses(v=4))
def test_every_disguise_of_an_address_is_judged_as_the_address(ip: ipaddress.IPv4Address) -> None:
    plain = refusal(str(ip))
    assert refusal(f"::ffff:{ip}") == plain
    assert refusal(f"64:ff9b::{ip}") == plain
    # Tunnels that hide an IPv4 address are refused whatever is inside.
    assert refusal(str(ipaddress.IPv6Address((0x2002 << 112) | int(ip) << 80)), allow_private=True)
    assert refusal(str(ipaddress.IPv6Address(int(ip)))) if int(ip) > 1 else True


@given(st.ip_addresses())
def test_nothing_admitted_is_local(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if not refusal(str(ip)):
        assert not (ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_unspecified)
        assert not ip.is_private


@given(st.text())
def test_any_text_gets_an_answer(text: str) -> None:
    assert isinstance(refusal(text), str)
    try:
        check_url(text)
    except EgressRefused as e:
        assert e.message


@pytest.mark.parametrize("url", ["ftp://example.com/", "file:///etc/passwd", "https://user:pw@example.com/", "https://",
                                 "https://[::1", "https://example.com:99999/", "gopher://x", "//example.com/", "",
                                 "http://user@example.com"])  # fmt: skip
def test_refuses_urls(url: str) -> None:
    with pytest.raises(EgressRefused) as refused:
        check_url(url)
    assert "pw" not in str(refused.value)


def test_one_forbidden_address_refuses_the_name() -> None:
    async def both(host: str, port: int) -> list[str]:
        return ["1.1.1.1", "10.0.0.1"]

    with pytest.raises(EgressRefused, match=r"rebind\.example: 10\.0\.0\.1 is private"):
        asyncio.run(vet("rebind.example", 443, resolve=both))


def test_a_name_without_an_address_is_an_error_of_the_network() -> None:
    async def none(host: str, port: int) -> list[str]:
        return []

    with pytest.raises(socket.gaierror):
        asyncio.run(vet("nowhere.example", 443, resolve=none))


def test_an_impossible_name_is_refused() -> None:
    with pytest.raises(EgressRefused):
        asyncio.run(vet("a" * 70 + ".example\udc00", 443))
