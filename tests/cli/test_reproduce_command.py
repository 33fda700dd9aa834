from __future__ import annotations

from oneway.errors import ConfigError


def test_beyond_is_listed_and_trust_is_not(oneway):
    listed = oneway("reproduce", "list", "--json").json
    assert "beyond" in listed
    assert "trust" not in listed


def test_the_former_name_trust_still_works_with_a_sentence(oneway):
    """It is accepted; what is refused here is a quick run that is to be long."""
    result = oneway("reproduce", "trust", "--quick", "--seeds", 3)
    result.check_refused(ConfigError, "--quick")
    assert "trust is now a part of beyond" in result.err
    assert "trust" not in oneway("reproduce", "local", "--quick", "--seeds", 3).err
