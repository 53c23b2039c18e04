#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The server of `queryprof live`: what it serves and what it refuses. The texts of its trace file are hostile.

usage: test_server.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import base64
import contextlib
import http.client
import json
import os
import random
import re
import signal
import socket
import sqlite3
import sys
import time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", name) for name in ("lib", "command", "attack")]
import test_texts
from tool import *

ROUNDS = int(os.environ.get("QUERYPROF_TEST_ROUNDS", "300"))
SEED = 52
SECONDS = 300  # ends a test that hangs
PARTS = ["file", "statements", "plans", "history", "callers", "runs", "functions", "stacks", "origins", "lanes", "locks", "chains", "wals", "wal_points", "pages", "findings", "losses",
         "sampling", "unplanned"]


class Server:
    """A running `queryprof live`."""

    def __init__(self, path, *options, **variables):
        self.process = subprocess.Popen([QUERYPROF, "live", path, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=environment(**variables))
        self.address = self.process.stdout.readline().rstrip("\n")
        found = re.fullmatch(r"http://(.*):(\d+)(/([0-9a-f]{32})/)", self.address)
        if not found:
            raise AssertionError((self.address, self.process.communicate()))
        self.host, self.port, self.path, self.token = found[1], int(found[2]), found[3], found[4]

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        errors = self.process.communicate(timeout=SECONDS)[1]
        return self.process.returncode, errors

    def ask(self, path=None, method="GET", body=None, **headers):
        """Returns the status, the headers and the body of the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        with contextlib.closing(connection):
            connection.request(method, self.path if path is None else path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()

    def data(self):
        status, _, body = self.ask(self.path + "data")
        if status != 200:
            raise AssertionError((status, body))
        return json.loads(body)

    def raw(self, text, ends=True):
        """Sends these bytes and returns the response; b"" if the server resets the connection. ends: the client closes its
        direction."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS) as connection:
            try:
                connection.sendall(text)
                if ends:
                    connection.shutdown(socket.SHUT_WR)
                answer = b""
                while part := connection.recv(65536):
                    answer += part
                return answer
            except OSError:  # the server has reset the connection
                return b""

    @contextlib.contextmanager
    def events(self):
        """An iterator over the name and the data of each event."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS) as connection:
            connection.sendall(b"GET %sevents HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (self.path.encode(), self.port))
            with connection.makefile("rb") as lines:
                def each():
                    name = None
                    for line in lines:
                        if line.startswith(b"event: "):
                            name = line[7:].strip().decode()
                        elif line.startswith(b"data: "):
                            yield name, json.loads(line[6:])
                yield each()


class Served(Tool):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="queryprof-page-")
        cls.trace = os.path.join(cls.folder, "app.trace")
        test_texts.make_hostile(cls.trace)
        with contextlib.closing(sqlite3.connect(cls.trace)) as db:
            db.execute("UPDATE statements SET query = query || '</script><img src=x onerror=alert(1)><!--' || char(10) || '\u2028'")
            db.commit()
        cls.server = Server(cls.trace)

    @classmethod
    def tearDownClass(cls):
        code, errors = cls.server.close()
        shutil.rmtree(cls.folder)
        if code != 0:
            raise AssertionError((code, errors))

    def works(self):
        self.assertEqual(self.server.ask()[0], 200)


class Answers(Served):
    def test_page(self):
        status, headers, page = self.server.ask()
        self.assertEqual(status, 200)
        self.assertEqual(headers["Content-Type"], "text/html; charset=utf-8")
        policy = headers["Content-Security-Policy"]
        self.assertTrue(policy.startswith("default-src 'none'; script-src 'sha256-"), policy)
        self.assertNotIn("unsafe", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertEqual((headers["Cache-Control"], headers["X-Content-Type-Options"], headers["Referrer-Policy"]), ("no-store", "nosniff", "no-referrer"))
        self.assertNotIn(b"@DATA@", page)
        self.assertIn(b'<script type="application/json" id="data">null</script>', page)
        self.assertNotRegex(page, rb'(src|href)="(?!data:)')  # the page loads nothing

    def test_localhost(self):
        for name in ("localhost", "127.0.0.1"):
            host = "%s:%d" % (name, self.server.port)
            self.assertEqual(self.server.ask(Host=host, Origin="http://" + host)[0], 200)

    def test_data(self):
        status, headers, body = self.server.ask(self.server.path + "data")
        self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
        data = json.loads(body)
        self.assertEqual([name for name in data if isinstance(data[name], list)], PARTS)
        expected = json.loads(self.output("queries", self.trace, "--format", "json"))
        self.assertEqual([(one["statement"], one["runs"], one["rows"], one["share"]) for one in data["statements"]],
                         [(one["statement"], one["runs"], one["rows"], one["share_%"]) for one in expected])
        self.assertTrue(any("<img src=x" in one["query"] for one in data["statements"]))
        expected = json.loads(self.output("findings", self.trace, "--format", "json"))
        self.assertEqual([(one["finding"], one["cure"]) for one in data["findings"]], [(one["finding"], one["cure"]) for one in expected])
        self.assertTrue(data["plans"])
        # The data contains no path of this machine.
        self.assertNotIn(self.folder.encode(), body)
        self.assertFalse([one["caller"] for one in data["callers"] if "/" in one["caller"]])

    def test_metrics(self):
        """The server returns what `queryprof metrics` prints."""
        status, headers, body = self.server.ask(self.server.path + "metrics")
        self.assertEqual((status, headers["Content-Type"]), (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"))
        self.assertEqual(body, subprocess.run([QUERYPROF, "metrics", self.trace], capture_output=True, timeout=SECONDS, check=True).stdout)
        self.assertTrue(body.endswith(b"# EOF\n"))

    def test_the_same_again(self):
        """Two requests get the same text if the file has not changed."""
        self.assertEqual(self.server.ask(self.server.path + "data")[2], self.server.ask(self.server.path + "data")[2])

    def test_many_at_once(self):
        """Concurrent requests get the same text."""
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=SECONDS)))
                           for _ in range(20)]
            for connection in connections:
                connection.request("GET", self.server.path + "data")
            bodies = {connection.getresponse().read() for connection in connections}
        self.assertEqual(len(bodies), 1)

    def test_events(self):
        """No process records to the file, so the events report that nothing is known."""
        with self.server.events() as one, self.server.events() as other:
            for events in (one, other):
                self.assertEqual(next(events), ("now", {"known": False}))
                self.assertEqual(next(events), ("now", {"known": False}))


class Refusals(Served):
    def refused(self, status, *arguments, **named):
        seen, headers, body = self.server.ask(*arguments, **named)
        self.assertEqual(seen, status, (arguments, named))
        self.assertNotIn(self.server.token.encode(), body)
        self.assertNotIn(self.folder.encode(), body)
        self.assertNotIn(b"SELECT", body)
        return headers

    def test_token(self):
        token = self.server.token
        other = ("0" if token[0] != "0" else "1") + token[1:]
        for path in ("/", "/data", "/events", "//", "/%s" % token, "/%s/" % token[:-1], "/%s/data" % other, "/%s0/" % token, "/%s/" % token.upper()
                     if token.upper() != token else "/x/", "/?%s" % token, "/%s" % ("a" * 4000)):
            self.refused(403, path)

    def test_host(self):
        port = self.server.port
        for host in ("evil.example", "evil.example:%d" % port, "127.0.0.1", "127.0.0.1:%d" % (port ^ 1), "127.0.0.1.evil.example:%d" % port,
                     "localhost:%d.evil.example" % port, "[::1]:%d" % port):
            self.refused(403, Host=host)
        answer = self.server.raw(b"GET %s HTTP/1.0\r\n\r\n" % self.server.path.encode())
        self.assertNotIn(b" 200 ", answer.split(b"\r\n")[0])

    def test_origin(self):
        port = self.server.port
        for origin in ("null", "http://evil.example", "https://127.0.0.1:%d" % port, "http://127.0.0.1", "http://127.0.0.1:%d.evil.example" % port, ""):
            self.refused(403, Origin=origin)
            self.refused(403, self.server.path + "data", Origin=origin)

    def test_methods(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "FOO"):
            headers = self.refused(405, method=method)
            self.assertEqual(headers["Allow"], "GET")
        self.refused(400, body=b"x" * 10)
        self.works()

    def test_paths(self):
        path = self.server.path
        for rest in ("x", "data/", "data/../data", "../", "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "..%2f..%2fetc/passwd", "data%01",
                     "data;x", "app.trace", "events/x", "//data", "\\..\\data"):
            self.refused(404, path + rest)
        # This path does not begin with the token.
        self.refused(403, "/../../etc/passwd")

    def test_parameters_mean_nothing(self):
        self.assertEqual(self.server.ask(self.server.path + "?file=/etc/passwd&id=1'--")[2], self.server.ask()[2])

    def test_large_requests(self):
        path = self.server.path.encode()
        host = b"Host: 127.0.0.1:%d\r\n" % self.server.port
        for text in (b"GET %s HTTP/1.1\r\n%sX: %s\r\n\r\n" % (path, host, b"a" * 1000000), b"GET %s%s HTTP/1.1\r\n%s\r\n" % (path, b"a" * 1000000, host),
                     b"GET %s HTTP/1.1\r\n%s%s\r\n" % (path, host, b"X: a\r\n" * 100000), b"x" * 1000000, b"\0" * 100000):
            answer = self.server.raw(text)
            self.assertNotIn(b" 200 ", answer.split(b"\r\n")[0])
            self.works()

    def test_slow_clients(self):
        """Clients that send half a request, or read no response, do not keep another client from being served."""
        request = b"GET %sdata HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (self.server.path.encode(), self.server.port)
        with contextlib.ExitStack() as stack:
            for i in range(50):
                connection = stack.enter_context(socket.socket())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                connection.connect(("127.0.0.1", self.server.port))
                connection.sendall(request[:len(request) // 2] if i % 2 else request * 5 if i % 4 else request.replace(b"data ", b"events "))
            for _ in range(5):
                self.works()
                self.assertTrue(self.server.data()["statements"])

    def test_fuzzed(self):
        """Only the four addresses of the page return content, whatever clients request."""
        chance = random.Random(SEED)
        print("seed", SEED)
        pieces = [self.server.token, "/", "data", "events", "metrics", "..", "%2e", "%00", "?", "&", "=", "#", "a", "'", "\"", "<", ";", "%", "%zz", "\xe9", "1e999", "-1"]
        allowed = {self.server.path, self.server.path + "data", self.server.path + "metrics"}
        for _ in range(ROUNDS):
            path = "/" + "".join(chance.choice(pieces) for _ in range(chance.randrange(12)))
            bare = re.split("[?#]|%00", path)[0].replace("%2e", ".")  # a null character ends the path
            if bare == self.server.path + "events":
                continue
            line = "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % (path, self.server.port)
            answer = self.server.raw(line.encode("latin-1"), ends=False)
            status = answer.split(b" ")[1:2]
            self.assertIn(status, ([b"200"],) if bare in allowed and bare == path.split("?")[0] else ([b"200"], [b"400"], [b"403"], [b"404"], []), path)
            if status == [b"200"]:
                self.assertIn(bare, allowed, path)
        self.works()


class Elsewhere(Served):
    """A page that is served to other machines."""
    PASSWORD = "correct horse battery"

    def password_file(self, text, mode=0o600):
        path = os.path.join(self.folder, "password")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    @staticmethod
    def basic(user, password):
        return "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()

    def test_password(self):
        for password in self.PASSWORD, self.PASSWORD + "!", self.PASSWORD + "é":
            server = Server(self.trace, "--listen", "0.0.0.0", "--password-file", self.password_file(password + "\nmore\n"))
            self.addCleanup(server.close)
            self.assertEqual(server.host, socket.gethostname())
            for path in server.path, server.path + "data", server.path + "events", server.path + "metrics", "/":
                status, headers, body = server.ask(path)
                self.assertEqual((status, headers["WWW-Authenticate"]), (401, 'Basic realm="queryprof", charset="UTF-8"'), path)
                self.assertNotIn(server.token.encode(), body)
            for wrong in (self.basic("queryprof", password[:-1]), self.basic("queryprof", ""), self.basic("other", password), "Basic", "", "Bearer x",
                          self.basic("queryprof", password) + "="):
                self.assertEqual(server.ask(Authorization=wrong)[0], 401, wrong)
            right = self.basic("queryprof", password)
            self.assertEqual(server.ask(Authorization=right)[0], 200)
            self.assertEqual(server.ask("/", Authorization=right)[0], 403)  # the token is still needed
            self.assertTrue(json.loads(server.ask(server.path + "data", Authorization=right)[2])["statements"])

    def test_hosts(self):
        """The server accepts any IP address as Host, because it may be this machine's. Another name belongs to another site."""
        server = Server(self.trace, "--listen", "0.0.0.0", "--password-file", self.password_file(self.PASSWORD))
        self.addCleanup(server.close)
        right = self.basic("queryprof", self.PASSWORD)
        for name, status in ((socket.gethostname(), 200), ("127.0.0.1", 200), ("localhost", 200), ("192.0.2.7", 200), ("[::1]", 200), ("[2001:db8::1]", 200),
                             ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("[evil]", 403), ("::1", 403), ("[]", 403), ("[", 403), ("]", 403), ("", 403),
                             ("a" * 300, 403)):
            host = "%s:%d" % (name, server.port)
            self.assertEqual(server.ask(Host=host, Authorization=right)[0], status, host)
            self.assertEqual(server.ask(Host=host, Origin="http://evil.example:%d" % server.port, Authorization=right)[0], 403)
            if status == 200:
                self.assertEqual(server.ask(Host=host, Origin="http://" + host, Authorization=right)[0], 200)

    def test_loopback(self):
        """A loopback address needs no password, and other addresses are not accepted as Host."""
        server = Server(self.trace, "--listen", "127.0.0.1")
        self.addCleanup(server.close)
        self.assertEqual(server.ask()[0], 200)
        self.assertEqual(server.ask(Host="192.0.2.7:%d" % server.port)[0], 403)

    def test_misuse(self):
        self.assertIn("expected an IP address", self.refused(2, "live", self.trace, "--listen", "example.org"))
        self.assertIn("--password-file", self.refused(2, "live", self.trace, "--listen", "0.0.0.0"))
        self.assertIn("--password-file", self.refused(2, "live", self.trace, "--listen", "::"))
        for text, mode, sentence in ((self.PASSWORD, 0o640, "chmod 600"), ("short", 0o600, "expected 12 to 200"), ("", 0o600, "expected 12 to 200"),
                                     ("x" * 500, 0o600, "expected 12 to 200")):
            self.assertIn(sentence, self.refused(1, "live", self.trace, "--listen", "0.0.0.0", "--password-file", self.password_file(text, mode)))
        self.assertIn("No such file", self.refused(1, "live", self.trace, "--password-file", os.path.join(self.folder, "none")))


class Files(Served):
    """A file that changes while it is served."""

    def setUp(self):
        self.own = os.path.join(self.folder, self.id() + ".trace")
        shutil.copy(self.trace, self.own)
        self.served = Server(self.own)
        self.addCleanup(self.served.close)

    def change(self, sql):
        with contextlib.closing(sqlite3.connect(self.own)) as db:
            db.execute(sql)
            db.commit()

    def await_data(self, condition):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            status, _, body = self.served.ask(self.served.path + "data")
            if condition(status, body):
                return body
            time.sleep(0.05)
        self.fail("never came: %s %s" % (status, body[:200]))

    def test_growing(self):
        self.assertNotIn("a new text", json.dumps(self.served.data()))
        self.change("UPDATE statements SET query = 'SELECT ''a new text'''")
        with self.served.events() as events:
            while next(events)[0] != "changed":
                pass
        self.await_data(lambda status, body: status == 200 and b"a new text" in body)

    def test_damaged(self):
        """The server survives a file that cannot be read, and prints its path only in the terminal."""
        self.assertTrue(self.served.data()["statements"])
        with open(self.own, "rb") as file:
            whole = file.read()
        with open(self.own, "wb") as file:
            file.write(b"no database " * 1000)
        body = self.await_data(lambda status, body: status == 503)
        self.assertNotIn(self.folder.encode(), body)
        with open(self.own, "wb") as file:
            file.write(whole)
        self.await_data(lambda status, body: status == 200)
        code, errors = self.served.close()
        self.assertEqual(code, 0)
        self.assertIn(self.own, errors)


class Ends(Served):
    def test_end(self):
        """When the command ends, it closes all connections and its port."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            server = Server(self.trace)
            with server.events() as events:
                next(events)
                server.process.send_signal(number)
                for _ in events:
                    pass
            self.assertEqual(server.close(), (0, ""))
            with self.assertRaises(ConnectionRefusedError):
                server.ask()

    def test_port_in_use(self):
        errors = self.refused(1, "live", self.trace, "--port", str(self.server.port))
        self.assertIn("port %d of 127.0.0.1: Address already in use" % self.server.port, errors)

    def test_misuse(self):
        for port in ("0", "65536", "123456"):
            self.assertIn("expected a number from 1 to 65535", self.refused(2, "live", self.trace, "--port", port))
        self.assertIn("No such file", self.refused(1, "live", os.path.join(self.folder, "none.trace")))

    def test_without_library(self):
        folder = os.path.join(self.folder, "libraries")
        os.mkdir(folder)
        with open(os.path.join(folder, "libmicrohttpd.so.12"), "wb"):
            pass
        done = subprocess.run([QUERYPROF, "live", self.trace], capture_output=True, text=True, timeout=SECONDS, check=False,
                              env=environment(LD_LIBRARY_PATH=folder))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("libmicrohttpd12", done.stderr)


class Recorded(Served):
    """The page that `record --live`, `live -- COMMAND` and `attach --live` serve during a recording."""
    PROGRAM = "import sqlite3, sys; sqlite3.connect(':memory:').execute('SELECT 5 AS recorded'); print('begun', flush=True); sys.stdin.readline(); sys.exit(7)"

    def begin(self, *words, ignored=None):
        """Starts a recording; returns it and the address of its page. The program runs until it reads a line. ignored: a
        signal that the recording inherits as ignored."""
        recording = subprocess.Popen([QUERYPROF, *words, "--", "/usr/bin/python3", "-c", self.PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, cwd=self.folder, env=environment(), start_new_session=True,
                                     preexec_fn=ignored and (lambda: signal.signal(ignored, signal.SIG_IGN)))
        self.addCleanup(self.end, recording)
        self.assertEqual(recording.stdout.readline(), "begun\n")
        for line in recording.stderr:
            if line.startswith("http://"):
                return recording, re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[0-9a-f]{32}/)", line.rstrip("\n"))
        raise AssertionError("no address")

    def end(self, recording):
        if recording.poll() is None:
            os.killpg(recording.pid, signal.SIGKILL)
        for stream in recording.stdin, recording.stdout, recording.stderr:
            stream.close()
        recording.wait(SECONDS)

    def ask(self, found):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=SECONDS)) as connection:
            connection.request("GET", found[2] + "data")
            response = connection.getresponse()
            return response.status, response.read().decode()

    def await_none(self, found):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                self.ask(found)
            except (ConnectionError, http.client.HTTPException):
                return
            time.sleep(0.02)
        self.fail("the page is still served")

    def check(self, *words):
        recording, found = self.begin(*words)
        self.assertEqual(self.ask(found)[0], 200)
        recording.stdin.write("\n")
        recording.stdin.flush()
        for line in recording.stderr:
            if "the page stays until Ctrl-C" in line:
                break
        else:
            self.fail("it does not say that the page stays")
        end = time.monotonic() + SECONDS
        while "recorded" not in self.ask(found)[1]:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        with open("/proc/%d/task/%d/children" % (recording.pid, recording.pid), encoding="ascii") as children:
            self.assertEqual(len(children.read().split()), 1, "only the page's process is left")
        recording.send_signal(signal.SIGINT)
        self.assertEqual(recording.wait(SECONDS), 7)
        self.await_none(found)

    def test_record(self):
        """The page shows the recording, stays after the program ends, and ends with the command, which returns the program's
        status."""
        self.check("record", "--live", "-o", "one.trace")

    def test_signal_at_the_message(self):
        """Ctrl-C that arrives with the message ends the page, and the command returns the program's status. The same holds if
        the command inherited the signal as ignored."""
        for ignored in None, signal.SIGINT:
            recording, found = self.begin("record", "--live", "-o", "signal-%s.trace" % ignored, ignored=ignored)
            recording.stdin.write("\n")
            recording.stdin.flush()
            for line in recording.stderr:
                if "the page stays until Ctrl-C" in line:
                    recording.send_signal(signal.SIGINT)
                    break
            self.assertEqual(recording.wait(SECONDS), 7)
            self.await_none(found)

    def test_command(self):
        self.check("live")

    def test_terminated(self):
        """After SIGTERM or SIGHUP, the page does not wait for Ctrl-C."""
        for number in signal.SIGTERM, signal.SIGHUP:
            recording, found = self.begin("record", "--live", "-o", "ended.trace")
            recording.send_signal(number)
            self.assertEqual(recording.wait(SECONDS), -number)
            self.await_none(found)

    @unittest.skipIf(SANITIZED, "a program without the sanitizer cannot load a library that has it")
    def test_attached(self):
        """The first Ctrl-C ends the recording, the second one the page."""
        program = subprocess.Popen(["/usr/bin/python3", "-c", self.PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.communicate, "\n")
        self.assertEqual(program.stdout.readline(), "begun\n")
        recording = subprocess.Popen([QUERYPROF, "attach", "--live", "-o", os.path.join(self.folder, "attached.trace"), str(program.pid)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        self.addCleanup(self.end, recording)
        for line in recording.stderr:
            if "attached to process" in line:
                recording.send_signal(signal.SIGINT)
            if "the page stays until Ctrl-C" in line:
                break
        else:
            self.fail("it does not say that the page stays")
        with self.assertRaises(subprocess.TimeoutExpired):
            recording.wait(0.3)
        recording.send_signal(signal.SIGINT)
        self.assertEqual(recording.wait(SECONDS), 0)

    def test_killed(self):
        recording, found = self.begin("record", "--live", "-o", "two.trace")
        self.assertEqual(self.ask(found)[0], 200)
        recording.kill()
        self.await_none(found)


if __name__ == "__main__":
    main()
