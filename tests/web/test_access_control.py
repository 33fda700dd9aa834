"""Who may open a page: own host, own pages, and those who know the token."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from oneway.web.access_control import ApiAccess, PageAccess, is_own_host

TOKEN = "0123456789abcdef-of-a-page"
OWN = "http://127.0.0.1:8700"


async def _inside(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"inside {request.url.path}")


async def _socket(socket: WebSocket) -> None:
    await socket.accept()
    await socket.close()


def page(token: str = "", host: str = "127.0.0.1") -> PageAccess:
    routes = [
        Route("/", _inside),
        Route("/{path:path}", _inside),
        WebSocketRoute("/live", _socket),
    ]
    return PageAccess(Starlette(routes=routes), host, 8700, token)


def get(
    at: PageAccess | ApiAccess, *paths: str, url: str = OWN, **headers: str
) -> list[httpx.Response]:
    """Ask one after the other, as one browser with its cookies."""

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(at)
        async with httpx.AsyncClient(transport=transport, base_url=url, headers=headers) as client:
            return [await client.get(path) for path in paths]

    return asyncio.run(ask())


def connect(at: PageAccess, **headers: str) -> list[dict[str, Any]]:
    """Open a WebSocket; what the server sends."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    scope = {
        "type": "websocket",
        "path": "/live",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "subprotocols": [],
    }
    asyncio.run(at(scope, receive, send))
    return sent


@pytest.mark.parametrize("url", [OWN, "http://localhost:8700", "http://[::1]:8700"])
def test_this_machine_may_enter_under_its_own_names(url):
    [answer] = get(page(), "/", url=url)
    assert (answer.status_code, answer.text) == (200, "inside /")


def test_another_host_is_refused_so_that_a_name_made_to_lead_here_does_not_help():
    [answer] = get(page(), "/", url="http://page.example:8700")
    assert answer.status_code == 400
    assert "inside" not in answer.text


@pytest.mark.parametrize("origin", ["http://page.example", "null", "http://127.0.0.1:9999"])
def test_a_page_of_another_site_is_refused(origin):
    [answer] = get(page(), "/", origin=origin)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "127.0.0.1:8700", "origin": "http://page.example"},
        {"host": "page.example:8700"},
        {},
    ],
)
def test_a_websocket_from_elsewhere_is_closed_before_it_opens(headers):
    assert connect(page(), **headers) == [{"type": "websocket.close", "code": 1008}]


def test_a_websocket_without_the_token_is_closed_and_with_its_cookie_opens():
    at = page(TOKEN)
    assert connect(at, host="127.0.0.1:8700", origin=OWN)[0]["type"] == "websocket.close"
    opened = connect(at, host="127.0.0.1:8700", origin=OWN, cookie=f"oneway-8700={TOKEN}")
    assert opened[0]["type"] == "websocket.accept"


def test_without_the_token_there_is_a_form_and_nothing_else():
    for answer in get(page(TOKEN), "/", "/file.js", "/?token=wrong", "/?token="):
        assert answer.status_code == 401
        assert "inside" not in answer.text
        assert TOKEN not in answer.text
        assert not answer.cookies


def test_the_token_in_the_address_becomes_a_cookie_and_leaves_the_address():
    asked, after = get(page(TOKEN), f"/runs?token={TOKEN}&open=3", "/runs")
    assert asked.status_code == 303
    assert asked.headers["location"] == "/runs?open=3"
    kept = asked.headers["set-cookie"].lower()
    assert "httponly" in kept
    assert "samesite=strict" in kept
    assert (after.status_code, after.text) == (200, "inside /runs")


@pytest.mark.parametrize("cookie", ["oneway-8700=wrong", f"oneway-8701={TOKEN}", "\x01=;;", "=;=,"])
def test_another_cookie_is_not_the_token(cookie):
    [answer] = get(page(TOKEN), "/", cookie=cookie)
    assert answer.status_code == 401


