#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The messages of `queryprof record` if nothing was recorded, or nothing can be.

usage: test_messages.py QUERYPROF OWN_COPY STATIC NODE OLD NO_TABLE NO_FORK END_AT_NEW_FILE: programs with their own copy of
SQLite, one dynamically linked and one without a loader; modules with such a copy, and with an old SQLite library; a program
with a SQLite without the table of its functions; a preload that makes posix_spawn() fail, and a preload that sends SIGTERM
at mkostemp()."""

import re
import sys

import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

OWN_COPY, STATIC, NODE, OLD, NO_TABLE, NO_FORK, END_AT_NEW_FILE = (os.path.abspath(sys.argv.pop(1)) for _ in range(7))


class Nothing(Recording):
    names = ()  # as a user calls it

    def nothing(self, *command, **named):
        done = self.record(*command, **named)
        self.assertIn("nothing was recorded: neither %s nor a program that it started loaded a SQLite library" % command[0],
                      done.stderr)
        self.assertFalse(os.path.exists(self.trace), "no empty file is left")
        return done

    def test_no_sqlite(self):
        done = self.nothing("sh", "-c", "exit 4")
        self.assertEqual(done.returncode, 4)
        self.assertIn("queryprof was loaded into sh, which did not load SQLite; sh ended with status 4", done.stderr)
        self.assertNotIn("env -i", done.stderr)

    def test_program_that_failed(self):
        done = self.nothing(PYTHON, "-c", "import no_such_module")
        self.assertRegex(done.stderr, "queryprof was loaded into python3, which did not load SQLite; %s ended with status 1" % PYTHON)
        self.assertNotIn("env -i", done.stderr)
        done = self.nothing("sh", "-c", "kill -9 $$")
        self.assertRegex(done.stderr, "which did not load SQLite; signal 9 .* ended sh")
        self.assertNotIn("env -i", done.stderr)

    def test_no_query(self):
        done = self.record(PYTHON, "-c", "import sqlite3; raise SystemExit(3)")
        self.assertEqual(done.returncode, 3)
        self.assertIn("nothing was recorded: SQLite was loaded, but the process reported no query. Either it ran none, or", done.stderr)
        done = self.record(PYTHON, "-c", "import os, sqlite3; sqlite3.connect(':memory:').execute('SELECT 1'); os.kill(os.getpid(), 9)",
                           options=("--setting", "trace_log_flush_interval_ms=3600000"))
        self.assertNotIn("reported no query", done.stderr)

    def namespaces(self, *options):
        if subprocess.run(["unshare", *options, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no namespaces here")

    def test_other_root(self):
        """queryprof is not at its path for the program. The message names the last program that reported, and the
        program that it became."""
        self.namespaces("-m")
        root = os.path.join(self.folder, "root")
        script = ("mkdir $0 && mount -t tmpfs none $0 && cd $0 && mkdir usr bin lib lib64 && for i in usr lib lib64; do"
                  " mount --bind /$i $i || exit 77; done && exec chroot . /usr/bin/sqlite3 :memory: 'SELECT 7 * 6'")
        done = self.nothing("unshare", "-m", "sh", "-c", script, root)
        self.assertEqual((done.returncode, done.stdout), (0, "42\n"), self.seen)
        self.assertRegex(done.stderr, "queryprof was loaded into .*chroot.*, which did not load SQLite. Then unshare became sqlite3, which"
                                      " reported nothing")
        self.assertRegex(done.stderr, r"another root directory \(chroot, bubblewrap, a container\), make %s and %s visible there at the same paths"
                         % (os.path.join(os.path.dirname(QUERYPROF), "libqueryprof-preload.so"), tempfile.gettempdir()))
        # The program of a child, as with bubblewrap.
        done = self.nothing("unshare", "-m", "sh", "-c", script.replace("exec ", "") + "; true", root + "2")
        self.assertEqual((done.returncode, done.stdout), (0, "42\n"), self.seen)
        self.assertRegex(done.stderr, r"If it has another root directory \(chroot, bubblewrap, a container\), make /.*so"
                                      r" and %s visible there at the same paths" % tempfile.gettempdir())

    def test_command_that_is_not_reached(self):
        done = self.record("env", "-u", "QUERYPROF_RECORD_KEY", "sqlite3", ":memory:", "SELECT 7 * 6")
        self.assertEqual((done.returncode, done.stdout), (0, "42\n"), self.seen)
        self.assertIn("samples missing, refused 1 time: its ring cannot be handed over to `queryprof record`:"
                      " QUERYPROF_RECORD_KEY is not in its environment", done.stderr)
        self.assertNotIn("env -i", done.stderr)

    def test_environment_changed_later(self):
        done = self.record(PYTHON, "-c", "import os, sqlite3; os.environ.clear(); sqlite3.connect(':memory:').execute(%r)" % SLOW)
        self.assertEqual(done.returncode, 0, self.seen)
        self.expect_sampled(1)

    def test_own_copy(self):
        done = self.record(OWN_COPY)
        self.assertEqual((done.returncode, done.stdout), (0, ANSWER + "\n"), self.seen)
        self.expect_sampled(1)

    def test_module_with_own_copy(self):
        """The message names the module, not the program, even if the program ends by _exit()."""
        done = self.nothing(PYTHON, "-c", "import ctypes, os, sys; ctypes.CDLL(sys.argv[1]); os._exit(3)", NODE)
        self.assertEqual(done.returncode, 3, self.seen)
        self.assertIn("%s contains its own copy of SQLite, which opened no database" % NODE, done.stderr)

    def test_old_library(self):
        done = self.record(PYTHON, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", OLD)
        self.assertIn("nothing was recorded: %s: it is SQLite 3.14.2, which is older than 3.15" % OLD, done.stderr)

    def test_emptied_environment(self):
        done = self.nothing("env", "-i", "/usr/bin/sqlite3", ":memory:", "SELECT 1")
        self.assertIn("queryprof was loaded into env, which did not load SQLite. Then env became sqlite3, which reported nothing",
                      done.stderr)
        self.assertIn("env -i, sudo", done.stderr)

    def test_periods_of_zero(self):
        done = self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW, options=("--cpu", "0", "--real", "0", "--off-cpu", "0"))
        self.assertIn("all periods are 0", done.stderr)
        self.assertNotIn("no query took long enough", done.stderr)
        done = self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW, options=("--cpu", "0", "--off-cpu", "0"))
        self.assertIn("all periods are 0", done.stderr)

    def test_process_that_goes_on(self):
        script = ("import os, sqlite3, time\n"
                  "if os.fork(): os._exit(0)\n"
                  "os.close(1); os.close(2)\n"
                  "%stime.sleep(60)")
        for work, said in (("sqlite3.connect(':memory:').execute('SELECT 1'); ", "recording continues"), ("", "recording continues")):
            # The file contains nothing about the process before the command prints this.
            done = self.record(PYTHON, "-c", script % work, options=("--cpu", "0", "--real", "1000s", "--setting",
                                                                      "trace_log_flush_interval_ms=3600000"))
            found = re.search(r"process (\d+) ", done.stderr)
            self.assertTrue(found, self.seen)
            os.kill(int(found.group(1)), signal.SIGKILL)
            self.assertIn(said, done.stderr)
            self.assertNotIn("no query took long enough", done.stderr)

    def test_found_in_path(self):
        done = self.nothing(os.path.basename(OWN_COPY), "idle",
                            env={**os.environ, "PATH": os.path.dirname(OWN_COPY) + ":" + os.environ["PATH"]})
        self.assertIn("%s contains its own copy of SQLite, which opened no database" % OWN_COPY, done.stderr)

    def test_static_program(self):
        done = self.nothing(STATIC)
        self.assertEqual(done.returncode, 0, self.seen)
        self.assertIn("%s is statically linked, so nothing can be preloaded: link it with" % STATIC, done.stderr)

    def test_without_table(self):
        done = self.record(NO_TABLE)
        self.assertEqual(done.returncode, 0, self.seen)
        self.assertIn("nothing was recorded: %s: the SQLite inside it was built with SQLITE_OMIT_LOAD_EXTENSION"
                      % NO_TABLE, done.stderr)

    def changed_program(self, path, change):
        """A copy of the program in the test's folder."""
        with open(path, "rb") as file:
            text = change(file.read())
        program = os.path.join(self.folder, "program")
        with open(program, "wb") as file:
            file.write(text)
        os.chmod(program, 0o755)
        return program

    def test_translated(self):
        for module, into in ("modernc.org/sqlite", "Go"), ("github.com/ncruces/go-sqlite3", "WebAssembly"):
            program = self.changed_program(STATIC, lambda text: text + b"\ndep\t%s\tv1.20.4\t\n" % module.encode())
            done = self.nothing(program)
            self.assertEqual(done.returncode, 0, self.seen)
            self.assertIn("%s contains SQLite translated into %s (%s)" % (program, into, module), done.stderr)

    def test_package_in_webassembly(self):
        package = os.path.join(os.path.realpath(self.folder), "node_modules", "sql.js")
        below = os.path.join(self.folder, "a", "b")
        for folder in package, below:
            os.makedirs(folder)
        done = self.nothing("sh", "-c", "exit 4", cwd=below)
        self.assertEqual(done.returncode, 4, self.seen)
        self.assertIn("if it uses %s, that is SQLite translated into WebAssembly" % package, done.stderr)

    def test_file_that_was_there_stays(self):
        self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW)
        self.record("true")
        self.assertEqual(len(self.queries()), 1)

    def test_no_query_worth_a_line(self):
        # On a busy machine, too.
        patient = ("--cpu", "0", "--real", "1000s", "--setting", "log_queries_min_query_duration_ns=1000s")
        done = self.record("sqlite3", "-init", "/dev/null", ":memory:", "SELECT 1", options=patient)
        self.assertIn("SQLite ran, but no query took long enough", done.stderr)
        done = self.record("sqlite3", "-init", "/dev/null", ":memory:", "SELECT 1",
                           options=("--setting", "log_queries_min_query_duration_ns=0"))
        # The end of the connection is a run, too, if it took a millisecond.
        closes = self.rows("SELECT count(*) FROM query_log WHERE query = 'sqlite3_close()'")[0][0]
        self.assertEqual([row[0] for row in self.queries()], ["SELECT 1"], self.seen)
        self.assertRegex(done.stderr, " %s, 1 process" % ("2 runs" if closes else "1 run"), self.seen)

    @unittest.skipIf(os.getuid(), "only root can make programs that are root's for others")
    def test_set_user_id(self):
        """The program is neither configured nor recorded, and it does not write a file."""
        program = os.path.join(self.folder, "sqlite3")
        shutil.copy(shutil.which("sqlite3"), program)
        os.chmod(self.folder, 0o777)
        trace = os.path.join(self.folder, "others.trace")
        for mode, seen in (0o755, True), (0o4755, False):
            os.chmod(program, mode)
            done = subprocess.run(
                ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
                 *self.arguments(program, "-init", "/dev/null", ":memory:", SLOW)],
                capture_output=True, text=True, timeout=300, check=False)
            if "setpriv" in done.stderr:
                self.skipTest("others cannot run the command: " + done.stderr)
            self.assertEqual((done.returncode, done.stdout), (0, ANSWER + "\n"), done.stderr)
            self.assertEqual("set-user-id" in done.stderr, not seen, done.stderr)
            self.assertEqual(os.path.exists(self.trace), seen, done.stderr)
            if seen:
                self.expect_sampled(1)
                os.unlink(self.trace)
        # The environment alone does not record it, either.
        marks = os.path.join(self.folder, "marks")
        os.mkfifo(marks)
        os.chmod(marks, 0o666)
        reader = os.open(marks, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        environment = {**os.environ, "QUERYPROF_RECORD": marks, "QUERYPROF_TRACE_LOG_PATH": trace,
                       "LD_PRELOAD": os.path.join(os.path.dirname(QUERYPROF), "libqueryprof-preload.so")}
        subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                        program, "-init", "/dev/null", ":memory:", SLOW],
                       capture_output=True, timeout=300, check=True, env=environment)
        self.assertFalse(os.path.exists(trace))
        self.assertNotIn(program, os.read(reader, 1 << 16).decode())


