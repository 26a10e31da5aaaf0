"""A headless Chromium that the tests speak to over its DevTools pipe: no port, no further package."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
SECONDS = 60


def find_browser():
    """The path of a Chromium; None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One page. ``problems`` has what it wrote to the console as an error, ``requests`` what it loaded."""

    def __init__(self, path):
        self.folder = tempfile.mkdtemp()
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        # Out of the way of 3 and 4, which are what the browser reads from and writes to.
        ends = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in (to_browser, from_browser)]
        self.process = subprocess.Popen(
            [path, *OPTIONS, f"--user-data-dir={self.folder}", "about:blank"],
            preexec_fn=lambda: [os.dup2(one, place) for one, place in zip(ends, (3, 4), strict=True)],
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for one in (to_browser, from_browser, *ends):
            os.close(one)
        self.rest = b""
        self.number = 0
        self.session = None
        self.problems, self.requests = [], []
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        """The answer to a command; events on the way are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._event(answer)

    def _next(self):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.read_end], [], [], SECONDS)
            read = os.read(self.read_end, 1 << 20) if ready else b""
            assert read, "the browser does not answer"
            self.rest += read
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def _event(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(parameters["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.problems.append(parameters["args"])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(parameters["entry"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def evaluate(self, expression):
        """The value of an expression in the page; a promise is waited for."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression):
        """Wait until an expression is true."""
        until = time.monotonic() + SECONDS
        while not self.evaluate(expression):
            assert time.monotonic() < until, f"not true in time: {expression}"
            time.sleep(0.02)

    def open(self, url, width=1280, height=900, mobile=False):
        """Load a page and wait until it is drawn."""
        self.resize(width, height, mobile)
        self.send("Page.navigate", url=url)
        self.wait("document.documentElement?.dataset.ready === 'true'")

    def resize(self, width, height, mobile=False):
        """The size of the window."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )

    def click(self, selector):
        """Press the mouse in the middle of an element, as a person would."""
        self.evaluate(
            f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center', behavior: 'instant'}})"
        )
        x, y = self.evaluate(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, selector, text):
        """Write into a field."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.send("Input.insertText", text=text)

    def press(self, key):
        """Press a key."""
        for kind in ("rawKeyDown", "keyUp"):
            code = {"Enter": 13, "Escape": 27}[key]
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def screenshot(self, whole=True):
        """A PNG of the page."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def close(self):
        """End the browser."""
        self.process.terminate()
        self.process.wait(timeout=30)
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.folder, ignore_errors=True)
