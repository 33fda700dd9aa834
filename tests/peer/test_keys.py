from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.errors import CardError, KeyFileError
from oneway.peer.identity import keys
from oneway.transport.keys import KeyPair, generate, public_of


def test_the_public_key_belongs_to_the_secret():
    pair = generate()
    assert public_of(pair.secret) == pair.public
    assert len(pair.public) == len(pair.secret) == 32


def test_two_key_pairs_are_never_the_same():
    assert generate() != generate()


def test_the_secret_is_not_printed_with_the_pair():
    pair = generate()
    assert repr(pair.public) in repr(pair)
    assert repr(pair.secret) not in repr(pair)


def test_the_signing_secret_depends_on_the_secret_key_alone_and_does_not_reveal_it():
    pair = generate()
    signing = keys.signing_secret(pair)
    assert len(signing) == 32
    assert signing == keys.signing_secret(KeyPair(b"", pair.secret))
    assert signing not in (pair.secret, pair.public, keys.signing_secret(generate()))


@given(st.binary(min_size=32, max_size=32))
@settings(deadline=None)
def test_a_key_survives_its_text_form_in_either_case(key):
    text = keys.key_text(key)
    assert len(text) == 52
    assert text.isalnum()
    assert text == text.lower()
    assert keys.parse_key(text) == keys.parse_key(text.upper()) == key


@given(st.text(max_size=60).filter(lambda text: len(text) != 52))
@settings(deadline=None)
def test_text_that_is_no_key_gets_a_sentence(text):
    with pytest.raises(CardError, match="copy it again"):
        keys.parse_key(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a" * 51, "is 51 long; a key has 52 characters"),
        ("a" * 51 + "1", "letters a to z and the digits 2 to 7"),
        ("a" * 51 + "\N{KELVIN SIGN}", "letters a to z and the digits 2 to 7"),
        ("a" * 51 + "b", "ends wrongly"),
    ],
)
def test_what_is_wrong_with_a_key_is_said(text, reason):
    with pytest.raises(CardError, match=reason):
        keys.parse_key(text)


def test_a_saved_key_comes_back(tmp_path):
    pair = generate()
    keys.save(pair, tmp_path / "key")
    assert keys.load(tmp_path / "key") == pair


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


def test_a_missing_key_file_gets_a_remedy(tmp_path):
    with pytest.raises(KeyFileError, match=r"no key file .*backup.*oneway peer init"):
        keys.load(tmp_path / "key")


def test_a_key_that_cannot_be_written_gets_a_sentence(tmp_path):
    with pytest.raises(KeyFileError, match=r"cannot write the key to .*: No such file"):
        keys.save(generate(), tmp_path / "nowhere" / "key")


def test_a_folder_or_a_pipe_is_not_a_key_file(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir(0o700)
    for name in ("pipe", "folder"):
        with pytest.raises(KeyFileError, match="is not a file; a key file is an ordinary file"):
            keys.load(tmp_path / name)


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
