# SPDX-License-Identifier: Apache-2.0
"""If the host program has locked the settings, SQL can read them but cannot change them, on any connection and in any
way."""

from library import *

LOCK = """
import ctypes
library = ctypes.CDLL(LIBRARY + ".so")
before = connect()
library.qp_lock_settings()
after = connect()
refused = "settings are locked by the host program"
"""


class Locked(Case):
    def test_every_way_is_refused(self):
        in_new_process(LOCK + """
ways = ["PRAGMA {} = {}", "PRAGMA system.{} = {}", "PRAGMA {}({})", "SELECT set_setting('{}', {})",
        "UPDATE system.settings SET value = {1} WHERE name = '{0}'"]
for db in before, after:
    for name, old in rows(db, "SELECT name, value FROM system.settings"):
        for way in ways:
            try:
                db.execute(way.format(name, 1)).fetchall()
                raise AssertionError(way + name)
            except sqlite3.Error as error:
                assert refused in str(error) or "host program" in str(error), error
            assert value(db, "SELECT get_setting(?)", name) == old, name
""")

    def test_the_environment_is_not_read_again(self):
        in_new_process(LOCK + """
os.environ["QUERYPROF_LOG_QUERIES"] = "0"
assert value(connect(), "SELECT get_setting('log_queries')") == 1
""")

    def test_the_host_still_changes_them(self):
        in_new_process(LOCK + """
assert library.qp_set(None, b"log_queries", b"0") == 0
assert value(before, "SELECT get_setting('log_queries')") == 1
assert value(connect(), "SELECT get_setting('log_queries')") == 0
""")

    def test_queries_are_sampled_as_before(self):
        in_new_process(LOCK + """
after.execute("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 999999) SELECT sum(i) FROM c").fetchall()
# On a loaded machine others last for 10 ms, too.
assert value(after, "SELECT count(*) FROM query_log WHERE query LIKE 'WITH RECURSIVE%'") == 1
""")


if __name__ == "__main__":
    unittest.main()
