"""Debian's Chromium, and what it complains of: whatever a reader's browser would warn about fails the test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"

WIDE, NARROW = 1280, 360
"""Pixels: a screen, and a small phone."""

expect.set_options(timeout=60_000)  # milliseconds; only a fault reaches it


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window. Root, which CI is, has to do without its sandbox; it sees pages of ours only."""
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as browser,
    ):
        yield browser


class Visitor:
    """Opens pages, each in a browser profile of its own, and notes what the browser does not like."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.complaints: list[str] = []

    def opens(self, server: str, path: str = "/", *, own_clock: bool = False, **profile: Any) -> Page:  # noqa: ANN401 - Playwright's own words
        """A tab with that page of a server; `profile`: what differs from a light screen 1280 pixels wide.

        `own_clock`: the page's timers run when the test says so.
        """
        usual = {"viewport": {"width": WIDE, "height": 900}, "color_scheme": "light", "reduced_motion": "reduce"}
        context = self._browser.new_context(base_url=server, **usual | profile)
        if own_clock:
            context.clock.install()
        tab = context.new_page()
        tab.on("console", self._said)
        tab.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        tab.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        tab.on("request", lambda request: self._asked(request, server))
        tab.goto(path)
        return tab

    def close(self) -> None:
        """Close what is open."""
        for context in self._browser.contexts:
            context.close()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text}")

    def _asked(self, request: Request, server: str) -> None:
        if not request.url.startswith((f"{server}/", "data:")):
            self.complaints.append(f"foreign: {request.url}")
