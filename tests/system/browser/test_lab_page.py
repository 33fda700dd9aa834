"""The page of a lab, in a real browser, over real processes."""

from __future__ import annotations

import re

import pytest

from oneway.dashboard.components.colours import method_style

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
Page, expect = playwright.Page, playwright.expect

NODES = 6
LAB = (
    "lab",
    "--dashboard",
    "--listen",
    "0",
    "--data",
    "synthetic",
    "--samples",
    "4000",
    "--rate",
    "25",
)
GREY = "rgb(138, 146, 155)"
SIX = re.compile(r"^6( \+ [\d,]{1,14} units)?$")
"""A peer to which only a killed one sends mints ten-thousandths: less than a tenth in all."""

METHOD = method_style("local")[0]

_LINES = """() => [...document.querySelectorAll(".ow-chart")]
  .flatMap((element) => element.chart?.getOption().series ?? [])
  .filter((line) => line.data.length > 0).map((line) => line.name)"""
_CURVES = """() => [...document.querySelectorAll(".ow-chart")]
  .flatMap((element) => element.chart?.getOption().series ?? [])
  .filter((line) => /^peer\\d+$/.test(line.name) && line.data.length >= 3)
  .map((line) => [line.name, line.data[0][1], line.data.at(-1)[1]])"""

_DOTS = """() => {
  const canvas = document.querySelector(".ow-graph canvas");
  const { width, height } = canvas;
  return canvas.getContext("2d").getImageData(0, 0, width, height).data.some((value) => value > 0);
}"""
_TARGETS = """nodes => nodes.map((node) => {
  const whole = node.getBoundingClientRect();
  const [x, y] = [whole.x + whole.width / 2, whole.y + whole.height / 2];
  const reach = node.querySelector(".reach").getBoundingClientRect();
  const hit = document.elementFromPoint(x, y);
  return [node.dataset.peer, reach.width, node.contains(hit)];
})"""


def open_lab(start, open_page, *more: str, **how: object) -> Page:
    served = start(*LAB, "--nodes", str(NODES), *more)
    page = open_page(served.url, **how)
    expect(page.locator("[data-peer]")).to_have_count(NODES)
    expect(mass(page)).to_have_class(re.compile("good"))
    return page


def mass(page: Page):
    return page.locator("[data-stat=mass]")


def node(page: Page, name: str):
    return page.locator(f"[data-peer='{name}']")


def samples_of(page: Page, name: str) -> int:
    found = re.search(r"([\d,]+) samples", node(page, name).get_attribute("aria-label") or "")
    assert found, "the peer says how many samples it has learned from"
    return int(found[1].replace(",", ""))


def one_way_edge(page: Page) -> tuple[str, str]:
    name = page.locator("[data-edge][data-kind='one-way']").first.get_attribute("data-edge")
    sender, _, receiver = (name or "").partition(">")
    return sender, receiver


