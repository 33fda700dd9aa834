"""`oneway audit privacy`: what people and programs get, and what bad input gets."""

from __future__ import annotations

from oneway.errors import ConfigError, StoreError

SMALL = ("audit", "privacy", "--data", "synthetic", "--nodes", 5, "--rounds", 160)


def test_json_has_the_numbers_and_what_they_are_about(oneway):
    answer = oneway(*SMALL, "--epsilon", 1, "--json").json
    assert set(answer) >= {
        "rows",
        "rows_read_exactly",
        "cosine",
        "epsilon_promised",
        "epsilon_lower_bound",
        "confidence",
        "settings",
    }
    assert (answer["rows"], answer["rows_read_exactly"]) == (160, 0)
    assert answer["epsilon_promised"] == 1
    assert answer["epsilon_lower_bound"] <= 1
    assert answer["settings"]["privacy"]["epsilon"] == 1
    assert answer["settings"]["samples_per_push"] == 16


def test_people_are_told_in_words_and_get_a_page(oneway, here):
    shown = oneway(
        *SMALL, "--privacy", "none", "--samples-per-push", 1, "--canaries", 500, "--out", "a.html"
    )
    assert shown.code == 0
    assert "read 160 of 160 samples exactly" in shown.out
    assert "nothing is promised" in shown.out
    page = (here / "a.html").read_text()
    assert "160 of 160 samples could be read exactly" in page


def test_bad_arguments_get_a_sentence(oneway, here):
    oneway(*SMALL, "--against", "moon").check_refused(ConfigError, "moon")
    oneway(*SMALL, "--epsilon", 0).check_refused(ConfigError, "epsilon")
    (here / "file").write_text("")
    oneway(*SMALL, "--out", "file/a.html").check_refused(StoreError, "file")
