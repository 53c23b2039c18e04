# SPDX-License-Identifier: Apache-2.0
"""system.symbols lists the functions of mapped modules at the addresses that stacks contain."""

from library import *

SLOW = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 999999) SELECT sum(i) FROM c"


class Symbols(Case):
    def test_columns(self):
        cursor = connect().execute("SELECT * FROM system.symbols LIMIT 1")
        self.assertEqual([column[0] for column in cursor.description],
                         ["symbol", "address_begin", "address_end", "module"])

    def test_ranges(self):
        found = rows(connect(), "SELECT symbol, address_begin, address_end, module FROM system.symbols")
        self.assertGreater(len(found), 5000)
        for symbol, begin, end, module in found:
            self.assertLess(begin, end, symbol)
        by_name = {symbol: module for symbol, _, _, module in found}
        for symbol, library in ("sqlite3_step", "libsqlite3"), ("malloc", "libc.so"), ("sqlite3_queryprof_init", "libqueryprof"):
            self.assertIn(library, by_name[symbol])

    def test_agrees_with_the_functions(self):
        db = connect()
        found = rows(db, "SELECT symbol, address_begin, address_end FROM system.symbols WHERE module LIKE '%libsqlite3%'")
        self.assertGreater(len(found), 500)
        for symbol, begin, end in found[::50]:
            for address in begin, end - 1:
                self.assertEqual(value(db, "SELECT addressToSymbol(?)", address), symbol)

    def test_agrees_with_traces(self):
        """In the process that made the file, and in a process whose modules have other addresses."""
        script = f"""
import time
db = connect()
db.execute("PRAGMA query_profiler_max_overhead_percent = 0")
db.execute("PRAGMA query_profiler_cpu_time_period_ns = '1ms'")
end, found = time.monotonic() + 200, 0
while not found and time.monotonic() < end:
    db.execute("{SLOW}").fetchall()
    found = value(db, "SELECT count(*) FROM trace_log WHERE addressToSymbol(trace->>0) = 'sqlite3VdbeExec'")
db.execute("CREATE TEMP TABLE leaves AS SELECT DISTINCT trace->>0 AS address FROM trace_log")
db.execute("CREATE TEMP TABLE found AS SELECT symbol, address FROM leaves JOIN system.symbols"
           " ON address >= address_begin AND address < address_end")
print(value(db, "SELECT count(*) FROM found WHERE symbol <> addressToSymbol(address)"),
      value(db, "SELECT count(*) > 0 FROM found WHERE symbol = 'sqlite3VdbeExec'"))"""
        for _ in range(2):
            self.assertEqual(in_new_process(script, QUERYPROF_TRACE_LOG_PATH=self.path("two.trace")), "0 1")

    def test_is_introspection(self):
        db = connect()
        db.execute("PRAGMA allow_introspection_functions = 0")
        self.assertRefused("symbols: not allowed while allow_introspection_functions is 0", db,
                           "SELECT count(*) FROM system.symbols")


if __name__ == "__main__":
    unittest.main()
