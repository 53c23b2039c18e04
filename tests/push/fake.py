# SPDX-License-Identifier: Apache-2.0
"""A server that accepts what push sends, like ClickHouse with the tables of sql/clickhouse/tables.sql. It can drop, delay,
truncate and repeat requests."""
import http.server
import os
import random
import re
import socket
import ssl
import struct
import threading
import time
import urllib.parse

import row_binary

# For each fault: how often the request is stored, and what happens to the response.
FAULTS = {
    "fine": (1, "whole"),
    "dropped": (0, "none"),
    "refused": (0, "503"),
    "answer lost": (1, "none"),
    "answer cut": (1, "cut"),
    "stored, then an error": (1, "500"),
    "repeated": (2, "whole"),
    "repeated, answer lost": (2, "none"),
    "late": (1, "late"),
}


def read_tables(root):
    with open(os.path.join(root, "sql", "clickhouse", "tables.sql")) as file:
        text = re.sub(r"--.*", "", file.read())
    tables = {}
    for name, body in re.findall(r"CREATE TABLE IF NOT EXISTS (\w+) \((.*?)\n\) ENGINE", text, re.S):
        lines = [re.sub(r" CODEC\(.*\)$", "", line.strip().rstrip(",")) for line in body.strip().splitlines()]
        tables[name] = dict(line.split(" ", 1) for line in lines)
    return tables


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, code, text, declared=None):
        self.send_response(code)
        self.send_header("Content-Length", str(len(text) if declared is None else declared))
        self.end_headers()
        self.wfile.write(text.encode())
        self.wfile.flush()

    def cut(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def do_POST(self):
        fake = self.server.fake
        body = self.rfile.read(int(self.headers["Content-Length"]))
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        fake.seen.append((url.path, query, dict(self.headers), body))
        fake.inserts += "query" in query
        if "query" in query and fake.inserts >= fake.hold_at and not fake.go.is_set():
            fake.held.set()
            fake.go.wait()
            if fake.is_held_dropped:
                self.cut()
                return
        fault = fake.choose()
        times, reply = FAULTS[fault]
        text, code = "", 200
        with fake.lock:
            for _ in range(times):
                text, code = fake.take(url.path, query, body, self.headers)
        if reply == "late":
            time.sleep(0.05)
        if reply in ("whole", "late"):
            self.answer(code, text)
        elif reply in ("500", "503"):
            self.answer(int(reply), "Code: 210, e.displayText() = DB::NetException: a fault of the test's")
        elif reply == "cut":
            self.answer(200, text[:1], declared=len(text) + 10)
            self.cut()
        else:
            self.cut()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a killed process does not read its response


class Fake:
    """rows: the stored rows, by table and key. received: how many rows arrived, with repetitions."""

    KEYS = {
        "trace_log_rows": ("file", "timestamp_ns"),
        "query_log_rows": ("file", "run"),
        "statement_stats_rows": ("file", "normalized_query_hash", "database", "program", "hour_ns"),
        "span_log_rows": ("file", "trace_id", "span_id"),
        "lock_waits_rows": ("file", "wait"),
        "checkpoints_rows": ("file", "checkpoint"),
        "wal_log_rows": ("file", "change"),
        "modules_rows": ("file", "module"),
        "losses_rows": ("file", "process", "reason", "first_ns", "position"),
    }

    def __init__(self, root, seed=None, share=0.3, certificate=None):
        self.tables = read_tables(root)
        self.rows = {name: {} for name in self.tables}
        self.received = 0
        self.random = random.Random(seed) if seed is not None else None
        self.share = share
        self.lock = threading.Lock()
        self.seen, self.faults = [], []
        self.reply = None  # (text, code) for every request
        self.inserts = self.hold_at = 0
        self.held, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.fake = self
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.server.server_address[1]}/"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def hold(self, inserts, is_dropped):
        """The insert with this number from now on waits until the test sets `go`, and so do later ones. Then they are dropped
        or stored."""
        self.held, self.go = threading.Event(), threading.Event()
        self.is_held_dropped = is_dropped
        self.hold_at = self.inserts + inserts

    def choose(self):
        with self.lock:
            fault = "fine"
            if self.random and self.random.random() < self.share:
                fault = self.random.choice(list(FAULTS))
            self.faults.append(fault)
            return fault

    def take(self, path, query, body, headers):
        if self.reply:
            return self.reply
        if path != "/":
            return "", 200
        sql = query.get("query") or body.decode()
        if sql == "SELECT version()":
            return "23.8.1.1\n", 200
        if sql.startswith("DESCRIBE TABLE"):
            name = sql.split()[2]
            if name not in self.tables:
                return f"Code: 60. DB::Exception: Table default.{name} does not exist. (UNKNOWN_TABLE)", 404
            return "".join(f"{column}\t{kind}\t\t\t\t\t\n" for column, kind in self.tables[name].items()), 200
        name, columns = re.fullmatch(r"INSERT INTO (\w+) \((.*)\) FORMAT RowBinary", sql).groups()
        columns = columns.split(", ")
        assert query["decompress"] == "1" and query["insert_deduplication_token"].startswith(name)
        assert set(columns) == set(self.tables[name]), "a column of the table is left empty"
        rows = row_binary.read_rows(row_binary.unpack(body), columns, self.tables[name])
        self.received += len(rows)
        for row in rows:
            key = tuple(row[part] for part in self.KEYS[name])
            before = self.rows[name].get(key)
            if before is None or row.get("version", 0) >= before.get("version", 0):
                if before is not None and "version" not in row and name != "span_log_rows":
                    assert row == before, (row, before)
                self.rows[name][key] = row
        return "", 200
