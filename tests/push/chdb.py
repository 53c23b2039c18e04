# SPDX-License-Identifier: Apache-2.0
"""ClickHouse's engine in this process: libchdb.so of npm's @chdb/lib-linux-x64-gnu."""
import ctypes


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

    def ask(self, sql):
        text = sql.encode()
        result = self.lib.chdb_query_n(self.connection[0], text, len(text), b"TabSeparated", 12)
        try:
            error = self.lib.chdb_result_error(result)
            if error:
                raise RuntimeError(f"{sql[:200]}: {error.decode()}")
            size = self.lib.chdb_result_length(result)
            data = ctypes.string_at(self.lib.chdb_result_buffer(result), size) if size else b""
        finally:
            self.lib.chdb_destroy_query_result(result)
        return [line.split("\t") for line in data.decode().splitlines()]

    def run(self, script):
        lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
        for statement in "\n".join(lines).split(";"):
            if statement.strip():
                self.ask(statement)
