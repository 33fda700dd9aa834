"""Addresses as people write them."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import ConfigError
from oneway.transport import Address, parse_address


@given(st.ip_addresses(), st.integers(1, 65535))
def test_an_address_reads_back_as_written(host, port):
    version = host.version
    text = f"[{host}]:{port}" if version == 6 else f"{host}:{port}"
    address = parse_address(text)
    assert address == Address(str(host), port)
    assert address.kind == f"ipv{version}"
    assert str(address) == text
    assert ipaddress.ip_address(address.host) == host


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "localhost:",
        "localhost:http",
        "localhost:-1",
        "localhost:0",
        "localhost:65536",
        "localhost:" + "9" * 5000,
        ":7001",
        "*:7001",
        "::1:7001",
        "[127.0.0.1]:7001",
        "[::1:7001",
        "256.0.0.1:7001",
        "tcp://localhost:7001",
        "local host:7001",
        "localhost\n:7001",
        "-x:7001",
    ],
)
def test_what_is_no_address_gets_a_short_sentence_with_an_example(text):
    with pytest.raises(ConfigError, match=r"192\.168\.1\.20:7701") as caught:
        parse_address(text)
    assert len(str(caught.value)) < 400


def test_port_0_is_for_listening_only():
    assert parse_address("127.0.0.1:0", lowest_port=0).port == 0


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_a_sentence(text):
    try:
        address = parse_address(text)
    except ConfigError:
        return
    assert str(address).lower() == text.lower() or int(text.rpartition(":")[2]) == address.port
