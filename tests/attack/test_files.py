#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trace files from strangers: queryprof does not open files that they name, does not run their SQL, and does not take long.

usage: test_files.py QUERYPROF SOURCE_DIR FIXTURE"""

import contextlib
import resource
import sqlite3

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tool import *

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS %s FROM n"
COMMANDS = [["queries"], ["queries", "--runs"], ["report"], ["report", "--like", "SELECT"], ["traces"],
            ["export", "--format", "collapsed", "-o", "-"], ["export", "--format", "pprof", "-o", "-"],
            ["export", "--format", "flamegraph", "-o", "-"],
            ["sql", "SELECT * FROM query_log"], ["sql", "SELECT timestamp_ns, symbols, lines FROM trace_log LIMIT 50"],
            ["sql", "SELECT * FROM top_functions"], ["sql", "SELECT * FROM top_stacks"], ["embed"]]
CPU_SECONDS = 20  # usually 0.1; more with sanitizers
RESIDENT_KIB = 512 << 10  # usually 10 MiB
# How much more time and memory a small hostile file may take than the file without the hostile content.
MORE_SECONDS, MORE_KIB = 2, 64 << 10


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


class Files(Tool):
    def setUp(self):
        self.evil = os.path.join(self.folder, "evil.trace")
        shutil.copy(self.trace, self.evil)
        self.addCleanup(os.unlink, self.evil)

    def change(self, *statements):
        db = sqlite3.connect(self.evil, isolation_level=None)
        for statement in statements:
            db.execute(*statement) if isinstance(statement, tuple) else db.execute(statement)
        db.close()

    def run_command(self, *arguments, **variables):
        """Runs a command. The kernel ends it if it takes too much CPU time, and the test fails if it takes too much memory.
        The result has the CPU time in `seconds` and the memory in `kib`."""
        with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
            process = subprocess.Popen([QUERYPROF, arguments[0], self.evil, *arguments[1:]], stdout=out, stderr=err,
                                       stdin=subprocess.DEVNULL, env=environment(**variables), preexec_fn=limit)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0), err.seek(0)
            done = subprocess.CompletedProcess(arguments, process.returncode, out.read(), err.read())
        done.seconds, done.kib = used.ru_utime + used.ru_stime, used.ru_maxrss
        self.assertGreaterEqual(done.returncode, 0, (arguments, done.stderr))
        if not SANITIZED:
            self.assertLess(done.kib, RESIDENT_KIB, arguments)
        return done

    def compare(self, commands, changes, check):
        """Calls check with the result of each command after the changes. They may cost only little time and memory."""
        before = [self.run_command(*command) for command in commands]
        self.change(*changes)
        for command, was in zip(commands, before):
            with self.subTest(command=command):
                now = self.run_command(*command)
                check(command, now)
                if not SANITIZED:
                    self.assertLess(now.seconds, was.seconds + MORE_SECONDS)
                    self.assertLess(now.kib, was.kib + MORE_KIB)

    def test_endless_views(self):
        """Commands use queryprof's own views, not those of the file."""
        with contextlib.closing(sqlite3.connect(self.evil)) as db:
            views = [name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")]
        self.run_command("embed")
        wanted = [self.run_command(*command).stdout for command in COMMANDS]
        self.change("PRAGMA legacy_alter_table = ON", *(f"DROP VIEW {view}" for view in views),
                    *(f"CREATE VIEW {view} AS " + ENDLESS % "query_id" for view in views))
        for command, out in zip(COMMANDS, wanted):
            with self.subTest(command=command):
                self.assertEqual(self.run_command(*command).stdout.replace(self.evil, ""), out.replace(self.evil, ""))

    def test_tables_that_are_views(self):
        """Each command reads a file in which one table is an endless view."""
        tables = "samples", "modules", "stacks"
        for i, table in enumerate(tables):
            shutil.copy(self.trace, self.evil)
            self.change("PRAGMA legacy_alter_table = ON", f"ALTER TABLE {table} RENAME TO was",
                        f"CREATE VIEW {table} AS " + ENDLESS % "id")
            for command in COMMANDS[i::len(tables)]:
                with self.subTest(command=command, table=table):
                    done = self.run_command(*command)
                    if done.returncode:
                        self.assertTrue(done.stderr.startswith("queryprof: "), done.stderr)

    def test_tables_that_compute(self):
        """Commands refuse tables that compute values, because an expression could make 100 MB of each row. Each command
        reads a file with one of the changes."""
        changes = ("ALTER TABLE statements ADD COLUMN made AS (hex(zeroblob(50000000)))",
                   "CREATE VIRTUAL TABLE made USING fts4(words)",
                   "CREATE TABLE made (words DEFAULT (hex(zeroblob(50000000))))",
                   "CREATE INDEX made ON samples (length(hex(zeroblob(50000000))))",
                   "CREATE INDEX made ON samples (series) WHERE length(hex(zeroblob(50000000)))")
        for i, change in enumerate(changes):
            shutil.copy(self.trace, self.evil)
            self.change(change)
            for command in COMMANDS[i::len(changes)]:
                with self.subTest(command=command, change=change):
                    done = self.run_command(*command)
                    self.assertEqual(done.returncode, 1, done.stdout)
                    self.assertIn("not a trace file of queryprof: its table", done.stderr)

    def test_constraints(self):
        """A file's constraint that refuses every row does not keep queryprof from writing rows."""
        self.change("PRAGMA writable_schema = ON",
                    "UPDATE sqlite_schema SET sql = replace(sql, 'id               INTEGER PRIMARY KEY', "
                    "'id INTEGER PRIMARY KEY CHECK (length(hex(zeroblob(50000000))) < id)') WHERE name = 'processes'")
        with contextlib.closing(sqlite3.connect(self.evil)) as db:
            with self.assertRaises(sqlite3.IntegrityError):
                db.execute("INSERT INTO processes (id, hostname, process_id, start_time_ns, executable) VALUES (99, '', 1, 1, '')")
            count = db.execute("SELECT count(*) FROM processes").fetchone()[0]
        script = "import sqlite3; sqlite3.connect(':memory:').execute('SELECT 1').fetchall()"
        run_time = os.environ.get("QUERYPROF_TEST_RUN_TIME")  # the sanitizer's
        host = {"LD_PRELOAD": run_time, "ASAN_OPTIONS": "detect_leaks=0"} if run_time else {}
        done = subprocess.run([QUERYPROF, "record", "-o", self.evil, "--append", "--setting",
                               "log_queries_min_query_duration_ns=0", "--", "/usr/bin/python3", "-c", script],
                              capture_output=True, text=True, env=environment(**host), timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with contextlib.closing(sqlite3.connect(self.evil)) as db:
            self.assertEqual(db.execute("SELECT count(*) FROM processes").fetchone()[0], count + 1, done.stderr)

    def test_gigabytes_from_an_expression(self):
        done = self.run_command("sql", "SELECT length(hex(zeroblob(200000000)))")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("too big", done.stderr)

    def test_a_million_frames(self):
        trace = "[" + ",".join(str(trace_file.BASE + 0x1000 + i % 5000) for i in range(1000000)) + "]"
        commands = ["report"], ["embed"], ["sql", "SELECT timestamp_ns, symbols, lines FROM trace_log LIMIT 20"], *(
            ["export", "--format", form, "-o", "-"] for form in ("collapsed", "pprof", "flamegraph"))

        def check(command, done):
            if done.returncode:
                self.assertIn("not an array of addresses", done.stderr)

        self.compare(commands, [("UPDATE stacks SET trace = ? WHERE id = 1", (trace,))], check)

    def make_plans(self):
        """Makes two runs of one statement with different plans; the later run is slower."""
        self.change("INSERT INTO libraries VALUES (1, '', '')",
                    "INSERT INTO programs (id, statement, library, plan_hash, first_seen_ns) VALUES (1, 1, 1, 11, 0), (2, 2, 1, 12, 0)",
                    "INSERT INTO plans VALUES (11, 'SCAN a'), (12, 'SCAN b')",
                    "INSERT INTO plan_nodes VALUES (1, 1, 0, 'SCAN a', ''), (2, 1, 0, 'SCAN b', '')",
                    "UPDATE queries SET program = id WHERE id IN (1, 2)",
                    "UPDATE queries SET first_ns = 0, query_duration_ns = 3e8 WHERE id = 2",
                    "UPDATE samples SET query = 2 WHERE query = 1 AND timestamp_ns % 2000 = 0")

    def test_plans(self):
        """A plan with 30,000 sibling nodes, one with 1,500 nested nodes, and texts of 300,000 line ends."""
        self.make_plans()
        numbers = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
        wide = numbers % 30000 + "INSERT INTO plan_nodes SELECT 1, i, 0, 'SCAN c', '' FROM n"
        deep = numbers % 1500 + "INSERT INTO plan_nodes SELECT 2, i, i - 1, 'SCAN d', '' FROM n"
        lines = "UPDATE plans SET plan = replace(hex(zeroblob(150000)), '0', char(10)) || plan_hash"
        seen = {"plan": lambda out: out.count("SCAN c") == 29999, "sql": lambda out: int(out.split()[-1]) > 31500,
                "queries": lambda out: "another order" in out, "diff": lambda out: "another order" in out}

        def check(command, done):
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(seen[command[0]](done.stdout), done.stdout[-2000:])

        self.compare([["plan"], ["sql", "SELECT count(*) AS n FROM plan_times"]], [wide, deep], check)
        self.compare([["queries", "--regressed"], ["diff", self.evil]], [lines], check)

    def test_many_processes(self):
        """There are 30,000 processes with a sample each. OTLP has a resource for each process."""
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1001 UNION ALL SELECT i + 1 FROM n WHERE i < 31000) "
        changes = [numbers + insert for insert in (
            "INSERT INTO processes (id, hostname, process_id, start_time_ns, executable) SELECT i, 'host', i, 0, '/usr/bin/app' FROM n",
            "INSERT INTO threads SELECT i, i, i, 'main' FROM n",
            "INSERT INTO series (id, thread, trace_type, period_ns, epoch) SELECT i, i, 'CPU', 1000, 1 FROM n",
            "INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)"
            f" SELECT {trace_file.START + 10**10} + i, i, 0, 1, 0, 1, 0, 0 FROM n")]

        def check(command, done):
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("process.pid"), 30001)

        self.compare([["export", "--format", "otlp", "-o", "-"]], changes, check)

    def strace(self, *command, **variables):
        log = os.path.join(self.folder, "strace")
        subprocess.run(["strace", "-f", "-qq", "-e", "trace=open,openat,mkdir,mkdirat,connect", "-o", log, QUERYPROF,
                        command[0], self.evil, *command[1:]], capture_output=True, env=environment(**variables),
                       timeout=300, check=False)
        with open(log, encoding="utf-8", errors="replace") as file:
            return file.read()

    @unittest.skipUnless(shutil.which("strace") and not SANITIZED, "needs strace")
    def test_devices_are_not_opened(self):
        """Opening a device may already have an effect, so queryprof inspects the name with O_PATH."""
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        self.addCleanup(os.unlink, pipe)
        for path in "/dev/ptmx", "/dev/tty", pipe:
            self.change(("UPDATE modules SET path = ?", (path,)))
            calls = [line for line in self.strace("report").splitlines() if f'"{path}"' in line]
            self.assertTrue(calls, path)
            for call in calls:
                self.assertIn("O_PATH", call)

    @unittest.skipUnless(shutil.which("strace") and not SANITIZED, "needs strace")
    def test_build_ids(self):
        """Build ids become part of paths and of requests to servers, so invalid ones are not used."""
        cache = os.path.join(self.folder, "cache")
        for build_id in ("../../../../tmp/out", "/etc/evil", "a1b2c3d4e5f6071", "A1B2C3D4E5F60718", "ab" * 65, "%2e%2e/x"):
            self.change(("UPDATE modules SET build_id = ?, path = '/nowhere.so'", (build_id,)))
            for command in ["report"], ["embed"], ["sql", "SELECT symbols, lines FROM trace_log LIMIT 9"]:
                calls = self.strace(*command, DEBUGINFOD_URLS="http://127.0.0.1:9", DEBUGINFOD_CACHE_PATH=cache)
                self.assertNotIn(build_id, calls)
                self.assertNotIn(build_id[:2] + "/" + build_id[2:], calls)
            self.assertFalse(os.path.exists(cache))

    @unittest.skipUnless(os.getuid() == 0, "gives a file to another user")
    def test_foreign_owner(self):
        """record and embed as root do not write to a file, or next to a file, of another user."""
        for suffix in "", "-wal", "-shm", "-journal":
            os.chown(self.evil, 0, 0)
            if suffix:
                with open(self.evil + suffix, "wb"):
                    pass
            os.chown(self.evil + suffix, 65534, 65534)
            with open(self.evil, "rb") as file:
                before = file.read()
            for command in ["record", "-o", self.evil, "true"], ["embed", self.evil]:
                with self.subTest(suffix=suffix, command=command):
                    code, _, err = run(*command)
                    self.assertIn(code, (1, 125))
                    self.assertIn(self.evil + suffix + ": belongs to user 65534", err)
            with open(self.evil, "rb") as file:
                self.assertEqual(file.read(), before)
            if suffix:
                os.unlink(self.evil + suffix)

    @unittest.skipUnless(os.getuid() == 0, "gives a file to another user")
    def test_links(self):
        """Another user makes links. The trace file may be a link, but its target must belong to the user. Files with names
        that other users can guess, such as push's state and the debug log, must not be links."""
        link, target = os.path.join(self.folder, "link"), os.path.join(self.folder, "target")
        state = os.path.join(self.folder, "state")

        def lead(to):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(link)
            os.symlink(to, link)
            os.lchown(link, 65534, 65534)

        self.addCleanup(os.unlink, link)
        record = "record", "--append", "-o", link, "true"
        with self.subTest("a link to nothing"):
            lead(target)
            self.assertIn(link + ": No such file or directory", self.refused(125, *record))
            self.assertFalse(os.path.exists(target))
        with self.subTest("a link to a trace file"):
            lead(self.evil)
            self.assertEqual(run("embed", link)[0], 0)
            if not SANITIZED:  # `true` does not load the sanitizer's run-time
                self.assertEqual(run(*record)[0], 0)
            self.assertTrue(os.path.islink(link))
        with self.subTest("a link to a trace file beside which another's file lies"):
            with open(self.evil + "-wal", "wb"):
                os.chown(self.evil + "-wal", 65534, 65534)
            for code, command in (125, record), (1, ("embed", link)):
                self.assertIn("-wal: belongs to user 65534", self.refused(code, *command))
            os.unlink(self.evil + "-wal")
        with open(target, "w", encoding="ascii") as file:
            file.write("precious")
        lead(target)
        push = "push", "--dry-run", self.evil, "http://127.0.0.1:9/?database=d", "--state"
        with self.subTest("push"):
            self.assertIn(link + ": a symbolic link", self.refused(1, *push, link))
            os.mkfifo(state)
            self.assertIn(state + ": not a regular file", self.refused(1, *push, state))
            os.unlink(state)
            self.assertEqual(run(*push, state)[0], 0)
            os.chown(state, 65534, 65534)
            self.assertIn(state + ": not a regular file of this user", self.refused(1, *push, state))
            os.unlink(state)
        with self.subTest("the debug log"):
            def log(path):
                subprocess.run([QUERYPROF, "report", self.trace], check=True, timeout=60, capture_output=True,
                               env=environment(QUERYPROF_DEBUG="all", QUERYPROF_DEBUG_FILE=path))

            log(link)
            log(state)
            self.assertGreater(os.path.getsize(state), 0)
            os.truncate(state, 0)
            os.chown(state, 65534, 65534)
            log(state)
            self.assertEqual(os.path.getsize(state), 0)
            os.unlink(state)
            os.mkfifo(state)  # it has no reader, so opening it would wait
            log(state)
            os.unlink(state)
        with open(target, encoding="ascii") as file:
            self.assertEqual(file.read(), "precious")
        os.unlink(target)

    def test_mode(self):
        """A command that writes to a trace file makes it private, because it contains texts of queries."""
        os.chmod(self.evil, 0o644)
        self.run_command("queries")
        self.assertEqual(os.stat(self.evil).st_mode & 0o777, 0o644)
        self.run_command("embed")
        self.assertEqual(os.stat(self.evil).st_mode & 0o777, 0o600)
        self.assertEqual(self.run_command("queries").returncode, 0)

    def test_mode_of_what_is_no_trace_file(self):
        other = os.path.join(self.folder, "other")
        with open(other, "w", encoding="ascii") as file:
            file.write("not a trace file")
        os.chmod(other, 0o644)
        self.refused(125, "record", "-o", other, "true")
        self.assertEqual(os.stat(other).st_mode & 0o777, 0o644)


main()
