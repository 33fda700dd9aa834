from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import KeyFileError
from oneway.peer.identity import keys
from oneway.transport.keys import KeyPair, generate


def test_the_signing_secret_depends_on_the_secret_key_alone_and_does_not_reveal_it():
    pair = generate()
    signing = keys.signing_secret(pair)
    assert len(signing) == 32
    assert signing == keys.signing_secret(KeyPair(b"", pair.secret))
    assert signing not in (pair.secret, pair.public, keys.signing_secret(generate()))


@given(st.binary(min_size=32, max_size=32))
def test_a_key_survives_its_text_form_in_either_case(key):
    text = keys.key_text(key)
    assert len(text) == 52
    assert text.isalnum()
    assert text == text.lower()
    assert keys.parse_key(text) == keys.parse_key(text.upper()) == key


def test_a_key_file_is_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        keys.save(generate(), tmp_path / "key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_a_key_is_never_overwritten(tmp_path):
    keys.save(generate(), tmp_path / "key")
    before = (tmp_path / "key").read_bytes()
    with pytest.raises(KeyFileError, match="never overwritten; move it away"):
        keys.save(generate(), tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == before


def test_a_key_is_not_written_through_a_link(tmp_path):
    (tmp_path / "key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KeyFileError, match="never overwritten"):
        keys.save(generate(), tmp_path / "key")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602, 0o610, 0o777])
def test_a_key_file_that_others_can_get_at_is_refused(tmp_path, mode):
    path = tmp_path / "key"
    keys.save(generate(), path)
    path.chmod(mode)
    with pytest.raises(KeyFileError, match=f"mode {mode:04o}.*only its owner.*chmod 600 {path}"):
        keys.load(path)


def test_a_key_file_of_another_user_is_refused(tmp_path, monkeypatch):
    keys.save(generate(), tmp_path / "key")
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(KeyFileError, match=f"belongs to user {owner} and you are user {owner + 1}"):
        keys.load(tmp_path / "key")


@pytest.mark.parametrize(
    "content",
    [b"", b"secret:", b"secret:abc", b"public:" + b"a" * 52, b"\xff\x00", b"secret:\n" * 2],
)
def test_a_malformed_key_file_is_refused_without_showing_it(tmp_path, content):
    path: Path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match=r"is not a key file.*backup") as caught:
        keys.load(path)
    assert "abc" not in str(caught.value)
