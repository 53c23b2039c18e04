#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Modules that export the SQLite inside them. However they call it and are loaded, every statement is seen exactly once under
`queryprof record`.

usage: test_exported.py QUERYPROF LOADS EXPORTING CLIENT PLUGIN ALONE MODULE...: a program that loads modules, and a program
that exports its own SQLite; a module that uses the shared SQLite, and a module without any; a shared SQLite bound by
-Bsymbolic-functions; modules that export a SQLite: called by their import table, by -Bsymbolic, by -Bsymbolic-functions, by
protected visibility, and bound by the compiler only"""

import sys

import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

LOADS, EXPORTING, CLIENT, PLUGIN, ALONE = (os.path.abspath(sys.argv.pop(1)) for _ in range(5))
MODULES = [os.path.abspath(sys.argv.pop(1)) for _ in range(len(sys.argv) - 1)]
EVERY = ("--setting", "log_queries_min_query_duration_ns=0")
COUNT = 40


class Exported(Recording):
    def run_modules(self, program, how, *modules, names, **named):
        """Each of the names runs COUNT + 2 statements, or a multiple if it occurs several times."""
        with self.subTest(how=how, modules=[os.path.basename(module) for module in modules]):
            plain = subprocess.run([program, how, str(COUNT), *modules], capture_output=True, text=True, timeout=300,
                                   check=True, **named)
            self.assertNotIn("-1", plain.stdout)
            self.trace = os.path.join(self.folder, "%d.trace" % len(os.listdir(self.folder)))
            done = self.record(program, how, str(COUNT), *modules, options=EVERY, **named)
            self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), self.seen)
            expected = {}
            for name in names:
                for text, count in (("CREATE TABLE %s(a)", 1), ("SELECT count(*) FROM %s", 1), ("INSERT INTO %s VALUES (?)", COUNT)):
                    expected[text % name] = expected.get(text % name, 0) + count
            for sums in "count(*) FROM query_log", "sum(calls) FROM statement_stats":
                found = self.rows("SELECT rtrim(query, ';'), %s WHERE query <> 'sqlite3_close()' GROUP BY 1" % sums)
                self.assertEqual(dict(found), expected, sums + self.seen)
            return done

    def test_one(self):
        for module in MODULES:
            for how in "local", "global", "deep":
                self.run_modules(LOADS, how, module, names=["module"])

    def test_beside_the_shared_one(self):
        for module in MODULES:
            for modules in (CLIENT, module), (module, CLIENT):
                for how in "local", "deep":
                    self.run_modules(LOADS, how, *modules, names=["module", "client"])

    def test_global_before_the_shared_one(self):
        """The other module then uses this module's SQLite."""
        for module in MODULES:
            self.run_modules(LOADS, "global", module, CLIENT, PLUGIN, names=["module", "client", "plugin"])

    def test_namespace(self):
        """A module loaded by dlmopen() runs as it does alone. The command names it as not followed."""
        for module in CLIENT, *MODULES:
            for how in "new", "found":
                with self.subTest(how=how, module=os.path.basename(module)):
                    env = {**os.environ, "LD_LIBRARY_PATH": os.path.dirname(module)}
                    plain = subprocess.run([LOADS, how, str(COUNT), module], capture_output=True, text=True, check=True, env=env)
                    done = self.record(LOADS, how, str(COUNT), module, options=EVERY, env=env)
                    self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), self.seen)
                    self.assertRegex(done.stderr, "nothing was recorded: .*/%s: it was loaded into a separate namespace" % (
                        "libsqlite3.so.0" if module == CLIENT else os.path.basename(module)))

    def test_beside_a_recorded_one(self):
        """The command names the module that is not followed, even if another one was recorded."""
        script = ("import ctypes, sqlite3, sys\n"
                  "sqlite3.connect(':memory:').execute('SELECT 1').fetchall()\n"
                  "load = ctypes.CDLL(None).dlmopen\n"
                  "load.argtypes = ctypes.c_long, ctypes.c_char_p, ctypes.c_int\n"
                  "for i in range(3): assert load(-1, sys.argv[1].encode(), 2)\n")
        done = self.record(PYTHON, "-c", script, MODULES[0], options=EVERY)
        self.assertEqual(self.rows("SELECT query, count(*) FROM query_log WHERE query <> 'sqlite3_close()' GROUP BY 1"),
                         [("SELECT 1", 1)], self.seen)
        self.assertEqual(done.stderr.count("not recorded: %s: it was loaded into a separate namespace" % MODULES[0]), 1, self.seen)

    def test_refused(self):
        """A module that cannot be patched runs as it does alone, and is named. The command does not claim that there
        was no query."""
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
            self.skipTest("no mount namespaces here")
        done = self.record("unshare", "-m", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh", LOADS, "local", "7",
                           MODULES[1], options=EVERY)
        self.assertEqual((done.returncode, done.stdout), (0, "\n7\n"), self.seen)
        self.assertIn("nothing was recorded: %s: /proc/self/mem cannot be opened" % MODULES[1], done.stderr)
        self.assertNotIn("reported no query", done.stderr)

    def test_bound_library(self):
        """A library that contains only SQLite keeps its code, because its callers' import tables lead to queryprof."""
        folder = os.path.join(self.folder, "lib")
        os.mkdir(folder)
        os.symlink(ALONE, os.path.join(folder, "libsqlite3.so.0"))
        done = self.record(LOADS, "local", str(COUNT), CLIENT, options=EVERY, env={
            **os.environ, "LD_LIBRARY_PATH": folder, "QUERYPROF_DEBUG": "hooks", "QUERYPROF_DEBUG_FILE": self.file("log", "")})
        self.assertEqual(done.returncode, 0, self.seen)
        # The whole script of sqlite3_exec() is one run.
        self.assertEqual(dict(self.rows("SELECT query, count(*) FROM query_log WHERE query <> 'sqlite3_close()' GROUP BY 1")), {
            "CREATE TABLE client(a); SELECT count(*) FROM client": 1, "INSERT INTO client VALUES (?)": COUNT}, self.seen)
        with open(os.path.join(self.folder, "log"), encoding="utf-8") as log:
            self.assertNotIn(": sqlite3_step: patched", log.read())

    def test_bound_behind_the_shared_one(self):
        """The module calls its own functions, but uses the version text of the other one."""
        for module in MODULES:
            if os.path.basename(module) in ("libstatic_exported_text.so", "libstatic_symbolic.so"):
                self.run_modules(LOADS, "global", CLIENT, module, names=["client", "module"])

    def test_table_that_leads_elsewhere(self):
        """The loader binds a module's table of functions to the library that was loaded first. The reason names
        that."""
        done = self.run_modules(LOADS, "global", CLIENT, MODULES[-1], names=["client", "module"])
        self.assertIn("not recorded: %s: the SQLite inside it has an unknown table of functions, or"
                      " one that leads to another library with the same names" % MODULES[-1], done.stderr)
        self.assertNotIn("SQLITE_OMIT_LOAD_EXTENSION", done.stderr)

    def test_program_that_exports(self):
        self.run_modules(EXPORTING, "local", PLUGIN, CLIENT, names=["program", "plugin", "client"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
