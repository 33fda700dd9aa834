"""Addresses as people write them."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import TransportError
from oneway.transport import Address, parse_address


@given(st.ip_addresses(), st.integers(1, 65535))
def test_an_address_reads_back_as_written(host, port):
    version = host.version
    text = f"[{host}]:{port}" if version == 6 else f"{host}:{port}"
    address = parse_address(text)
    assert address == Address(str(host), port, f"ipv{version}")
    assert str(address) == text
    assert ipaddress.ip_address(address.host) == host


@pytest.mark.parametrize(
    "host", ["localhost", "peer.example.org", "my_container", "_x", "a-b", "1st.eu"]
)
def test_a_host_may_have_a_name(host):
    assert parse_address(f"{host}:7001") == Address(host, 7001, "name")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no port"),
        ("localhost", "has no port"),
        ("localhost:", "has no port"),
        ("localhost:http", "has no port"),
        ("localhost:-1", "has no port"),
        ("localhost:0", "ports are 1 to 65535"),
        ("localhost:65536", "ports are 1 to 65535"),
        ("localhost:" + "9" * 5000, "ports are 1 to 65535"),
        (":7001", "names no host"),
        ("*:7001", "names no host"),
        ("::1:7001", "names no host"),
        ("[127.0.0.1]:7001", "names no host"),
        ("[::1:7001", "names no host"),
        ("256.0.0.1:7001", "names no host"),
        ("tcp://localhost:7001", "names no host"),
        ("local host:7001", "names no host"),
        ("localhost\n:7001", "names no host"),
        ("-x:7001", "names no host"),
    ],
)
def test_what_is_no_address_gets_a_sentence(text, complaint):
    with pytest.raises(TransportError, match=complaint):
        parse_address(text)


def test_port_0_is_for_listening_only():
    assert parse_address("127.0.0.1:0", lowest_port=0).port == 0


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_a_sentence(text):
    try:
        address = parse_address(text)
    except TransportError:
        return
    assert str(address).lower() == text.lower() or int(text.rpartition(":")[2]) == address.port
