#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The SQL functions at their limits. tests/symbol tests their results for real addresses.

usage: test_functions.py LIBRARY
"""

import json
import platform
import unittest

from library import Case, connect, in_new_process, rows, value


def address_of_code():
    """The address of a function that libsqlite3 exports, in this process."""
    import ctypes
    import sqlite3  # has loaded the library

    library = ctypes.CDLL("libsqlite3.so.0")
    return ctypes.cast(library.sqlite3_libversion, ctypes.c_void_p).value


# An SQL function whose code is generated at run time. It counts down for some 100 ms and returns NULL. It uses the C
# interface only, like a host with a compiler.
GENERATED = """
import ctypes, mmap, os

code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("b900002010" "ffc9" "75fc" "c3"))  # mov ecx; 1: dec ecx; jnz 1b; ret
start = ctypes.addressof(ctypes.c_char.from_buffer(code))
path = f"/tmp/perf-{os.getpid()}.map"
with open(path, "w") as file:
    file.write(f"{start:x} {10:x} Script:spin\\n")
sqlite = ctypes.CDLL("libsqlite3.so.0")
db, error = ctypes.c_void_p(), ctypes.c_char_p()
assert sqlite.sqlite3_open(b":memory:", ctypes.byref(db)) == 0
sqlite.sqlite3_enable_load_extension(db, 1)
assert sqlite.sqlite3_load_extension(db, LIBRARY.encode(), None, ctypes.byref(error)) == 0, error.value
assert sqlite.sqlite3_create_function(db, b"spin", 0, 1, None, ctypes.c_void_p(start), None, None) == 0
rows = []
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_void_p)
def take(_, count, values, names):
    rows.append(values[0])
    return 0
def run(sql):
    assert sqlite.sqlite3_exec(db, sql.encode(), take, None, ctypes.byref(error)) == 0, error.value
