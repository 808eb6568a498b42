"""Take pictures of Airflow's pages with headless Chromium, for scripts/airflow_demo.py.

Runs in .venv-airflow, which has websockets. Arguments: a folder, then ``NAME=URL`` for each picture. For a URL that
ends in ``#graph`` it presses the key that switches between grid and graph. Airflow remembers the choice for later
pages: the key pressed a second time shows the grid again.
"""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from websockets.sync.client import ClientConnection, connect

OPTIONS = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
    ),
    *(
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        "--window-size=1400,880",
        "--remote-debugging-port=0",
    ),
)
# Whether the page has loaded and shows no spinner.
LOADED = (
    "document.readyState === 'complete' && document.querySelector('h2, h1, nav') !== null "
    "&& !document.querySelector('.chakra-spinner')"
)
WAIT = 60


class Page:
    """One page of the browser, driven by its debugging protocol."""

    def __init__(self, line: ClientConnection) -> None:
        self.line = line
        self.numbers = itertools.count(1)

    def call(self, method: str, **given: Any) -> Any:
        """Make one call and return its answer; skips events that arrive before it."""
        number = next(self.numbers)
        self.line.send(json.dumps({"id": number, "method": method, "params": given}))
        while True:
            answer = json.loads(self.line.recv(timeout=WAIT))
            if answer.get("id") == number:
                return answer.get("result", {})

    def settle(self) -> None:
        """Wait until the page has loaded, and a few seconds more."""
        limit = time.monotonic() + WAIT
        while time.monotonic() < limit:
            time.sleep(2)
            if self.call("Runtime.evaluate", expression=LOADED)["result"].get("value") is True:
                break
        time.sleep(4)

    def press(self, key: str) -> None:
        """Press one of Airflow's keyboard shortcuts."""
        for kind in ("keyDown", "keyUp"):
            code = {
                "code": f"Key{key.upper()}",
                "windowsVirtualKeyCode": ord(key.upper()),
                "text": key if kind == "keyDown" else "",
            }
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **code)

    def take(self, path: Path) -> None:
        """Write the page as a PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


def main() -> None:
    """Take each picture."""
    folder, *wanted = sys.argv[1:]
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        sys.exit("Chromium is missing. On Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(  # noqa: S603 - Chromium itself
            [browser, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            place = Path(profile) / "DevToolsActivePort"
            limit = time.monotonic() + WAIT
            while not (place.exists() and place.read_text().strip()):
                if time.monotonic() > limit:
                    sys.exit("Chromium does not answer.")
                time.sleep(0.5)
            port = place.read_text().split()[0]
            with urlopen(f"http://127.0.0.1:{port}/json/list", timeout=WAIT) as answer:
                target = next(one for one in json.loads(answer.read()) if one["type"] == "page")
            with connect(target["webSocketDebuggerUrl"], max_size=2**26, open_timeout=WAIT) as line:
                page = Page(line)
                for name, url in (one.split("=", 1) for one in wanted):
                    page.call("Page.navigate", url=url.removesuffix("#graph"))
                    page.settle()
                    if url.endswith("#graph"):
                        page.press("g")
                        page.settle()
                    page.take(Path(folder) / f"{name}.png")
        finally:
            process.terminate()
            process.wait(20)


if __name__ == "__main__":
    main()
