from __future__ import annotations

import asyncio
import json
import logging
import math
import signal
import socket
import sys
from collections.abc import Mapping

import httpx
import msgspec
import numpy as np
import pytest
from plain import PLAIN

from oneway.errors import ConfigError, MissingExtraError, StoreError, TransportError
from oneway.export import FittedModel
from oneway.export.json_format import from_json
from oneway.peer.api.app import build_app
from oneway.peer.learner import Learner
from oneway.peer.service import serve
from oneway.records.curve import Curve
from oneway.records.status import Status
from oneway.task.task import Feature, Task
from oneway.testing.records import make_status
from oneway.web.access_control import check_bind
from oneway.web.endpoint import Endpoint

LOGISTIC = Task("logistic", "occupied", (Feature("light"), Feature("co2")), ("no", "yes"), **PLAIN)
RIDGE = Task("ridge", "price", (Feature("size"),), **PLAIN)
TOKEN = "0123456789abcdef"
LIMIT_SECONDS = 20.0

STATUS = make_status(samples=3, average_loss=0.5)

CURVE = Curve(width=2, samples=3, loss_sums=(1.5, 0.25), correct=(1, 1), times=(1.0, 2.0), before=7)


class FakePeer:
    """Expects the sum of the scaled features, at this moment its opposite; remembers lessons."""

    def __init__(self, task: Task, failure: Exception | None = None) -> None:
        self.task = task
        self.taught: list[tuple[dict[str, object], object]] = []
        self._failure = failure

    def model(self, *, momentary: bool = False, durable: bool = False) -> FittedModel:
        if self._failure:
            raise self._failure
        params = np.ones(self.task.dim)
        params[-1] = 0.0
        return Learner(self.task).fitted(-params if momentary else params, samples=3)

    def learn_one(self, x: Mapping[str, object], y: object) -> float:
        if self._failure:
            raise self._failure
        self.task.encoder.vector(x)
        self.task.encoder.label_value(y)
        self.taught.append((dict(x), y))
        return 0.5

    def status(self) -> Status:
        return STATUS

    def curve(self) -> Curve:
        return CURVE


@pytest.fixture
def peer() -> FakePeer:
    return FakePeer(LOGISTIC)


def ask(
    peer: FakePeer,
    method: str,
    path: str,
    body: object = None,
    *,
    host: str = "127.0.0.1",
    token: str = "",
    url: str = "http://127.0.0.1:8701",
    **more: object,
) -> httpx.Response:
    """Send one request to the application, without a network."""

    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(build_app(peer, host, token), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=url) as client:
            if body is not None:
                more["json"] = body
            return await client.request(method, path, **more)

    return asyncio.run(request())


def error_of(response: httpx.Response) -> str:
    assert response.headers["content-type"] == "application/json"
    assert list(response.json()) == ["error"]
    assert "Traceback" not in response.text
    return response.json()["error"]


GOOD = {"light": 3, "co2": "1.5"}

# --- predicting and learning ---


def test_a_classifier_predicts_a_class_and_how_probable_each_is(peer):
    answer = ask(peer, "POST", "/predict", {"x": GOOD})
    assert answer.status_code == 200
    said = answer.json()
    assert said["prediction"] == "yes"
    assert said["probabilities"]["no"] == pytest.approx(1 / (1 + math.exp(4.5)), rel=1e-12)
    assert sum(said["probabilities"].values()) == 1.0


def test_a_regression_predicts_a_number_and_no_probabilities():
    assert ask(FakePeer(RIDGE), "POST", "/predict", {"x": {"size": 2.5}}).json() == {
        "prediction": 2.5
    }


