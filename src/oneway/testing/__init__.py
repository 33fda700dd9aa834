"""Public tools to test extensions with: an in-memory network, checks of what is promised, records.

from oneway.testing import MemoryNetwork, check_method, check_model, check_transport, make_record
"""

from oneway.testing.memory_network import MemoryEndpoint, MemoryNetwork
from oneway.testing.method_checks import check_method, step_network
from oneway.testing.model_checks import check_model
from oneway.testing.records import (
    make_frame,
    make_peer_view,
    make_receiver,
    make_record,
    make_sender,
    make_status,
)
from oneway.testing.transport_checks import CHECKS, World, check_transport

__all__ = [
    "CHECKS",
    "MemoryEndpoint",
    "MemoryNetwork",
    "World",
    "check_method",
    "check_model",
    "check_transport",
    "make_frame",
    "make_peer_view",
    "make_receiver",
    "make_record",
    "make_sender",
    "make_status",
    "step_network",
]