class Settings(Recording):
    names = ()  # as a user calls it

    def refused(self, *options, status=2, **named):
        done = self.record("sh", "-c", "echo it ran", options=options, **named)
        self.assertEqual((done.returncode, done.stdout), (status, ""), self.seen)
        return done.stderr

    def test_refused_before_the_start(self):
        self.assertIn("--cpu 5us; expected 0 (off) or 10us to 1h", self.refused("--cpu", "5us"))
        self.assertIn("elsewhere: expected a URL that begins with http:// or https://", self.refused("--push", "elsewhere"))
        self.assertIn("--real soon; expected", self.refused("--real", "soon"))
        self.assertIn("--setting no_such: there is no such setting; docs/sql-reference.md lists them\n", self.refused("--setting", "no_such=1"))
        self.assertIn("did you mean log_queries?\n", self.refused("--setting", "log_query=1"))
        self.assertIn("expected NAME=VALUE", self.refused("--setting", "log_queries"))
        self.assertIn("query_id applies to one statement", self.refused("--setting", "query_id=a"))
        self.assertIn("there is no option --frequency", self.refused("--frequency", "1"))
        environment = {**os.environ, "QUERYPROF_LOG_QUERIES": "maybe"}
        self.assertIn("environment: log_queries = maybe", self.refused(env=environment))

    def test_trace_file_refused(self):
        self.trace = self.file("notes.txt", "these are not samples")
        self.assertIn("not a trace file", self.refused(status=125))
        with open(self.trace, encoding="utf-8") as file:
            self.assertEqual(file.read(), "these are not samples")
        self.trace = os.path.join(self.folder, "no", "such", "folder.trace")
        self.assertIn("No such file or directory", self.refused(status=125))

    def test_library_of_another_version(self):
        for name in ("queryprof", "libqueryprof-recorder.so", "libqueryprof-preload.so"):
            shutil.copy(os.path.join(os.path.dirname(QUERYPROF), name), self.folder)
        library = os.path.join(self.folder, "libqueryprof-recorder.so")
        command = [os.path.join(self.folder, "queryprof"), *self.arguments("echo", "it ran")[1:]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "it ran\n"), done.stderr)
        with open(library, "r+b") as file:
            content = file.read()
            self.assertEqual(content.count(b"queryprof record: version "), 1)
            file.seek(content.index(b"queryprof record: version "))
            file.write(b"queryprof record: version 9")
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout), (125, ""), done.stderr)
        self.assertIn("%s is of another version than this command" % os.path.realpath(library), done.stderr)
        self.assertFalse(os.path.exists(self.trace))

    def test_periods(self):
        self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW, options=("--cpu", "500us", "--off-cpu=0"))
        # The program may get a sample between the row and the end of the query.
        found = self.rows("SELECT DISTINCT trace_type, period_ns FROM trace_log WHERE trace_type <> 'ProgramCPU'")
        if found or any(self.were_at_ticks(SLOW)):
            self.assertEqual(found, [("CPU", 500000)], self.seen)

    def test_defaults(self):
        slow = SLOW.replace("250000", "2000000")
        self.record("sqlite3", "-init", "/dev/null", ":memory:", slow, options=())
        # On a busy machine a sample may come between the row and the end of the query, too.
        found = self.rows("SELECT DISTINCT trace_type, period_ns FROM trace_log WHERE trace_type IN ('CPU', 'Real')")
        if found or any(self.were_at_ticks(slow)):
            self.assertEqual(found, [("CPU", 10000000)], self.seen)

    def test_wall_time_by_default(self):
        """The samples of CPU time and of waits make up the wall time, and no timer runs on the wall clock."""
        script = ("import sqlite3, time; db = sqlite3.connect(':memory:');"
                  "db.create_function('nap', 0, lambda: time.sleep(0.2)); db.execute('SELECT nap()').fetchall()")
        self.record(PYTHON, "-c", script, options=())
        self.assertEqual(self.rows("SELECT DISTINCT period_ns, unit FROM trace_log WHERE trace_type = 'OffCPU'"),
                         [(1000000, "ns")], self.seen)
        self.assertEqual(self.rows("SELECT count(*) FROM trace_log WHERE trace_type = 'Real'"), [(0,)])
        self.assertGreaterEqual(self.rows("SELECT sum(value) FROM trace_log WHERE wait_object = 'sleep'")[0][0], 199000000)

        def tool(*arguments):
            return subprocess.run([QUERYPROF, *arguments], capture_output=True, text=True, check=True).stdout
        for kind in ("wall", "offcpu"):
            lines = tool("export", self.trace, "--format", "collapsed", "-o", "-", "--type", kind).splitlines()
            self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), self.rows(
                "SELECT sum(value) FROM trace_log WHERE trace_type = 'OffCPU' OR ? AND trace_type = 'CPU'", kind == "wall")[0][0])
            sleeps = [line for line in lines if ";[wait: user function sleep] " in line]
            self.assertEqual(len(sleeps), 1, lines)
        for options in ((), ("--type", "wall")):
            report = tool("report", self.trace, *options)
            self.assertRegex(report, r"(?s)\nTop waits, leaf first\n.*user function sleep")
        # The run has slept nearly all the time, and the samples of both types cover all of it.
        # On a busy machine the end of the connection is a run with samples, too.
        wall, sampled = self.rows("SELECT sum(execution_time_ns - rest_ns), (SELECT sum(value) FROM trace_log JOIN query_log"
                                  " USING (query_id) WHERE wait_cause <> 'page fault' AND query LIKE '%nap%')"
                                  " FROM query_log WHERE query LIKE '%nap%'")[0]
        self.assertLessEqual(abs(wall - sampled), 25000000, (wall, sampled))

    def test_environment_knows_best(self):
        self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW, options=("--cpu", "0", "--off-cpu", "0"),
                    env={**os.environ, "QUERYPROF_QUERY_PROFILER_REAL_TIME_PERIOD_NS": "2ms"})
        self.assertEqual(self.rows("SELECT DISTINCT trace_type, period_ns FROM trace_log"), [("Real", 2000000)], self.seen)

    def test_options_of_the_command(self):
        """Arguments after the program's name belong to the program, with and without `--`."""
        for gap in [], ["--"]:
            done = subprocess.run([QUERYPROF, "record", "--quiet", "-o", self.trace, *gap, "sh", "-c",
                                   'echo "$@"', "sh", "--cpu", "-o", "--", "--help"],
                                  capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, "--cpu -o -- --help\n"), done.stderr)

    def record_again(self, *options):
        done = self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW, options=("--cpu", "1ms", *options))
        self.assertEqual(done.returncode, 0, self.seen)
        return done.stderr

    def test_a_file_that_is_none_of_ours(self):
        text = "something else\n" * 100
        path = self.trace = self.file("other", text)
        for options in (), ("--append",), ("--new",):
            done = self.record("true", options=options)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (125, 1), self.seen)
            self.assertRegex(done.stderr, path + ": .*not a (trace file|database)")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)

    def test_a_file_that_exists(self):
        says = "record: %s exists, so this recording is added to it (--new replaces the file, --append omits this message)\n" % self.trace
        self.assertNotIn("record:", self.record_again())
        self.assertIn(says, self.record_again())
        self.expect_sampled_runs(2)
        self.assertNotIn("record:", self.record_again("--append"))
        self.expect_sampled_runs(3)
        self.assertEqual(self.record_again("--quiet"), "")
        self.expect_sampled_runs(4)
        self.assertNotIn("record:", self.record_again("--new"))
        self.expect_sampled_runs(1)

    def expect_sampled_runs(self, count):
        self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query = ?", SLOW), [(count,)], self.seen)

    def test_new_removes_nothing_else(self):
        self.file("app.trace", "not mine\n")
        done = self.record("true", options=("--new",))
        self.assertEqual((done.returncode, done.stdout), (125, ""), self.seen)
        self.assertRegex(done.stderr, r"app\.trace: .*not a (database|trace file)")
        with open(self.trace, encoding="ascii") as file:
            self.assertEqual(file.read(), "not mine\n")
        os.unlink(self.trace)
        self.record_again()
        with sqlite3.connect(self.trace) as other:
            other.execute("SELECT count(*) FROM samples").fetchall()
            done = self.record("true", options=("--new",))
        other.close()
        self.assertEqual(done.returncode, 125, self.seen)
        self.assertIn("another process has it open, so --new cannot remove it", done.stderr)
        self.expect_sampled_runs(1)
        done = self.record("true", options=("--new", "--append"))
        self.assertEqual((done.returncode, "cannot be combined" in done.stderr), (2, True), self.seen)

    def files(self):
        """Every file in the folder, with its permissions. The log's index changes with each reader."""
        found = {}
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            with open(path, "rb") as file:
                found[name] = (b"" if name.endswith("-shm") else file.read(), os.lstat(path))
        return {name: (text, status.st_ino, status.st_mode) for name, (text, status) in found.items()}

    def test_new_keeps_the_old_file_until_the_program_starts(self):
        self.record_again()
        # A killed process leaves the file like this, with rows only in the log.
        script = ("import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None);"
                  "db.execute('PRAGMA journal_mode = WAL'); db.execute('UPDATE state SET identity = 17');"
                  "os.kill(os.getpid(), 9)")
        subprocess.run([PYTHON, "-c", script, self.trace], check=False)
        os.chmod(self.trace, 0o440)
        before = self.files()
        self.assertEqual(set(before), {"app.trace", "app.trace-wal", "app.trace-shm"})
        no_program = self.file("no program", "")
        before = self.files()
        for name, status in (("./srever", 127), (no_program, 126)):
            done = self.record(name, options=("--new",))
            self.assertEqual((done.returncode, done.stderr.count("\n")), (status, 1), self.seen)
            self.assertEqual(self.files(), before)
        self.refuse_temporary("--new")
        self.assertEqual(self.files(), before)
        self.assertEqual(self.rows("SELECT identity FROM state"), [(17,)])
        self.assertNotIn("record:", self.record_again("--new"))
        self.expect_sampled_runs(1)
        self.assertEqual(self.rows("SELECT identity = 17 FROM state"), [(0,)])
        self.assertEqual(set(self.files()), {"app.trace", "no program"})

    def test_new_and_a_signal(self):
        """The signal comes just before the old file is renamed. The command handles it after the program's start, or at
        its own end."""
        self.record_again()
        before = self.files()
        env = {**os.environ, "LD_PRELOAD": END_AT_NEW_FILE}
        done = self.record("./srever", options=("--new",), env=env)
        self.assertEqual((done.returncode, self.files()), (127, before), self.seen)
        done = self.record("sleep", "300", options=("--new",), env=env)
        self.assertEqual((done.returncode, self.files()), (-signal.SIGTERM, {}), self.seen)

    def refuse_temporary(self, *options):
        done = self.record("true", options=options, env={**os.environ, "TMPDIR": os.path.join(self.folder, "none")})
        self.assertEqual((done.returncode, "none/queryprof-record-" in done.stderr), (125, True), self.seen)

    def test_failures_leave_nothing(self):
        self.refuse_temporary()
        self.assertEqual(self.files(), {})
        done = self.record("./srever", options=())
        self.assertEqual((done.returncode, self.files()), (127, {}), self.seen)

    def test_failure_of_push_leaves_nothing(self):
        folder = os.path.join(self.folder, "temporary")
        os.mkdir(folder)
        done = self.record("true", options=("--push", "http://127.0.0.1:1/"),
                           env={**os.environ, "TMPDIR": folder, "LD_PRELOAD": NO_FORK})
        self.assertEqual(done.returncode, 125, self.seen)
        self.assertIn("record: push cannot be started", done.stderr)
        self.assertEqual((os.listdir(self.folder), os.listdir(folder)), (["temporary"], []))

    def test_default_file(self):
        subprocess.run([QUERYPROF, "record", "sh", "-c", 'cd / && exec sqlite3 -init /dev/null :memory: "$0"', SLOW],
                       capture_output=True, timeout=300, check=True, cwd=self.folder)
        self.trace = os.path.join(self.folder, "queryprof.trace")
        self.assertEqual(len(self.queries()), 1)
        self.assertEqual(os.stat(self.trace).st_mode & 0o777, 0o600)


