"""Moving frames between peers: one promise, kept by a fake network, the real one, and a broken one.

`oneway.transport.zeromq` is imported by who needs it: nothing here loads ZeroMQ.
"""

from oneway.transport.address import Address, parse_address
from oneway.transport.base import Arrival, Key, Link, LinkState, Transport, Via
from oneway.transport.faulty import Faults, Faulty
from oneway.transport.limits import Limits
from oneway.transport.losses import Losses

__all__ = [
    "Address",
    "Arrival",
    "Faults",
    "Faulty",
    "Key",
    "Limits",
    "Link",
    "LinkState",
    "Losses",
    "Transport",
    "Via",
    "parse_address",
]