def test_a_page_for_every_interface_is_found_under_any_name_but_only_with_the_token():
    at = page(TOKEN, host="0.0.0.0")
    outside, inside = (
        get(at, "/", url="http://box.example:8700")[0],
        get(at, "/", url="http://box.example:8700", cookie=f"oneway-8700={TOKEN}")[0],
    )
    assert (outside.status_code, inside.status_code) == (401, 200)


@pytest.mark.parametrize("path", ["/", "/missing"])
def test_no_other_page_may_show_ours_in_a_frame(path):
    for token in ("", TOKEN):
        (answer,) = get(page(token), path)
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["content-security-policy"] == "frame-ancestors 'none'"


def test_a_token_in_the_address_leads_to_no_other_host():
    (answer,) = get(page(TOKEN), f"{OWN}//elsewhere.example/?token={TOKEN}")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/elsewhere.example/"


MALFORMED = [
    "127.0.0.1:evil.example",
    "127.0.0.1:8700@evil.example",
    "127.0.0.1:",
    "127.0.0.1:0",
    "127.0.0.1:65536",
    "127.0.0.1:008700",
    "127.0.0.1:+8700",
    "127.0.0.1:80 ",
    " 127.0.0.1:80",
    "127.0.0.1:80,evil.example",
    "127.0.0.1/evil.example",
    "evil.example@127.0.0.1:8700",
    "http://127.0.0.1:8700",
    "127.0.0.1.evil.example",
    "localhost.",
    "[::1]evil.example",
    "[::1]:80:80",
    "::1",
    "[127.0.0.1]:80",
    "[::1%25eth0]:80",
    "2130706433",
    "0.0.0.0",
    "",
    ":8700",
    "127.0.0.1:\xb2",
    "127.0.0.1:80\n",
]


@pytest.mark.parametrize("header", MALFORMED)
def test_a_host_header_that_is_not_exactly_a_host_and_a_port_is_refused(header):
    assert not is_own_host(header, "127.0.0.1")
    for host in ("127.0.0.1", "localhost", "::1"):
        sent = connect(page(host=host), host=header)
        assert sent == [{"type": "websocket.close", "code": 1008}]
    if not re.fullmatch(r"[a-z0-9.]+", header):
        assert not is_own_host(header, "0.0.0.0"), "every interface: any name, but a name"


@pytest.mark.parametrize(
    "header",
    ["127.0.0.1", "127.0.0.1:1", "127.0.0.1:65535", "LOCALHOST:8700", "localhost", "[::1]:8700"],
)
def test_a_host_header_of_this_machine_may_have_any_port_as_a_tunnel_has(header):
    assert is_own_host(header, "127.0.0.1")
    assert is_own_host(header, "0.0.0.0")


def test_of_two_host_headers_none_is_believed():
    both = [(b"host", b"127.0.0.1:8700"), (b"host", b"evil.example")]
    for headers in (both, both[::-1]):
        for app in (page(), ApiAccess(page(), "127.0.0.1", "")):
            assert _status(app, headers) == 400


@pytest.mark.parametrize("host", ["127.0.0.1:evil.example", "[::1]evil.example:80", "127.0.0.1:"])
def test_the_api_refuses_a_malformed_host_too(host):
    app = ApiAccess(page(), "127.0.0.1", "")
    assert _status(app, [(b"host", host.encode())]) == 400
    assert _status(app, [(b"host", b"127.0.0.1:8700")]) == 200


def _status(app: Any, headers: list[tuple[bytes, bytes]]) -> int:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "headers": headers,
    }
    asyncio.run(app(scope, receive, send))
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    "origin",
    [
        "http://127.0.0.1:8700.evil.example",
        "http://evil@127.0.0.1:8700",
        "ftp://127.0.0.1:8700",
        "http://127.0.0.1:8700/",
        "//127.0.0.1:8700",
        "",
    ],
)
def test_an_origin_must_be_exactly_our_own(origin):
    for at in (page(), ApiAccess(Starlette(routes=[Route("/", _inside)]), "127.0.0.1", "")):
        refused, allowed = get(at, "/", origin=origin) + get(at, "/", origin=OWN)
        assert (refused.status_code, allowed.status_code) == (403, 200)
