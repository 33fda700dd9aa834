"""Files with tokens: only their owner may read or write them."""

from __future__ import annotations

import os

import pytest

from oneway.errors import ConfigError
from oneway.web.endpoint import Endpoint, read_token

TOKEN = "0123456789abcdef"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_token_of_ones_own_is_read(file, mode):
    file.chmod(mode)
    assert read_token(file) == Endpoint.read("8701", file).token == TOKEN


def test_by_default_the_local_api_has_a_token_of_its_own(tmp_path):
    path = tmp_path / "api.token"
    first = Endpoint.read("8701", None, own_file=path)
    assert first.token_file == path
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(first.token) >= 32
    assert Endpoint.read("localhost:8701", None, own_file=path).token == first.token
    with pytest.raises(ConfigError, match=r"0\.0\.0\.0"):  # what others can reach must be asked for
        Endpoint.read("0.0.0.0:8701", None, own_file=path)


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602, 0o610, 0o644, 0o777], ids=oct)
def test_a_token_file_that_others_can_get_at_is_refused(file, mode):
    file.chmod(mode)
    sentence = f"the token file {file} has mode {mode:04o}.*only its owner.*chmod 600 {file}"
    with pytest.raises(ConfigError, match=sentence) as caught:
        Endpoint.read("8701", file)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"\n", "empty"), (b"x" * 5000, "longer than 4,096"), (b"\xff\xfe", "holds no text")],
)
def test_what_is_no_token_is_told(file, content, reason):
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"token (is )?{reason}"):
        read_token(file)


def test_a_token_may_come_through_a_pipe(tmp_path):
    """As a shell makes one of `--token-file <(pass show oneway)`."""
    number, end = os.pipe()
    os.write(end, f"{TOKEN}\n".encode())
    os.close(end)
    try:
        assert read_token(type(tmp_path)(f"/dev/fd/{number}")) == TOKEN
    finally:
        os.close(number)
