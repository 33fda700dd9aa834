"""A command to the lab from a page, and what the page says about it."""

from __future__ import annotations

from nicegui import ui

from oneway.dashboard.lab.client import LabClient
from oneway.errors import OnewayError
from oneway.records.network import Command


async def carry_out(client: LabClient, command: Command) -> bool:
    """Do it, and say how it went; whether it went well."""
    try:
        said = await client.do(command)
    except OnewayError as error:
        ui.notify(str(error), type="negative", close_button="OK", timeout=10_000)
        return False
    ui.notify(said, type="positive", position="top")
    return True
