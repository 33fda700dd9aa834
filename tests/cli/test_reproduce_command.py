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


def test_a_place_to_run_that_there_is_not_is_refused_before_anything_is_written(oneway, here):
    oneway("reproduce", "local", "--quick", "--on", "rya").check_refused(ConfigError, "'rya'")
    oneway("reproduce", "local", "--quick", "--on", "ray://a/b").check_refused(ConfigError, "'a/b'")
    assert not list(here.iterdir())
