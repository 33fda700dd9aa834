"""The command line: each command parses, calls one function and prints."""

from oneway.cli.main import main

__all__ = ["main"]
