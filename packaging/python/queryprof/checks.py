# SPDX-License-Identifier: Apache-2.0
"""Limits for statements in tests: see limits()."""
import contextlib
import uuid

from . import labels, load

__all__ = ["limits", "LimitExceeded"]

_WHILE = {"log_queries": "1", "log_queries_min_query_duration_ns": "0"}


class LimitExceeded(AssertionError):
    """A statement exceeded a limit. `violations`: pairs of the limit's name and a sentence."""
    def __init__(self, violations):
        super().__init__("\n".join("%s: %s" % violation for violation in violations))
        self.violations = violations


@contextlib.contextmanager
def limits(connection, max_scan=None, no_sort=False, no_auto_index=False, max_time=None, max_runs=None):
    """Raises LimitExceeded at the end of the block if a statement that the connection ran in it exceeded a limit:

        with queryprof.limits(connection, max_scan=1000, no_sort=True, max_runs=20):
            orders_of(connection, customer)

    max_scan: the most rows that one run may visit in scans of whole tables. max_time: the longest time of one run inside
    SQLite, in seconds. max_runs: the most runs of one statement in the block, for example of one that runs for each row
    of another statement. Loads the extension if the connection does not have it. In the block, statements have the label
    queryprof_limits. Afterwards the settings are restored."""
    try:
        before = _get(connection)
    except connection.OperationalError:
        load(connection)
        before = _get(connection)
    _set(connection, _WHILE)
    mark = str(uuid.uuid4())
    try:
        with labels(connection, queryprof_limits=mark):
            yield
        found = connection.execute(
            "SELECT query, max(fullscan_steps), sum(sorts), sum(autoindexes), max(execution_time_ns), count(*) FROM system.query_log"
            " WHERE labels ->> 'queryprof_limits' = ? AND type <> 'QueryStart' GROUP BY normalized_query_hash", (mark,)).fetchall()
    finally:
        _set(connection, before)
    violations = []
    for query, scanned, sorts, indexed, ns, runs in found:
        for name, is_exceeded, message in (
                ("max_scan", max_scan is not None and scanned > max_scan, "a run visited %d rows of whole tables" % scanned),
                ("no_sort", no_sort and sorts, "%d sorts in %d runs" % (sorts, runs)),
                ("no_auto_index", no_auto_index and indexed, "%d rows put into automatic indexes" % indexed),
                ("max_time", max_time is not None and ns > max_time * 1e9, "the longest run took %.3f ms" % (ns / 1e6)),
                ("max_runs", max_runs is not None and runs > max_runs, "%d runs" % runs)):
            if is_exceeded:
                violations.append((name, "%s: %s" % (message, " ".join(query.split()))))
    if violations:
        raise LimitExceeded(violations)


def _get(connection):
    return {name: str(connection.execute("SELECT get_setting(?)", (name,)).fetchone()[0]) for name in _WHILE}


def _set(connection, settings):
    for name, value in settings.items():
        connection.execute("SELECT set_setting(?, ?)", (name, value)).fetchall()