def test_six_peers_learn_one_is_killed_no_mass_is_lost_and_it_learns_again(start, open_page):
    # From zeros, so that the first losses are those of knowing nothing.
    page = open_lab(start, open_page, "--learning-rate", "0.1")
    expect(mass(page).locator(".value")).to_have_text("6")
    page.wait_for_function(f"() => ({_CURVES})().length === {NODES}")
    page.wait_for_function(f"() => ({_CURVES})().every(([, first, last]) => last < first)")

    # A dot runs along an edge when a push has arrived.
    page.wait_for_function(_DOTS)
    page.wait_for_function(
        """() => {
          // Area is mass: the ratio of two circles' areas is that of their masses.
          const seen = [...document.querySelectorAll("[data-peer]")].map((node) => [
            Number(node.getAttribute("aria-label").match(/lately ([\\d.]+)/)[1]),
            Number(node.querySelector(".disc").getAttribute("r")),
          ]).filter(([mass]) => mass > 0.2 && mass < 3.5);
          return seen.length >= 2
            && seen.every(([mass, radius]) => Math.abs(radius ** 2 / mass - 900) < 10);
        }"""
    )
    colours = page.locator(".disc").evaluate_all("discs => discs.map((disc) => disc.style.fill)")
    assert len(set(colours)) > 1, "losses differ, and so do colours"

    page.wait_for_function(f"(name) => ({_LINES})().includes(name)", arg=METHOD)
    node(page, "peer2").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="kill -9 peer2").click()
    expect(node(page, "peer2")).to_have_attribute("data-state", "down")
    page.wait_for_function(
        "() => getComputedStyle(document.querySelector(\"[data-peer='peer2'] .disc\")).fill"
        f" === '{GREY}'"
    )
    expect(page.locator("[data-stat=peers]")).to_contain_text("5 of 6")
    expect(page.get_by_role("log")).to_contain_text("peer2 was killed")
    expect(mass(page)).to_have_class(re.compile("good"))
    expect(mass(page).locator(".value")).to_have_text(SIX)

    before = samples_of(page, "peer2")
    page.get_by_role("button", name="Restart peer2").click()
    expect(node(page, "peer2")).to_have_attribute("data-state", "up")
    page.wait_for_function(
        """([name, before]) => {
          const said = document.querySelector(`[data-peer='${name}']`).getAttribute("aria-label");
          return Number(said.match(/([\\d,]+) samples/)[1].replaceAll(",", "")) > before + 20;
        }""",
        arg=["peer2", before],
    )
    expect(mass(page)).to_have_class(re.compile("good"))
    expect(mass(page).locator(".value")).to_have_text(SIX)


def test_trust_lines_loss_and_newcomers_can_be_changed_and_the_audit_is_exact(start, open_page):
    served = start(*LAB, "--nodes", "4", "--out", "kept")
    page = open_page(served.url)
    expect(mass(page).locator(".value")).to_have_text("4")
    sender, receiver = one_way_edge(page)
    edge = page.locator(f"[data-edge='{sender}>{receiver}']")

    node(page, sender).click()
    page.get_by_role("button", name=f"Cut the line from {sender} to {receiver}").click()
    expect(edge).to_have_class(re.compile(r"\bcut\b"))
    page.get_by_role("button", name=f"Heal the line from {sender} to {receiver}").click()
    expect(edge).not_to_have_class(re.compile(r"\bcut\b"))
    page.get_by_role("button", name=f"{sender} no longer sends to {receiver}").click()
    expect(edge).to_have_count(0)
    expect(page.get_by_role("log")).to_contain_text(f"{sender} no longer sends to {receiver}")

    field = page.get_by_label("Messages lost")
    field.fill("many")
    field.press("Enter")
    expect(page.get_by_text("many is not a number")).to_be_visible()
    field.fill("20")
    field.press("Enter")
    expect(page.locator("[data-stat=messages]")).to_contain_text("20% lost on purpose")

    page.get_by_role("button", name="Add a peer").click()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("[data-peer]")).to_have_count(5)
    expect(mass(page).locator(".value")).to_have_text("5")
    expect(mass(page)).to_have_class(re.compile("good"))

    page.get_by_role("button", name="Finish and audit").click()
    page.get_by_role("button", name="Finish", exact=True).click()
    expect(page.locator("[data-result]")).to_contain_text("exact")
    expect(page.locator("[data-result]")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Add a peer")).to_be_hidden()
    assert served.interrupt() == 0, served.output


def test_on_a_phone_nothing_is_wider_than_the_screen_and_every_peer_can_be_hit(start, open_page):
    page = open_lab(start, open_page, width=390, dark=True)
    # A peer with little mass is a small disc, yet a finger needs 24 pixels (WCAG 2.5.8).
    page.locator(".ow-graph").scroll_into_view_if_needed()
    targets = page.locator("[data-peer]").evaluate_all(_TARGETS)
    assert len(targets) == NODES
    for name, width, hit in targets:
        assert width >= 24, f"{name} is {width} pixels wide"
        assert hit, f"the middle of {name} and its name is not {name}"
    node(page, "peer1").click()
    expect(page.get_by_role("button", name="kill -9 peer1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
