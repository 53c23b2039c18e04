# SPDX-License-Identifier: Apache-2.0
"""Pages in Chromium. A test program starts it once for all pages, because the start takes longer than any page."""

import json
import os
import select
import shutil
import subprocess
import tempfile

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SECONDS = 8  # of the page's own time, which passes as fast as the page is idle
SHOWN = "document.documentElement.outerHTML"


class Browser:
    """Chromium, which reads commands from descriptor 3 and writes responses to 4."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # A file, because Chromium blocks on a pipe that is not read in time.
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "sh", CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-software-rasterizer", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-dev-shm-usage", "--user-data-dir=" + self.profile.name, "--window-size=1200,800",
             "--remote-debugging-pipe"],
            pass_fds=(commands, answers), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors,
            env=dict(os.environ, HOME=self.profile.name))
        os.close(commands)
        os.close(answers)
        self.unread, self.number, self.events = b"", 0, []
        self.said = []  # the page's errors

    def close(self):
        self.call("Browser.close")
        self.process.wait(300)
        os.close(self.commands)
        os.close(self.answers)
        self.errors.close()
        self.profile.cleanup()

    def read(self):
        while b"\0" not in self.unread:
            if not select.select([self.answers], [], [], 300)[0]:
                raise RuntimeError("Chromium is silent: " + self.complaints())
            some = os.read(self.answers, 1 << 20)
            if not some:
                raise RuntimeError("Chromium has ended: " + self.complaints())
            self.unread += some
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        message = json.dumps(message).encode() + b"\0"
        while message:
            message = message[os.write(self.commands, message):]
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.events.append(answer["method"])
            if answer["method"] in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.said.append(json.dumps(answer["params"])[:500])

    def wait_for(self, event):
        while event not in self.events:
            self.events.append(self.read()["method"])
        self.events.clear()

    def complaints(self):
        self.errors.seek(0)
        return self.errors.read()[-3000:]

    def show(self, url):
        """The page as the browser shows it after a while."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable", session)
        self.call("Page.navigate", session, url=url)
        self.wait_for("Page.loadEventFired")
        self.call("Emulation.setVirtualTimePolicy", session, policy="pauseIfNetworkFetchesPending", budget=SECONDS * 1000)
        self.wait_for("Emulation.virtualTimeBudgetExpired")
        shown = self.call("Runtime.evaluate", session, expression=SHOWN, returnByValue=True)["result"]["value"]
        self.call("Target.closeTarget", targetId=target)
        return shown
