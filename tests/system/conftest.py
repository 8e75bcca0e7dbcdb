"""Headless Chromium, driven over a pipe by its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 60


class Page:
    """One tab: what it logged, what it asked the network for, and what it answers."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        self.errors: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.send(method, parameters, self)

    def take(self, method: str, parameters: dict[str, Any]) -> None:
        """An event of the browser's."""
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.errors.append(json.dumps(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(json.dumps(parameters["entry"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, path: Path, fragment: str = "", *, whole: bool = True) -> None:
        """Open a file, and wait until the charts near the screen are drawn, or all if ``whole``."""
        self.send("Page.navigate", url=path.as_uri() + fragment)
        drawn = "document.documentElement?.dataset.drawn"
        self.until(
            f"location.href.startsWith({json.dumps(path.as_uri())})"
            f" && ['near', 'all'].includes({drawn})"
        )
        if whole:
            self.value("window.dispatchEvent(new Event('beforeprint'))")
            self.until(f"{drawn} === 'all'")

    def value(self, expression: str) -> Any:
        """What an expression gives in the page, waited for if it is a promise."""
        told = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression holds."""
        end = time.monotonic() + PATIENCE_S
        while not self.value(expression):
            assert time.monotonic() < end, f"never came true: {expression}; {self.errors}"
            time.sleep(0.05)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def look(self, *, width: int, height: int = 900, dark: bool = False, media: str = "") -> None:
        """A size of window, a colour scheme and a medium."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """A PNG of the page."""
        told = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(told["data"]))

    def print(self, path: Path) -> None:
        """A PDF of the page as printed."""
        told = self.send("Page.printToPDF", printBackground=True)
        path.write_bytes(base64.b64decode(told["data"]))


class Browser:
    """A Chromium of its own, with a profile that is thrown away."""

    def __init__(self, program: str, profile: Path) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        command = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--no-first-run",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            f"--user-data-dir={profile}",
            "--remote-debugging-pipe",
            "about:blank",
        ]
        # The protocol's pipes are descriptors 3 and 4 of the browser.
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "chromium", *command],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._left, self._number = b"", 0
        self._pages: dict[str, Page] = {}

    def page(self) -> Page:
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self.send("Target.attachToTarget", {"targetId": target, "flatten": True})
        session = attached["sessionId"]
        page = Page.__new__(Page)
        self._pages[session] = page
        page.__init__(self, session)
        return page

    def send(
        self, method: str, parameters: dict[str, Any], page: Page | None = None
    ) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if page is not None:
            message["sessionId"] = page._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            told = self._receive()
            if told.get("id") == self._number:
                assert "error" not in told, (method, told["error"])
                return told["result"]
            if told.get("sessionId") in self._pages and "method" in told:
                self._pages[told["sessionId"]].take(told["method"], told["params"])

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE_S
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._in], [], [], max(0, end - time.monotonic()))
            assert ready, "Chromium does not answer"
            read = os.read(self._in, 1 << 20)
            assert read, "Chromium ended"
            self._left += read
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)

    def close(self) -> None:
        self.send("Browser.close", {})
        self._process.wait(PATIENCE_S)
        os.close(self._in)
        os.close(self._out)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Debian's Chromium, which ci/setup installs."""
    program = shutil.which("chromium")
    assert program, "chromium is not installed: run ci/setup --test"
    made = Browser(program, tmp_path_factory.mktemp("profile"))
    yield made
    made.close()
