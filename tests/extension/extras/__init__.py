"""A user's own package: five extensions, one file and one registration each."""

from extras import dunes, gentle, huber, rmsprop, udp

__all__ = ["dunes", "gentle", "huber", "rmsprop", "udp"]
