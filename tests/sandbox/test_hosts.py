"""Canonical hosts, the operator's list, and public addresses."""

from __future__ import annotations

import ipaddress

import pytest

from oh_jupyter.errors import ConfigError, HostError
from oh_jupyter.sandbox.hosts import PRESETS, Endpoint, is_public, parse_endpoint, parse_hosts


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("Example.ORG:443", "example.org", 443),
        ("example.org.:443", "example.org", 443),
        ("bücher.example:80", "xn--bcher-kva.example", 80),
        ("\uff45xample\u3002org:80", "example.org", 80),
        ("_dmarc.example.org:80", "_dmarc.example.org", 80),
        ("192.0.2.7:1", "192.0.2.7", 1),
        ("192.0.2.7.:1", "192.0.2.7", 1),
        ("[2001:DB8:0::1]:65535", "2001:db8::1", 65535),
        ("localhost:80", "127.0.0.1", 80),
        ("anything.localhost:80", "127.0.0.1", 80),
    ],
)
def test_canonical_forms(text: str, host: str, port: int) -> None:
    assert parse_endpoint(text) == Endpoint(host, port)
    assert parse_endpoint(str(Endpoint(host, port))) == Endpoint(host, port)


@pytest.mark.parametrize(
    "host",
    [
        *("", ".", "..", "a..b", ".a", "a b", " a", "a\t", "a\n", "a\r", "-a.org", "a-.org"),
        *("evil\0.pypi.org", "pypi.org\0.evil", "a\x01b", "a\x7f", "pypi.org\u2028.evil"),
        *("a%2eb", "%00", "user@pypi.org", "user:password@pypi.org", "a/b", "a\\b", "a?b", "a#b"),
        *("127.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1", "1.2.3"),
        *(
            "127.0.0.01",
            "1.2.3.4.5",
            "256.0.0.1",
            "0x7f.0.0.1",
            "a.0x",
            "a.1",
            "\uff11\uff12\uff17.1",
        ),
        *("[::1%lo]", "[fe80::1%25eth0]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::1", "::1]"),
        *("[127.0.0.1]", "[]", "::1", "faß.example", "a\u200db.example", "℀.example", "x" * 64),
        *("/var/run/docker.sock", "unix", "unix:/var/run/docker.sock", "a." * 127 + "aa"),
    ],
    ids=ascii,
)
def test_unusual_hosts_are_refused(host: str) -> None:
    if host == "unix":  # a name, but never without a port
        with pytest.raises(HostError):
            parse_endpoint(host)
        return
    with pytest.raises(HostError) as refusal:
        parse_endpoint(f"{host}:443")
    assert refusal.value.status == 400
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize(
    "port", ["", "0", "65536", "-1", "+1", " 1", "1 ", "\u0661", "1.0", "999999"]
)
def test_unusual_ports_are_refused(port: str) -> None:
    with pytest.raises(HostError):
        parse_endpoint(f"example.org:{port}")


def listed(entries: str, endpoint: str) -> bool:
    return parse_hosts(tuple(entries.split(","))).lists(parse_endpoint(endpoint))


@pytest.mark.parametrize(
    ("entries", "endpoint", "expected"),
    [
        ("example.org", "example.org:443", True),
        (" EXAMPLE.org. ", "example.org:80", True),
        ("example.org", "www.example.org:443", False),
        ("example.org", "example.org:8443", False),
        ("example.org:8443", "example.org:8443", True),
        ("example.org:8443", "example.org:443", False),
        ("*.example.org", "a.b.example.org:443", True),
        ("*.example.org", "example.org:443", False),
        ("*.example.org", "evilexample.org:443", False),
        ("*.example.org:22", "a.example.org:22", True),
        ("bücher.example", "xn--bcher-kva.example:443", True),
        ("10.0.0.0/8", "10.9.8.7:80", True),
        ("10.0.0.0/8", "11.0.0.1:80", False),
        ("10.0.0.1", "10.0.0.1:80", True),
        ("10.0.0.1:8080", "10.0.0.1:80", False),
        ("[fd00::]/8", "[fd00::1]:80", True),
        ("[::1]:8000", "[::1]:8000", True),
        ("localhost:8000", "127.0.0.1:8000", True),
        ("pypi", "files.pythonhosted.org:443", True),
        ("pypi", "github.com:443", False),
        ("pypi,github", "github.com:443", True),
        ("0.0.0.0/0", "example.org:443", False),
    ],
)
def test_the_list(entries: str, endpoint: str, expected: bool) -> None:
    assert listed(entries, endpoint) is expected


@pytest.mark.parametrize(
    "entry",
    [
        *("", "*", "*.", "unknown", "a b", "http://example.org", "example.org/path", "user@a.org"),
        *(
            "example.org:0",
            "example.org:99999",
            "example.org:x",
            "::1",
            "10.0.0.1/8",
            "10.0.0.0/33",
        ),
        *("*.10.0.0.1", "example.org/8", "0x7f.1", "evil\0.org", "a.*.org"),
    ],
    ids=ascii,
)
def test_an_invalid_entry(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"sandbox_hosts has the entry .* Presets: pypi, "):
        parse_hosts((entry,))


def test_presets_are_valid() -> None:
    assert len(parse_hosts(tuple(PRESETS)).entries) == sum(map(len, PRESETS.values()))


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.9.9.9"),
        *("169.254.169.254", "168.63.129.16", "172.16.0.1", "192.0.0.192", "192.0.2.1"),
        *("192.88.99.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::ffff:8.8.8.8", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1"),
        *("2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "fc00::1", "fd00:ec2::254"),
        *("fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "4000::1"),
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    parsed = ipaddress.ip_address(address)
    assert not is_public(parsed)
    assert not parse_hosts(("example.org", "pypi")).may_dial(parsed, 443)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "2a00::1"])
def test_public_addresses(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))
    assert parse_hosts(()).may_dial(ipaddress.ip_address(address), 443)


def test_a_listed_address_may_be_dialled_at_its_port() -> None:
    hosts = parse_hosts(("10.0.0.0/8:8080", "169.254.169.254"))
    assert hosts.may_dial(ipaddress.ip_address("10.1.1.1"), 8080)
    assert not hosts.may_dial(ipaddress.ip_address("10.1.1.1"), 443)
    assert hosts.may_dial(ipaddress.ip_address("169.254.169.254"), 80)
