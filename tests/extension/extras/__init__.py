"""A user's own package: five extensions, one file and one registration each."""

from extras import adagrad, dunes, gentle, huber, udp

__all__ = ["adagrad", "dunes", "gentle", "huber", "udp"]
