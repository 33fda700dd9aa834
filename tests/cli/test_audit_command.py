"""`oneway audit privacy`: what people and programs get, and what bad input gets."""

from __future__ import annotations

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


def test_people_get_words_and_a_report(oneway, here):
    shown = oneway(
        *SMALL, "--privacy", "none", "--samples-per-push", 1, "--canaries", 500, "--out", "a.md"
    )
    assert shown.code == 0
    assert "read 160 of 160 samples exactly" in shown.out
    assert "nothing is promised" in shown.out
    assert "read 160 of 160 samples exactly" in (here / "a.md").read_text()


def test_peers_in_virtual_time_are_attacked_by_their_messages(oneway):
    few = ("--nodes", 4, "--rounds", 32, "--canaries", 100)
    open_ = ("--privacy", "none", "--samples-per-push", 1)
    answer = oneway(
        "audit", "privacy", "--data", "synthetic", *few, *open_, "--virtual", "--json"
    ).json
    assert (answer["virtual"], answer["rows"], answer["rows_read_exactly"]) == (True, 32, 32)
