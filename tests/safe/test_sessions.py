# SPDX-License-Identifier: Apache-2.0
"""A session sees all queries of the process, or only its own if the host program decides so. SQL cannot change that."""

from library import *

SCRIPT = """
import ctypes, threading
library = ctypes.CDLL(LIBRARY + ".so")
admin = connect()
assert library.qp_set(None, b"show_queries_of_other_sessions", b"0") == 0
one, two = connect(), connect()
BURN = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {}) SELECT '{}', {} FROM c"

def burn(db, mark):
    db.execute(BURN.format(999999, mark, "sum(i)")).fetchall()

def texts(db):
    return sorted(mark for mark in ("of one", "of two", "of admin")
                  if value(db, "SELECT count(*) FROM query_log WHERE query LIKE ?", f"%'{mark}'%"))

def traces(db):
    # Not the test's own statements, which have a line where they lost their processor for long.
    return {query for query, in rows(db, "SELECT DISTINCT query_id FROM trace_log JOIN query_log USING (query_id) "
                                         "WHERE query LIKE ?", "%sum(i) FROM c")}

"""


class Sessions(Case):
    def test_logs(self):
        in_new_process(SCRIPT + """
burn(one, "of one")
burn(two, "of two")
burn(admin, "of admin")
assert texts(one) == ["of one"], texts(one)
assert texts(two) == ["of two"], texts(two)
assert texts(admin) == ["of admin", "of one", "of two"], texts(admin)
assert len(traces(one)) == 1 and len(traces(two)) == 1 and not traces(one) & traces(two)
a, b, c = traces(admin), traces(one), traces(two)
assert a >= b | c, (a, b, c, rows(admin, "SELECT type, query_id, session_id, query, query_duration_ms, query_start_time FROM query_log"), rows(admin, "SELECT query_id, count(*), session_id, trace_type FROM trace_log GROUP BY 1, 3, 4"))
# Neither a condition nor another column, nor a sum, finds more.
everything = value(admin, "SELECT count(*) FROM trace_log")
for db in one, two:
    own = value(db, "SELECT count(*) FROM trace_log")
    assert 0 < own < everything
    assert rows(db, "SELECT DISTINCT session_id FROM trace_log UNION SELECT session_id FROM query_log") == \\
           rows(db, "SELECT DISTINCT session_id FROM query_log")
    assert value(db, "SELECT count(*) FROM trace_log WHERE session_id <> (SELECT session_id FROM query_log)") == 0
    for query_id in traces(admin) - traces(db):
        assert value(db, "SELECT count(*) FROM trace_log WHERE query_id = ?", query_id) == 0
        assert value(db, "SELECT count(*) FROM query_log WHERE query_id = ?", query_id) == 0
""")

    def test_an_id_of_ones_own_opens_nothing(self):
        in_new_process(SCRIPT + """
one.execute("PRAGMA query_id = 'same'")
burn(one, "of one")
two.execute("PRAGMA query_id = 'same'")
burn(two, "of two")
assert texts(two) == ["of two"], texts(two)
assert value(two, "SELECT count(*) FROM trace_log") < value(admin, "SELECT count(*) FROM trace_log WHERE query_id = 'same'")
""")

    def test_who_held_a_lock(self):
        """A session sees that its statement waited, and for how long, but not for which statement."""
        in_new_process(SCRIPT + """
import tempfile
with tempfile.TemporaryDirectory() as folder:
    holder, waiter = connect(folder + "/file.db", timeout=0), connect(folder + "/file.db", timeout=0.05)
    holder.execute("BEGIN IMMEDIATE /* of the holder */")
    try:
        waiter.execute("BEGIN IMMEDIATE /* of the waiter */")
        raise AssertionError("not locked")
    except sqlite3.OperationalError:
        pass
    seen = "SELECT query, wait_ns > 40000000, holder_query_id <> '', holder_query FROM lock_waits"
    texts = [f"BEGIN IMMEDIATE /* of the {name} */" for name in ("waiter", "holder")]
    assert rows(admin, seen) == [(texts[0], 1, 1, texts[1])], rows(admin, seen)
    assert rows(waiter, seen) == [(texts[0], 1, 0, "")], rows(waiter, seen)
    assert rows(waiter, "SELECT count(*) FROM lock_waits WHERE holder_query LIKE '%holder%'") == [(0,)]
    for condition in ("= ''", "< 'A'", "< 'Z'"):
        for column in ("holder_query", "holder_query_id"):
            assert rows(waiter, f"SELECT count(*) FROM lock_waits WHERE {column} {condition}") == [(1,)], (column, condition)
    assert rows(holder, seen) == rows(one, seen) == [], (rows(holder, seen), rows(one, seen))
    holder.close()
    waiter.close()
""")

    def test_what_runs_now(self):
        in_new_process(SCRIPT + """
def work(name):
    db = connect()
    db.set_progress_handler(stop.is_set, 1000)
    db.create_function("ready", 0, ready.set)
    try:
        db.execute(f"SELECT ready(), '{name}', count(*) FROM (WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT i FROM c) WHERE ready() IS NULL").fetchall()
    except sqlite3.OperationalError:
        pass

stop, ready = threading.Event(), threading.Event()
thread = threading.Thread(target=work, args=("elsewhere",))
thread.start()
ready.wait()
try:
    cursor = one.execute(BURN.format(9, "of one", "i"))
    cursor.fetchone()
    for db, seen in (one, ["of one"]), (two, []), (admin, ["elsewhere", "of one"]):
        found = [query for query, in rows(db, "SELECT query FROM system.processes")]
        assert [mark for mark in ("elsewhere", "of one") if any(mark in query for query in found)] == seen, found
        threads = [thread for thread, in rows(db, "SELECT thread_id FROM system.stack_trace")]
        assert threading.get_native_id() in threads
        assert (thread.native_id in threads) == (db is admin), threads
finally:
    stop.set()
    thread.join()
""")

    def test_sql_cannot_change_it(self):
        in_new_process(SCRIPT + """
for db, other in (one, 1), (admin, 0):
    for way in ("PRAGMA show_queries_of_other_sessions = {}", "SELECT set_setting('show_queries_of_other_sessions', {})",
                "PRAGMA system.show_queries_of_other_sessions = DEFAULT",
                "UPDATE system.settings SET value = {} WHERE name = 'show_queries_of_other_sessions'"):
        try:
            db.execute(way.format(other)).fetchall()
            raise AssertionError(way)
        except sqlite3.Error as error:
            assert "only the host program can change it" in str(error), error
assert value(one, "SELECT get_setting('show_queries_of_other_sessions')") == 0
assert value(admin, "PRAGMA show_queries_of_other_sessions") == 1
""")

    def test_from_the_environment(self):
        in_new_process("""
assert value(connect(), "SELECT get_setting('show_queries_of_other_sessions')") == 0
""", QUERYPROF_SHOW_QUERIES_OF_OTHER_SESSIONS="0")


if __name__ == "__main__":
    unittest.main()
