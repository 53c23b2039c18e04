# SPDX-License-Identifier: Apache-2.0
"""Hostile servers and endless input: push, pull and sql end with one clear line, and use little memory.

usage: test_servers.py COMMAND ROOT"""
import itertools
import os
import socket
import subprocess
import sys
import threading
import zlib

import case  # of tests/push
from case import COMMAND, environment

MEMORY_MAX = 200 << 20
# Far larger than a response may be, and than MEMORY_MAX.
LARGE = 1 << 30
CHUNK = 1 << 16
SANITIZED = bool(os.environ.get("QUERYPROF_TEST_NO_RECORDING"))


def endless(chunk):
    return itertools.repeat(chunk, LARGE // len(chunk))


def gzipped():
    made = zlib.compressobj(9, zlib.DEFLATED, 31)
    for _ in range(LARGE >> 21):
        yield made.compress(bytes(1 << 20))
    yield made.flush()


def ok(headers=b""):
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + headers


# By name: the parts that the server sends as its response to any request.
BODY = {
    "endless": lambda: (part for parts in ((ok() + b"\r\n",), endless(b"x" * CHUNK)) for part in parts),
    "endless error": lambda: (part for parts in ((b"HTTP/1.1 500 X\r\n\r\n",), endless(b"\x1b]0;pwn\x07" * 8000))
                              for part in parts),
    "chunks": lambda: (part for parts in ((ok(b"Transfer-Encoding: chunked\r\n\r\n"),),
                                          endless(b"10000\r\n" + b"x" * CHUNK + b"\r\n")) for part in parts),
    "large": lambda: (part for parts in ((ok(b"Content-Length: %d\r\n\r\n" % LARGE),), endless(b"x" * CHUNK))
                      for part in parts),
}
HEADERS = {
    "headers": lambda: (part for parts in ((ok(),), endless(b"X: " + b"a" * 65000 + b"\r\n")) for part in parts),
    "short headers": lambda: (part for parts in ((ok(),), endless(b"X: a\r\n" * 10000)) for part in parts),
    "one header": lambda: (part for parts in ((ok(b"X: "),), endless(b"a" * CHUNK)) for part in parts),
    "interim responses": lambda: endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
}
OTHERS = {
    "compressed": lambda: (part for parts in ((ok(b"Content-Encoding: gzip\r\n\r\n"),), gzipped()) for part in parts),
    "no HTTP": lambda: iter([b"\0\xff" * 5000]),
    "negative length": lambda: iter([ok(b"Content-Length: -5\r\n\r\n") + b"hello"]),
    "cut": lambda: iter([ok(b"Content-Length: 500000\r\n\r\n") + b"abc"]),
    "redirected to a file": lambda: iter([b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n"
                                          b"Content-Length: 0\r\n\r\n"]),
}


class Server:
    def __init__(self, answer):
        self.answer, self.sent = answer, 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            with connection:
                try:
                    self.serve_one(connection)
                except OSError:
                    pass  # the client has closed the connection

    def serve_one(self, connection):
        head = b""
        while b"\r\n\r\n" not in head:
            got = connection.recv(CHUNK)
            if not got:
                return
            head += got
        for part in self.answer():
            connection.sendall(part)
            self.sent += len(part)


class Servers(case.Case):
    def setUp(self):
        super().setUp()
        self.fixed_traces()

    def run_bounded(self, arguments, may_work=False, **how):
        """Returns the errors of a command, whose memory must stay below MEMORY_MAX."""
        with subprocess.Popen([COMMAND, *arguments], env=environment(), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, **how) as process:
            error = process.stderr.read().decode()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if not SANITIZED:
            self.assertLess(usage.ru_maxrss << 10, MEMORY_MAX)
        self.assertIn(process.returncode, (0, 1) if may_work else (1,), error)
        self.assertNotIn("\x1b", error)
        return error

    def ask(self, answer, *arguments, may_work=False):
        server = Server(answer)
        self.addCleanup(server.socket.close)
        error = self.run_bounded([argument.replace("URL", server.url) for argument in arguments], may_work)
        self.assertEqual(len(error.splitlines()), 1, error)
        self.assertLess(server.sent, LARGE // 8)
        return error

    def ways(self):
        for form in "clickhouse", "otlp":
            yield ("push", "--retry-for", "0", "--format", form, self.path, "URL")

    def pull(self):
        return "pull", "URL", "-o", self.path + "-pulled"

    def test_push(self):
        for (name, answer), way in itertools.product(BODY.items(), self.ways()):
            with self.subTest(name, way=way):
                wanted = "the server responded 500" if name == "endless error" else "the server's response has more than 1048576 bytes"
                self.assertIn(wanted, self.ask(answer, *way))

    def test_headers(self):
        for (name, answer), way in itertools.product(HEADERS.items(), (*self.ways(), self.pull())):
            with self.subTest(name, way=way):
                wanted = r"more than 262144 bytes of headers|[Hh]eader" if name == "one header" else "more than 262144 bytes of headers"
                self.assertRegex(self.ask(answer, *way), wanted)

    def test_others(self):
        for (name, answer), way in itertools.product(OTHERS.items(), (*self.ways(), self.pull())):
            with self.subTest(name, way=way):
                # The client does not decompress responses. It prints the beginning of a response to data that it sent.
                self.ask(answer, *way, may_work=name == "compressed")

    def test_reader(self):
        for name, answer in BODY.items():
            with self.subTest(name):
                self.assertRegex(self.ask(answer, *self.pull()),
                                 r"the server responded 500|response has more than|not a ClickHouse server")

    def test_endless_row(self):
        """The first responses are valid numbers; then a row never ends."""
        numbers = iter([b"23\t8\n", b"1\t2\t3\n"])

        def answer():
            text = next(numbers, None)
            if text:
                return iter([ok(b"Content-Length: %d\r\n\r\n" % len(text)) + text])
            return BODY["endless"]()

        server = Server(answer)
        self.addCleanup(server.socket.close)
        error = self.run_bounded(["pull", server.url, "-o", self.path + "-pulled"])
        self.assertIn("a row of the server's response has more than 64 MiB", error)

    def test_standard_input(self):
        with open("/dev/zero", "rb") as zeros:
            self.assertIn("standard input: more than", self.run_bounded(["sql", self.path], stdin=zeros))

    def test_credentials(self):
        path = os.path.join(self.folder, "secrets")
        with open(path, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.truncate(LARGE)
        self.assertIn("line 1", self.run_bounded(["push", "--credentials", path, self.path, "http://127.0.0.1:1/"]))


if __name__ == "__main__":
    case.main()
