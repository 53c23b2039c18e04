# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that runs ClickHouse's engine in this process: libchdb.so of the npm package @chdb/lib-linux-x64-gnu."""
import ctypes
import http.server
import threading
import urllib.parse

import row_binary


class Engine:
    def __init__(self, library, folder):
        lib = self.lib = ctypes.CDLL(library)
        lib.chdb_connect.restype = ctypes.POINTER(ctypes.c_void_p)
        lib.chdb_connect.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
        lib.chdb_query_n.restype = ctypes.c_void_p
        lib.chdb_query_n.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        for name, kind in (("buffer", ctypes.c_void_p), ("length", ctypes.c_size_t), ("error", ctypes.c_char_p)):
            function = getattr(lib, f"chdb_result_{name}")
            function.restype, function.argtypes = kind, [ctypes.c_void_p]
        lib.chdb_destroy_query_result.argtypes = [ctypes.c_void_p]
        arguments = (ctypes.c_char_p * 2)(b"clickhouse", f"--path={folder}".encode())
        self.connection = lib.chdb_connect(2, arguments)
        if not self.connection:
            raise RuntimeError("chdb_connect")

    def query(self, sql):
        """Returns the result as bytes."""
        result = self.lib.chdb_query_n(self.connection[0], sql, len(sql), b"TabSeparated", 12)
        try:
            error = self.lib.chdb_result_error(result)
            if error:
                raise RuntimeError(error.decode())
            size = self.lib.chdb_result_length(result)
            return ctypes.string_at(self.lib.chdb_result_buffer(result), size) if size else b""
        finally:
            self.lib.chdb_destroy_query_result(result)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        sql, code = body, 200
        if "query" in query:
            sql = query["query"].replace("FORMAT", f"FROM INFILE '{self.server.body}' FORMAT").encode()
        try:
            with self.server.lock:
                if "query" in query:
                    with open(self.server.body, "wb") as file:
                        file.write(row_binary.unpack(body))
                if "database" in query:
                    self.server.engine.query(f"SHOW TABLES FROM {query['database']}".encode())
                answer = self.server.engine.query(sql)
        except RuntimeError as error:
            answer, code = str(error).encode(), 500
        self.send_response(code)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Server:
    """Has the same interface as the class Server of server.py."""

    def __init__(self, library, folder):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.engine, self.server.lock = Engine(library, folder), threading.Lock()
        self.server.body = folder + ".body"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def ask(self, sql):
        with self.server.lock:
            return [line.split("\t") for line in self.server.engine.query(sql.encode()).decode().splitlines()]

    def run(self, script):
        lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
        for statement in "\n".join(lines).split(";"):
            if statement.strip():
                self.ask(statement)
