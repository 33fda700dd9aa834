"""Errors of a local API: what the client gets, and what is left to find the bug by."""

from __future__ import annotations

import asyncio
import logging

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from oneway.errors import ConfigError, DataError
from oneway.web.api import make_api
from oneway.web.endpoint import Endpoint
from oneway.web.listening import listen, url_of
from oneway.web.server import run


def answer_to(error: Exception) -> httpx.Response:
    """What a client gets from an API whose only route raises this error."""

    async def fail(_: Request) -> Response:
        raise error

    async def ask() -> httpx.Response:
        api = make_api([Route("/fail", fail)], "127.0.0.1", "")
        transport = httpx.ASGITransport(api, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/fail")

    return asyncio.run(ask())


def test_a_bug_is_answered_with_its_class_and_logged_with_its_traceback(caplog):
    with caplog.at_level(logging.ERROR, logger="oneway"):
        answer = answer_to(ZeroDivisionError("division by zero"))
    assert answer.status_code == 500
    assert "ZeroDivisionError" in answer.json()["error"]
    assert "stderr" in answer.json()["error"]
    assert "in fail\n" in caplog.text
    assert "GET /fail" in caplog.text


def test_an_expected_error_is_a_sentence_and_no_traceback(caplog):
    answer = answer_to(DataError("the column age is missing; add it"))
    assert (answer.status_code, answer.json()) == (
        422,
        {"error": "the column age is missing; add it"},
    )
    assert not caplog.records


def test_an_invalid_address_of_an_endpoint_is_a_config_error():
    with pytest.raises(ConfigError, match="no:port:at-all"):
        Endpoint.read("no:port:at-all", None)


def test_a_bug_of_a_page_is_logged_with_its_traceback(caplog, monkeypatch):
    uvicorn = logging.getLogger("uvicorn")
    monkeypatch.setattr(uvicorn, "handlers", [])

    async def fail(_: Request) -> Response:
        raise ZeroDivisionError("division by zero")

    async def ask() -> int:
        listener, ready = listen("127.0.0.1", 0), asyncio.Event()
        url = url_of("127.0.0.1", listener)
        app = Starlette(routes=[Route("/fail", fail)])
        serving = asyncio.create_task(run(app, listener, ready.set, live=True))
        await ready.wait()
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"{url}/fail")
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        return answer.status_code

    assert asyncio.run(ask()) == 500
    assert "in fail\n" in caplog.text
    assert uvicorn.handlers == []  # a NullHandler would keep it from stderr