def test_an_image_is_sent_as_nested_lists_or_in_a_row():
    image = Task("ridge", "shade", (Feature("image", shape=(3, 224, 224)),), **PLAIN)
    pixels = np.full(image.features[0].shape, 255)
    for x in (pixels.tolist(), pixels.ravel().tolist()):
        answer = ask(FakePeer(image), "POST", "/predict", {"x": {"image": x}})
        assert answer.json() == {"prediction": 255.0 * pixels.size}
    learner = FakePeer(image)
    body = {"x": {"image": pixels.tolist()}, "y": 1.5}
    assert ask(learner, "POST", "/learn", body).status_code == 200
    assert len(learner.taught) == 1
    wrong = ask(learner, "POST", "/predict", {"x": {"image": [1, 2]}})
    assert "'image'" in error_of(wrong)


def test_the_momentary_model_answers_if_it_is_asked_for(peer):
    body = {"x": GOOD}
    assert ask(peer, "POST", "/predict?momentary=true", body).json()["prediction"] == "no"
    assert ask(peer, "POST", "/predict?momentary=false", body).json()["prediction"] == "yes"
    refused = ask(peer, "POST", "/predict?momentary=perhaps", body)
    assert refused.status_code == 422
    assert "momentary is 'perhaps'" in error_of(refused)


def test_booleans_are_booleans():
    peer = FakePeer(Task("logistic", "late", (Feature("rain"),), ("false", "true"), **PLAIN))
    answer = ask(peer, "POST", "/predict", {"x": {"rain": 1}}).json()
    assert answer["prediction"] is True
    assert list(answer["probabilities"]) == ["false", "true"]


def test_the_model_is_given_out_to_whoever_may_ask(peer):
    for momentary, sign in (("", 1.0), ("?momentary=true", -1.0)):
        answer = ask(peer, "GET", f"/model{momentary}")
        assert answer.status_code == 200
        assert answer.json()["coefficients"] == {"(intercept)": 0.0, "light": sign, "co2": sign}
        assert from_json(answer.content).params.tolist() == [sign, sign, 0.0]
    assert ask(peer, "GET", "/model", token=TOKEN).status_code == 401
    assert ask(peer, "GET", "/model?momentary=7").status_code == 422


def test_learning_gives_the_loss_suffered_before(peer):
    answer = ask(peer, "POST", "/learn", {"x": GOOD, "y": "no"})
    assert answer.json() == {"loss": 0.5}
    assert peer.taught == [(GOOD, "no")]


def test_of_several_samples_the_bad_ones_get_an_error_and_the_others_are_learned_from(peer):
    samples = [{"x": GOOD, "y": "no"}, {"x": {"light": 1}, "y": "no"}, 7, {"x": GOOD, "y": "yes"}]
    answer = ask(peer, "POST", "/learn", {"samples": samples})
    first, second, third, fourth = answer.json()["results"]
    assert answer.status_code == 200
    assert first == fourth == {"loss": 0.5}
    assert "no feature 'co2'" in second["error"]
    assert "the sample is 7" in third["error"]
    assert [y for _, y in peer.taught] == ["no", "yes"]


def test_several_samples_are_predicted_in_order():
    samples = [{"x": {"size": size}} for size in range(250)]
    results = ask(FakePeer(RIDGE), "POST", "/predict", {"samples": samples}).json()["results"]
    assert [result["prediction"] for result in results] == list(range(250))


