#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Debug files from a small debuginfod server that counts its requests, and a program that looks names up.

usage: test_debuginfod.py ASKING_PROGRAM FIXTURES
"""

import ctypes.util
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM, FIXTURES = sys.argv[1:3]
BUILD_ID = "a1b2c3d4e5f60718"
OTHER = "ffffffffffffffff"


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, files, is_deaf=False):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files, self.asked = files, []
        self.is_deaf, self.end = is_deaf, threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.asked.append(self.path)
        if server.is_deaf:
            server.end.wait(60)
            return
        path = server.files.get(self.path)
        if not path:
            self.send_error(404)
            return
        with open(path, "rb") as file:
            content = file.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


class Debuginfod(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def ask(self, *questions, servers="", **environment):
        """Returns the program's answers, and whether it loaded libdebuginfod."""
        environment = {"PATH": os.environ["PATH"], "DEBUGINFOD_CACHE_PATH": self.folder + "/cache",
                       "HOME": self.folder, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""), **environment}
        if servers:
            environment["DEBUGINFOD_URLS"] = servers
        done = subprocess.run([PROGRAM, *questions], env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        *answers, loaded = done.stdout.splitlines()
        return answers, loaded == "libdebuginfod"

    def serve(self, files, **how):
        server = Server({f"/buildid/{build_id}/debuginfo": f"{FIXTURES}/{file}"
                         for build_id, file in files.items()}, **how)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(server.end.set)
        return server

    DEBUG = f"debug/.build-id/{BUILD_ID[:2]}/{BUILD_ID[2:]}.debug"

    def test_fetched_once(self):
        server = self.serve({BUILD_ID: self.DEBUG})
        answers, loaded = self.ask("bare.so", "bare.so", servers=server.url)
        self.assertEqual([answer.split(" ")[0] for answer in answers], ["fixture_static"] * 2)
        for answer in answers:
            self.assertRegex(answer, r"/fixture\.c:\d+$")
        self.assertEqual(server.asked, [f"/buildid/{BUILD_ID}/debuginfo"])
        self.assertTrue(loaded)

    def test_only_with_servers(self):
        server = self.serve({BUILD_ID: self.DEBUG})
        for environment in ({}, {"DEBUGINFOD_URLS": "  "}, {"DEBUGINFOD_URLS_OTHER": server.url}):
            answers, loaded = self.ask("bare.so", **environment)
            self.assertEqual(answers, ["- -"])
            self.assertFalse(loaded)
        self.assertEqual(server.asked, [])

    def test_only_what_is_missing(self):
        server = self.serve({BUILD_ID: self.DEBUG})
        for has_it in ("full.so", "stripped.so"):
            answers, loaded = self.ask(has_it, servers=server.url)
            self.assertRegex(answers[0], r"^fixture_static .*/fixture\.c:\d+$")
            self.assertFalse(loaded)
        self.assertEqual(server.asked, [])

    def test_not_there(self):
        server = self.serve({})
        answers, _ = self.ask("bare.so", "forget", "bare.so", servers=server.url)
        self.assertEqual(answers, ["- -", "", "- -"])
        self.assertEqual(server.asked, [f"/buildid/{BUILD_ID}/debuginfo"])

    def test_another_file(self):
        """The server sends the file of another build."""
        server = self.serve({BUILD_ID: "other.so"})
        answers, _ = self.ask("bare.so", servers=server.url)
        self.assertEqual(answers, ["- -"])

    def test_no_answer(self):
        """One attempt takes the allowed time; then no server gets a further request."""
        server = self.serve({BUILD_ID: self.DEBUG}, is_deaf=True)
        start = time.monotonic()
        answers, _ = self.ask("bare.so", "forget", "bare.so", f"bare.so={OTHER}", servers=server.url,
                              DEBUGINFOD_TIMEOUT="1")
        took = time.monotonic() - start
        self.assertEqual(answers, ["- -", "", "- -", "- -"])
        while not server.asked and time.monotonic() < start + 300:  # on a busy machine, its thread may not have run yet
            time.sleep(0.01)
        self.assertEqual(set(server.asked), {f"/buildid/{BUILD_ID}/debuginfo"})
        self.assertLess(took, 80)  # the library's own limit is 90

    def test_nobody_there(self):
        server = self.serve({})
        url = server.url
        server.shutdown()
        server.server_close()
        answers, _ = self.ask("bare.so", servers=url)
        self.assertEqual(answers, ["- -"])

    def test_fork_while_fetching(self):
        """Other threads continue meanwhile, and a child does not hang."""
        server = self.serve({BUILD_ID: self.DEBUG}, is_deaf=True)
        for _ in range(10):
            answers, _ = self.ask("fork", "bare.so", servers=server.url, DEBUGINFOD_TIMEOUT="2")
            if answers[0] != "not seen waiting":  # the program did not run in these two seconds
                break
        self.assertEqual(answers, ["fine", "- -"])


if __name__ == "__main__":
    try:
        ctypes.CDLL("libdebuginfod.so.1")
    except OSError:
        print("skipped: libdebuginfod.so.1 is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
