"""A user's own package: four extensions, one file and one registration each."""

from extras import dunes, gentle, huber, rmsprop

__all__ = ["dunes", "gentle", "huber", "rmsprop"]