def test_no_samples_have_no_results(peer):
    assert ask(peer, "POST", "/learn", {"samples": []}).json() == {"results": []}


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("/predict", {"x": {"light": 1}}, "the sample has no feature 'co2'"),
        ("/predict", {"x": {"light": 1, "co2": "high"}}, "feature 'co2' is 'high'"),
        (
            "/predict",
            {"x": [1, 2]},
            "x in the sample is a list of 2; it must be an object of features",
        ),
        ("/predict", {}, "the sample has no x"),
        ("/predict", [{"x": GOOD}], "the body is a list of 1; it must be an object"),
        ("/predict", {"x": GOOD, "y": "no"}, "a label y, which a prediction does not use"),
        ("/predict", {"X": GOOD}, "the sample has no key 'X', did you mean 'x'?"),
        (
            "/predict",
            {"samples": {"x": GOOD}},
            "samples in the body is a table of 1; it must be a list",
        ),
        ("/predict", {"samples": [], "x": GOOD}, "the body has no key 'x'"),
        ("/learn", {"x": GOOD}, "the sample has no y"),
        ("/learn", {"x": GOOD, "y": None}, "label 'occupied' is None"),
        ("/learn", {"x": GOOD, "y": "maybe"}, "must be one of 'no', 'yes'"),
        ("/learn", {"x": GOOD, "y": "no", "z": 1}, "the sample has no key 'z'"),
    ],
)
def test_a_sample_that_breaks_a_rule_gets_a_sentence(peer, path, body, sentence):
    answer = ask(peer, "POST", path, body)
    assert answer.status_code == 422
    assert sentence in error_of(answer)
    assert peer.taught == []


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b'{"x": NaN}', b'{"x": "\xff"}', b"[" * 100_000, b'{"x": 1e999}'],
    ids=["empty", "cut off", "binary", "NaN", "not UTF-8", "deeply nested", "too large a number"],
)
def test_a_body_that_is_not_json_gets_a_sentence(peer, content):
    json_type = {"Content-Type": "application/json"}
    answer = ask(peer, "POST", "/learn", content=content, headers=json_type)
    assert answer.status_code == 400
    assert error_of(answer).startswith("the body is ")


def test_a_large_body_is_refused_though_its_size_was_not_declared(peer):
    async def endless():
        while True:
            yield b" " * 100_000

    json_type = {"Content-Type": "application/json"}
    answer = ask(peer, "POST", "/learn", content=endless(), headers=json_type)
    assert answer.status_code == 413
    assert "larger than 1,048,576 bytes" in error_of(answer)


def test_what_the_peer_cannot_do_at_the_moment_is_its_own_sentence():
    failing = FakePeer(LOGISTIC, StoreError("the disk is full; make room"))
    answer = ask(failing, "POST", "/learn", {"x": GOOD, "y": "no"})
    assert answer.status_code == 503
    assert error_of(answer) == "the disk is full; make room"


def test_a_mistake_of_ours_shows_nothing_of_its_inside():
    broken = FakePeer(LOGISTIC, ZeroDivisionError("secret detail"))
    answer = ask(broken, "POST", "/predict", {"x": GOOD})
    assert answer.status_code == 500
    assert "secret" not in error_of(answer)


# --- looking ---


def test_the_status_is_what_the_peer_says(peer):
    answer = ask(peer, "GET", "/status")
    assert msgspec.json.decode(answer.content, type=Status) == STATUS


def test_a_status_from_before_it_had_books_still_reads():
    old = msgspec.to_builtins(STATUS)
    for name in ("brought_units", "sent_units", "heard_units"):
        del old[name]
    assert msgspec.convert(old, Status) == msgspec.structs.replace(STATUS, brought_units=0)


def test_the_curve_is_what_the_peer_says(peer):
    answer = ask(peer, "GET", "/curve")
    assert msgspec.json.decode(answer.content, type=Curve) == CURVE


def test_the_task_has_what_a_form_needs():
    features = (Feature("light", 120.5, 200.0), Feature("co2"))
    task = Task("logistic", "occupied", features, ("no", "yes"), **PLAIN)
    answer = ask(FakePeer(task), "GET", "/task").json()
    assert answer["features"] == [
        {"name": "light", "center": 120.5, "scale": 200.0},
        {"name": "co2", "center": 0.0, "scale": 1.0},
    ]
    assert (answer["model"], answer["label"]) == ("logistic", "occupied")
    assert answer["classes"] == ["no", "yes"]


