"""Connecting to a cluster: what is wrong with it is said before anything is sent."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading

import pytest

from oneway.errors import ClusterError, ConfigError, MissingExtraError
from oneway.simulator import ray_cluster as module
from oneway.simulator.ray_cluster import connected, host_and_port, installed


def listening():
    server = socket.create_server(("127.0.0.1", 0))
    return server, f"127.0.0.1:{server.getsockname()[1]}"


def opened(address):
    with connected(address):
        raise AssertionError("connected")


@pytest.mark.parametrize("address", ["head:0", "head:65536", "a b", "", "ray://head:1", "head:x"])
def test_an_address_of_another_form_is_named(address):
    with pytest.raises(ConfigError, match="HOST:PORT"):
        host_and_port(address)


def test_nothing_listens_at_the_address():
    server, address = listening()
    server.close()
    with pytest.raises(ClusterError, match=address):
        opened(address)


def test_what_listens_says_nothing(monkeypatch):
    monkeypatch.setattr(module, "_GREETING_SECONDS", 0.2)
    server, address = listening()
    with server, pytest.raises(ClusterError, match=address):
        opened(address)


def test_what_listens_is_not_ray():
    server, address = listening()

    def answer():
        with contextlib.suppress(OSError):
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    thread = threading.Thread(target=answer)
    thread.start()
    with server, pytest.raises(ClusterError, match="something else"):
        opened(address)
    thread.join()


def test_without_the_extra_it_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"oneway\[ray\]"):
        opened("127.0.0.1:1")


def test_a_session_has_the_machines_and_ends_with_the_block(ray_cluster):
    import ray

    with connected(ray_cluster.address) as cluster:
        assert cluster.cores == 2
        assert len(cluster.machines) == 2
        cluster.require_store(80 * 2**20, "a table")
        with pytest.raises(ClusterError, match=r"a table needs 83.9 MB.*has 83.9 MB"):
            cluster.require_store(80 * 2**20 + 1, "a table")
        with pytest.raises(ConfigError, match="connected to"), connected("127.0.0.1:9"):
            pass
        with connected() as same:
            assert same == cluster
        assert ray.is_initialized()
    assert not ray.is_initialized()


def test_a_machine_with_other_code_is_named(ray_cluster, monkeypatch):
    here = installed()
    monkeypatch.setattr(module, "installed", lambda: {**here, "code": "other"})
    with pytest.raises(ClusterError, match="other code"):
        opened(ray_cluster.address)


@pytest.mark.parametrize("name", ["oneway", "Python", "numpy", "numba"])
@pytest.mark.parametrize(("value", "found"), [("9.9", "{} 9.9"), ("", "no {}")])
def test_a_machine_with_another_version_or_none_is_named(name, value, found):
    here = installed()
    module._compare("head", here, here)
    with pytest.raises(ClusterError, match=f"machine head .*{found.format(name)}"):
        module._compare("head", here, {**here, name: value})


def test_what_ray_says_of_versions_becomes_one_sentence():
    text = (
        "Version mismatch: The cluster was started with:\n    Ray: 2.40.0\n    Python: 3.12.1\n"
        "This process on node 10.0.0.7 was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\n"
    )
    said = module._why(RuntimeError(text), "the Ray cluster at head:6379", "head:6379")
    assert (
        "runs Ray 2.40.0 and Python 3.12.1, and this machine Ray 2.60.0 and Python 3.11.7" in said
    )
    assert "\n" not in said


def test_a_cluster_that_asks_for_a_token_says_how_to_give_it():
    class AuthenticationError(Exception):
        pass

    said = module._why(AuthenticationError("no token"), "the Ray cluster at head:1", "head:1")
    assert said.startswith("the Ray cluster at head:1 asks for a token; set RAY_AUTH_MODE=token")
