"""Confusable names: which new names are allowed, and which a reader takes for the same.

Keys decide, but people read names: a stranger's card must not look like a friend's. New names have
Latin letters only, for which look-alikes can be listed; those that peers have already may stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from oneway.errors import ConfigError
from oneway.sentences import shown

_ALIKE = str.maketrans("i10", "llo")


def check_new_name(name: str) -> str:
    """Return a name that a peer may be given, or may be introduced by.

    Raises:
        ConfigError: If it has a letter that can be taken for another; names the letter.

    >>> check_new_name("zoë")
    'zoë'
    """
    for letter in name:
        if not (letter.isascii() or _is_accented(letter)):
            called = unicodedata.name(letter, f"U+{ord(letter):04X}")
            raise ConfigError(
                f"the name {shown(name)} has {shown(letter)} ({called}), which readers may take "
                "for another letter; a new name has the letters a to z, with or without accents, "
                "digits, '-', '_' or '.', for example alice"
            )
    return name


def appearance(name: str) -> str:
    """Return what a name looks like at a glance: the same for names that are easily confused.

    >>> appearance("aIice") == appearance("ALICE") == appearance("alice.") == appearance("alicé")
    True
    """
    decomposed = unicodedata.normalize("NFKD", name)
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    alike = plain.casefold().translate(_ALIKE).replace("rn", "m").replace("vv", "w")
    # At the end of a sentence a full stop is not seen.
    return re.sub(r"[-_.]+", "-", alike).rstrip("-")


def doubts(names: Iterable[tuple[str, bytes]]) -> list[str]:
    """Return what a reader should know about names, each with its key; nothing if all is well."""
    found: list[str] = []
    keys: dict[str, tuple[str, bytes]] = {}
    for name, key in dict.fromkeys(names):
        try:
            check_new_name(name)
        except ConfigError as error:
            found.append(f"{error}; it is kept, compare its key")
        known, known_key = keys.setdefault(appearance(name), (name, key))
        if known_key != key:
            found.append(f"the names {shown(name)} and {shown(known)} look alike; compare keys")
    return found


def _is_accented(letter: str) -> bool:
    """Whether it is a letter a to z with accents, in the one way to write it (NFKC)."""
    decomposed = unicodedata.normalize("NFKD", letter)
    base, accents = decomposed[0], decomposed[1:]
    return (
        base.isascii()
        and base.isalpha()
        and bool(accents)
        and all(map(unicodedata.combining, accents))
        and unicodedata.is_normalized("NFKC", letter)
    )