def test_the_metrics_are_declared_as_prometheus_text(peer):
    answer = ask(peer, "GET", "/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "\noneway_samples_total 3.0\n" in answer.text


def test_the_index_names_routes_that_exist(peer):
    index = ask(peer, "GET", "/").json()
    assert index["peer"] == "alice"
    for route in index["routes"]:
        assert ask(peer, *route.split(" ")).status_code in (200, 415)


@pytest.mark.parametrize("path", ["/nothing", "/predict/", "/status/x"])
def test_an_unknown_path_points_to_the_index(peer, path):
    answer = ask(peer, "GET", path, url="http://localhost")
    assert answer.status_code == 404
    assert "GET / lists" in error_of(answer)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/learn", "POST"), ("PUT", "/predict", "POST"), ("POST", "/metrics", "GET")],
)
def test_a_method_that_a_path_does_not_have_names_the_one_it_has(peer, method, path, allowed):
    answer = ask(peer, method, path)
    assert answer.status_code == 405
    assert allowed in answer.headers["allow"]
    assert allowed in error_of(answer)


# --- who may ask ---


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_on_loopback_no_token_is_needed(host):
    check_bind(host, "")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.20", "peer.example.org"])
def test_where_other_machines_can_reach_it_a_token_is_needed(peer, host):
    with pytest.raises(ConfigError, match="could be used by other machines, and there is no token"):
        check_bind(host, "")
    with pytest.raises(ConfigError, match="no token"):
        build_app(peer, host)
    check_bind(host, TOKEN)


@pytest.mark.parametrize(
    "token", ["short", "sixteen chars and spaces", "schlüssel-schlüssel", "\n" * 20]
)
def test_a_poor_token_is_refused_and_not_shown(token):
    with pytest.raises(ConfigError, match="at least 16") as caught:
        check_bind("127.0.0.1", token)
    assert token not in str(caught.value)


def test_what_is_no_host_is_refused():
    with pytest.raises(ConfigError, match="neither a host name nor an IP address"):
        check_bind("1.2.3", TOKEN)


