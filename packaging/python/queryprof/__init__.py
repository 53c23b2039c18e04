# SPDX-License-Identifier: Apache-2.0
"""Where the time of SQLite queries goes: a sampling profiler inside the process.

    import queryprof, sqlite3

    connection = sqlite3.connect("app.db")
    queryprof.load(connection, query_profiler_cpu_time_period_ns=1000000)
    with queryprof.labels(connection, route="users"):
        connection.execute("SELECT ...")
    connection.execute("SELECT query, count(*) FROM trace_log GROUP BY query")

From outside: `queryprof record -- python3 app.py`.
"""
import contextlib
import ctypes
import json
import os

__version__ = "VERSION"
__all__ = ["command", "library", "load", "set", "labels", "trace", "span", "limits", "LimitExceeded"]

_HERE = os.path.dirname(os.path.abspath(__file__))

#: The path of the command.
command = os.path.join(_HERE, "bin", "queryprof")

#: The path of the SQLite extension and C library.
library = os.path.join(_HERE, "lib", "libqueryprof.so")


def load(connection, **settings):
    """Loads the extension into an sqlite3.Connection, changes settings, and returns the connection. sqlite3's error names
    the setting, its value and what is allowed. Raises RuntimeError if this Python cannot load extensions."""
    if not hasattr(connection, "enable_load_extension"):
        raise RuntimeError("this Python's sqlite3 was built without extensions: use `queryprof record -- python3 ...`")
    connection.enable_load_extension(True)
    try:
        connection.load_extension(library)
    finally:
        connection.enable_load_extension(False)
    set(connection, **settings)
    return connection


def set(connection, **settings):
    """Changes settings of a connection that has the extension. docs/sql-reference.md lists their names."""
    for name, value in settings.items():
        # Not a PRAGMA, because SQLite ignores unknown ones.
        connection.execute("SELECT set_setting(?, ?)", (name, value)).fetchall()


@contextlib.contextmanager
def labels(connection, **pairs):
    """Adds labels to the connection's queries inside the block. A value is a str or an int."""
    before = connection.execute("PRAGMA query_profiler_labels").fetchone()[0]
    _set_labels(connection, json.dumps({**json.loads(before or "{}"), **pairs}))
    try:
        yield
    finally:
        _set_labels(connection, before or "{}")


def _set_labels(connection, text):
    connection.execute("PRAGMA query_profiler_labels = '%s'" % text.replace("'", "''")).fetchall()


class _Site(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("file", ctypes.c_char_p), ("function", ctypes.c_char_p), ("line", ctypes.c_uint),
                ("id", ctypes.c_uint)]


class _Span(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64)]


_sites = {}  # by name: the library keeps their addresses
_functions = None


def _library():
    global _functions
    if _functions is None:
        loaded = ctypes.CDLL(library)
        loaded.qp_trace_begin.argtypes = [ctypes.c_char_p]
        loaded.qp_span_begin.argtypes = [ctypes.POINTER(_Site)]
        loaded.qp_span_begin.restype = _Span
        loaded.qp_span_end.argtypes = [_Span]
        loaded.qp_trace_end.restype = loaded.qp_span_end.restype = None
        _functions = loaded
    return _functions


@contextlib.contextmanager
def trace(name, traceparent=None):
    """Traces this thread's work in the block. The outermost span has this name; see span_log in docs/sql-reference.md.
    `traceparent` is the request's W3C header. Records nothing if the extension is not loaded."""
    functions = _library()
    began = functions.qp_trace_begin(traceparent.encode() if traceparent else None) == 0
    try:
        with span(name):
            yield
    finally:
        if began:
            functions.qp_trace_end()


@contextlib.contextmanager
def span(name):
    """A span of a trace: this thread's work in the block."""
    functions = _library()
    site = _sites.get(name)
    if site is None:
        site = _sites.setdefault(name, _Site(name.encode(), b"", b"", 0, 0))
    begun = functions.qp_span_begin(ctypes.byref(site))
    try:
        yield
    finally:
        functions.qp_span_end(begun)


def __getattr__(name):
    """limits and LimitExceeded are in checks.py, which few programs need."""
    if name in ("limits", "LimitExceeded"):
        from . import checks
        return getattr(checks, name)
    raise AttributeError("module queryprof has no attribute %s" % name)