class WithoutLibdw(Recording):
    """A system without elfutils' library, which a mount hides here."""
    names = ()

    def test_says_so(self):
        found = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
        libdw = os.path.realpath(re.search(r"libdw\.so\.1 .*x86-64.* => (.*)", found).group(1))
        hide = ["env", "XDG_CACHE_HOME=" + self.folder, "unshare", *(() if os.getuid() == 0 else ("-r",)), "-m", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"', libdw]
        if subprocess.run([*hide, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no namespaces here")
        sentence = (self.trace + ": names of functions cannot be looked up: elfutils' libdw.so.1 is not installed or cannot be loaded"
                    " (Debian: apt-get install libdw1); queryprof embed adds them later\n")
        script = "import sqlite3; print(sqlite3.connect(':memory:').execute(%r).fetchone()[0])" % SLOW
        done = subprocess.run([*hide, *self.arguments(PYTHON, "-c", script)], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ANSWER + "\n"), done.stderr)
        self.assertIn(sentence, done.stderr)
        self.assertEqual(self.rows("SELECT 1 FROM top_functions WHERE function = 'sqlite3_step'"), [])
        done = subprocess.run([*hide, QUERYPROF, "embed", self.trace], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "queryprof: " + sentence))
        # With the library, nothing is said.
        done = subprocess.run([QUERYPROF, "embed", self.trace], capture_output=True, text=True, timeout=300, check=True)
        self.assertEqual(done.stderr, "")
        self.assertTrue(self.rows("SELECT 1 FROM top_functions WHERE function = 'sqlite3_step'"))


unittest.main()