@pytest.mark.parametrize("path", ["/", "/status", "/metrics", "/nothing"])
@pytest.mark.parametrize(
    "shown",
    ["", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, f"Bearer x {TOKEN}"],
)
def test_without_the_token_every_path_is_closed(peer, path, shown):
    headers = {"Authorization": shown} if shown else {}
    answer = ask(peer, "GET", path, token=TOKEN, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer TOKEN" in error_of(answer)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_the_token_opens_everything(peer, scheme):
    headers = {"Authorization": f"{scheme} {TOKEN}"}
    body = {"x": GOOD, "y": "no"}
    assert ask(peer, "POST", "/learn", body, token=TOKEN, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "name", ["evil.example", "evil.example:8701", "127.0.0.1.evil.example", "localhost@evil", ""]
)
def test_a_request_for_another_host_is_refused_whatever_it_asks(peer, name):
    answer = ask(peer, "GET", "/status", headers={"Host": name})
    assert answer.status_code == 400
    assert "Host header" in error_of(answer)


@pytest.mark.parametrize(
    "name", ["127.0.0.1", "127.0.0.1:8701", "localhost:9", "LOCALHOST", "[::1]:8701", "[::1]"]
)
def test_a_request_for_this_machine_is_answered(peer, name):
    assert ask(peer, "GET", "/status", headers={"Host": name}).status_code == 200


def test_on_an_address_of_its_own_the_api_goes_by_that_name(peer):
    shown = {"Authorization": f"Bearer {TOKEN}"}
    for name, code in [("10.0.0.7:8701", 200), ("peer.example", 400)]:
        headers = shown | {"Host": name}
        answer = ask(peer, "GET", "/", host="10.0.0.7", token=TOKEN, headers=headers)
        assert answer.status_code == code


def test_on_every_interface_any_name_will_do_since_the_token_decides(peer):
    headers = {"Host": "peer.example"}
    closed = ask(peer, "GET", "/", host="0.0.0.0", token=TOKEN, headers=headers)
    shown = headers | {"Authorization": f"Bearer {TOKEN}"}
    opened = ask(peer, "GET", "/", host="0.0.0.0", token=TOKEN, headers=shown)
    assert (closed.status_code, opened.status_code) == (401, 200)


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_what_a_web_page_can_send_without_asking_is_refused(peer, content_type):
    content = json.dumps({"x": GOOD, "y": "no"}).encode()
    headers = {"Content-Type": content_type, "Origin": "http://evil.example"}
    answer = ask(peer, "POST", "/learn", content=content, headers=headers)
    assert answer.status_code == 415
    assert "Content-Type: application/json" in error_of(answer)
    assert peer.taught == []


def test_a_web_page_that_asks_first_is_not_let_in(peer):
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = ask(peer, "OPTIONS", "/learn", headers=headers)
    assert answer.status_code == 405
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_the_content_type_may_name_its_character_set(peer):
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    content = json.dumps({"x": GOOD}).encode()
    assert ask(peer, "POST", "/predict", content=content, headers=headers).status_code == 200


# --- without the extra ---


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "oneway.peer.api.app",
        "oneway.web.server",
        "oneway.web.api",
        "oneway.web.access_control",
    ):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in ("starlette", "starlette.applications", "uvicorn"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("nothing_installed")
def test_without_the_extra_a_sentence_says_what_to_install(peer):
    with pytest.raises(MissingExtraError, match=r"starlette.*pip install 'oneway\[serve\]'"):
        asyncio.run(serve(peer, Endpoint("127.0.0.1", 0), print))


# --- the real server ---


async def served(peer, started: asyncio.Future[str]) -> None:
    await serve(peer, Endpoint("127.0.0.1", 0), started.set_result)


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_real_server_answers_until_it_is_cancelled(peer, capfd):
    async def scenario() -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
            started = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(served(peer, started))
            url = await started
            async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
                answer = await client.post("/learn", json={"x": GOOD, "y": "yes"})
                assert answer.json() == {"loss": 0.5}
                assert "server" not in answer.headers
                assert (await client.get("/metrics")).status_code == 200
                installed = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
                assert installed == handlers
                # The client still holds its connection open: that must not hold up the end.
                await stop(task)
                with pytest.raises(httpx.TransportError):
                    await client.get("/status")

    asyncio.run(scenario())
    assert peer.taught == [(GOOD, "yes")]
    assert capfd.readouterr() == ("", "")


def test_a_request_that_never_ends_does_not_hold_up_the_end(peer, capfd):
    async def scenario() -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            started = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(served(peer, started))
            host, port = (await started).removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(
                b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"
            )
            # Only when somebody reads the body does the server ask for it.
            assert b"100" in await reader.readline()
            await stop(task)
            writer.close()

    asyncio.run(scenario())
    assert capfd.readouterr() == ("", "")


def test_a_mistake_of_ours_is_logged_where_the_process_logs_but_not_printed(capfd, caplog):
    broken = FakePeer(LOGISTIC, ZeroDivisionError("by zero"))

    async def scenario() -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            started = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(served(broken, started))
            async with httpx.AsyncClient(base_url=await started, trust_env=False) as client:
                assert (await client.post("/predict", json={"x": GOOD})).status_code == 500
                assert (await client.get("/status")).status_code == 200
            await stop(task)

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert "ZeroDivisionError" in caplog.text
    assert capfd.readouterr() == ("", "")


def test_a_port_in_use_is_a_sentence_that_names_a_free_one(peer):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        with pytest.raises(TransportError, match=f"127.0.0.1:{taken}: another program") as caught:
            asyncio.run(serve(peer, Endpoint("127.0.0.1", taken), print))
    free = int(str(caught.value).rpartition("port, ")[2].removesuffix(" is free"))
    with socket.create_server(("127.0.0.1", free)):
        assert free != taken


def test_an_address_that_is_not_of_this_machine_is_a_sentence(peer):
    host = "192.0.2.1"
    with pytest.raises(TransportError, match=f"cannot listen on {host}:8701: .*127.0.0.1:8701"):
        asyncio.run(serve(peer, Endpoint(host, 8701, TOKEN), print))