run("PRAGMA query_profiler_cpu_time_period_ns = 4000000")
run("SELECT spin() FROM json_each('[1, 2, 3, 4]')")
rows.clear()
run("SELECT symbols->>0 AS name FROM trace_log GROUP BY name ORDER BY sum(weight) DESC LIMIT 1")
os.unlink(path)
print(rows[0].decode() if rows and rows[0] else rows)
"""


class Functions(Case):
    def setUp(self):
        super().setUp()
        self.db = connect()

    def sql(self, expression, *values):
        return value(self.db, f"SELECT {expression}", *values)

    def test_real_address(self):
        address = address_of_code()
        self.assertEqual(self.sql("addressToSymbol(?)", address), "sqlite3_libversion")
        self.assertEqual(self.sql("addressToSymbol(?)", str(address)), "sqlite3_libversion")
        self.assertEqual(self.sql("addressToSymbol(?)", hex(address)), "sqlite3_libversion")
        self.assertEqual(self.sql("demangle(addressToSymbol(json_array(?)->>0))", address), "sqlite3_libversion")
        self.assertIn("libsqlite3", self.sql("addressToLine(?)", address))
        self.assertIn("libsqlite3", self.sql("addressToLineWithInlines(?) ->> 0", address))
        self.assertRegex(self.sql("buildId(?)", address), "^[0-9a-f]{16,}$")
        self.assertEqual(self.sql("traceToText(json_array(?, ?))", address, address),
                         "sqlite3_libversion\nsqlite3_libversion")
        self.assertEqual(self.sql("traceToText(json_array(?, ?), ' < ')", address, address),
                         "sqlite3_libversion < sqlite3_libversion")

    def test_nowhere(self):
        for address in (0, 1, -1, 2**63 - 1):
            self.assertIsNone(self.sql("addressToSymbol(?)", address), address)
            for function in ("addressToLine", "addressToLineWithInlines", "buildId"):
                self.assertIsNone(self.sql(f"{function}(?)", address), (function, address))
        self.assertTrue(self.sql("traceToText('[1]')").startswith("0x"))
        self.assertEqual(self.sql("traceToText('[]')"), "")

    @unittest.skipUnless(platform.machine() == "x86_64", "its code is x86-64's")
    def test_generated_code(self):
        """Runs code outside of any module in a query, with a name in perf's map."""
        done = in_new_process(GENERATED)
        self.assertEqual(done, "Script:spin", done)

    def test_flame_graph(self):
        address = address_of_code()
        name = "sqlite3_libversion"

        def graph(traces, *weight):
            return value(self.db, "SELECT flameGraph(%s) FROM json_each(?)" %
                         ("value->>0, value->>1" if weight else "value"), json.dumps(traces))

        def trace(*addresses):
            return json.dumps(addresses)

        self.assertEqual(graph([trace(address), trace(1, address), trace(address)]),
                         f"{name} 2\n{name};0x1 1")
        weighted = [[trace(address), 5], [trace(address + 1), 7], [trace(1, address), 2**62],
                    [trace(1, address), 2**62], [trace(1, address), 2**62], [trace(2, address), 2.5],
                    [None, 3], [trace(address), None], ["[]", 4], [trace(address), "11"]]
        self.assertEqual(graph(weighted, True), "(no stack) 4\n"
                         f"{name} 23\n{name};0x1 9223372036854775807\n{name};0x2 2")
        self.assertIsNone(graph([]))
        self.assertIsNone(graph([None]))
        # Groups, one after another and at the same time.
        self.assertEqual(rows(self.db, "SELECT key % 2, flameGraph(value, key) FROM json_each(?) GROUP BY 1",
                              json.dumps([trace(1)] * 4)), [(0, "0x1 2"), (1, "0x1 4")])

    def test_null(self):
        for call in ("addressToSymbol(NULL)", "addressToLine(NULL)", "addressToLineWithInlines(NULL)",
                     "buildId(NULL)", "demangle(NULL)", "traceToText(NULL)",
                     "traceToText(NULL, ',')", "traceToText('[1]', NULL)"):
            self.assertIsNone(self.sql(call), call)

    def test_refused(self):
        for call, sentence in {
            "addressToSymbol('abc')": "addressToSymbol: 'abc' is not an address; expected an integer",
            "addressToSymbol('')": "addressToSymbol: '' is not an address",
            "addressToSymbol(1.5)": "addressToSymbol: '1.5' is not an address",
            "traceToText('[1]', printf('%1001c', 'x'))": "traceToText: the separator has 1001 bytes; at most 1000",
            "addressToLine(x'00')": "addressToLine: a blob; expected a text",
            "flameGraph('[1,')": "flameGraph: '[1,' is not a trace; expected a JSON array of integers",
            "flameGraph('[1]', 'much')": "flameGraph: 'much' is not a weight; expected a number",
            "flameGraph('[1]', x'00')": "flameGraph: a blob",
            "flameGraph(x'00')": "flameGraph: a blob; expected a text",
            "traceToText('')": "traceToText: '' is not a trace; expected a JSON array of integers",
            "traceToText(1)": "traceToText: '1' is not a trace",
            "traceToText('[1,')": "traceToText: '[1,' is not a trace",
            "traceToText('[\"1\"]')": "is not a trace",
            "traceToText(x'5b5d')": "traceToText: a blob",
            "traceToText('[1]', x'00')": "traceToText: a blob",
            "demangle(x'00')": "demangle: a blob",
            "addressToSymbol()": "wrong number of arguments",
            "traceToText('[]', '', '')": "wrong number of arguments",
        }.items():
            self.assertRefused(sentence, self.db, f"SELECT {call}")
        # The message is valid text, because Python refuses one that ends within a character.
        for statement in ("SELECT addressToSymbol(?)", "SELECT traceToText(?)", "SELECT flameGraph(?)", "SELECT flameGraph('[1]', ?)",
                          "SELECT demangle('_Z1fv', ?)", "SELECT get_setting(?)", "SELECT set_setting(?, 1)",
                          "UPDATE system.settings SET value = 1 WHERE name = ?"):
            for before in "", "x":
                self.assertRefused(before + "ä" * 29, self.db, statement, before + "ä" * 60)

    def test_demangle(self):
        for name, shown in {"_ZN3foo3barEi": "foo::bar(int)", "main": "main", "": "", "_Z": "_Z", "5": "5"}.items():
            self.assertEqual(self.sql("demangle(?)", name), shown)
        self.assertEqual(self.sql("demangle(5)"), 5)

    def test_a_trace_of_any_length(self):
        self.assertEqual(self.sql("length(traceToText('[' || substr(replace(hex(zeroblob(5000)), '00', ',1'), 2) "
                                  "|| ']', '')) / length(traceToText('[1]'))"), 5000)

    def test_not_allowed(self):
        self.db.execute("PRAGMA allow_introspection_functions = 0")
        for call in ("addressToSymbol(1)", "addressToLine(1)", "traceToText('[1]')", "addressToSymbol(NULL)",
                     "addressToLineWithInlines(1)", "buildId(1)", "flameGraph('[1]')", "flameGraph('[1]', 2)"):
            self.assertRefused(f"{call.split('(')[0]}: not allowed while allow_introspection_functions is 0",
                               self.db, f"SELECT {call}")
        self.assertEqual(self.sql("demangle('_Z1fv')"), "f()")
        self.db.execute("PRAGMA allow_introspection_functions = 1")
        self.assertIsNone(self.sql("addressToSymbol(1)"))


if __name__ == "__main__":
    unittest.main()
