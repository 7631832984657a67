"""A real chromium, driven by the WebDriver protocol (W3C) over plain HTTP."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.ports import free_port
from tests.waiting import until
from urteil.chaos.waiting import retry
from urteil.harness.dependencies.chromium import chromium

START_S = 60.0
SWITCHES = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--hide-scrollbars", "--disable-background-networking")  # fmt: skip


class Browser:
    """One session. `logs` are the console's errors since the last page was opened."""

    def __init__(self, url: str, binary: str) -> None:
        self._url = url
        options = {"binary": binary, "args": list(SWITCHES)}
        asked = {"browserName": "chrome", "goog:chromeOptions": options,
                 "goog:loggingPrefs": {"browser": "ALL"}}  # fmt: skip
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": asked}})
        self._session = f"/session/{answer['sessionId']}"

    def open(self, where: str, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Open an address on paper of that size, and wait until its plots are drawn.

        The page before, which may ask its server for more, is left first.
        """
        self._ask("POST", "/url", {"url": "about:blank"})
        self.errors()
        self._cdp(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._cdp("Emulation.setEmulatedMedia", {"features": [scheme]})
        self._ask("POST", "/url", {"url": where})
        self.until("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """What a script returns."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": []})

    def until(self, condition: str, deadline_s: float = 60.0) -> None:
        """Wait until an expression is true."""
        until(lambda: self.run(f"return Boolean({condition})"), condition, deadline_s=deadline_s)

    def errors(self) -> list[str]:
        """What the console complained of."""
        entries = self._ask("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def pointer(self, *moves: tuple[str, int, int]) -> None:
        """`("move", x, y)`, `("down", 0, 0)`, `("up", 0, 0)` of a mouse, in turn."""
        kinds = {"move": "pointerMove", "down": "pointerDown", "up": "pointerUp"}
        steps = [
            {"type": kinds[kind], "duration": 80, "x": x, "y": y, "origin": "viewport"}
            if kind == "move" else {"type": kinds[kind], "button": 0}
            for kind, x, y in moves
        ]  # fmt: skip
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
                 "actions": steps}  # fmt: skip
        self._ask("POST", "/actions", {"actions": [mouse]})

    def picture(self, path: Path) -> Path:
        """A PNG of what stands in the window."""
        path.write_bytes(base64.b64decode(self._ask("GET", "/screenshot", None)))
        return path

    def close(self) -> None:
        self._call("DELETE", self._session, None)

    def _cdp(self, command: str, parameters: dict[str, Any]) -> Any:
        return self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def _ask(self, method: str, path: str, body: Any) -> Any:
        return self._call(method, self._session + path, body)

    def _call(self, method: str, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode(errors="replace")[:500]) from error


@contextlib.contextmanager
def running_browser(log: Path) -> Iterator[Browser]:
    """A browser with its driver; both end with the block."""
    binary, driver = chromium()
    port = free_port()
    with log.open("w") as out:
        process = subprocess.Popen([driver, f"--port={port}"], stdout=out, stderr=out)
        try:
            _await(port)
            browser = Browser(f"http://127.0.0.1:{port}", binary)
            try:
                yield browser
            finally:
                browser.close()
        finally:
            process.terminate()
            process.wait(timeout=60)


def _await(port: int) -> None:
    def connect() -> None:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()

    retry(connect, OSError, deadline_s=START_S)
