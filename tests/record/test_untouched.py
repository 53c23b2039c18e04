#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`queryprof record` has no effects that the host could notice.

usage: test_untouched.py QUERYPROF CLOSER: a program that closes before it finalizes"""

import pty
import resource
import select

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

CLOSER = os.path.abspath(sys.argv.pop(1))

# At SIGUSR2, prints how often it got each signal.
COUNTER = """
import os, signal, sys, time
got = {}
def count(number, frame):
    got[number] = got.get(number, 0) + 1
    os.write(1, b'got one\\n')
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCONT, signal.SIGRTMIN + 3):
    signal.signal(number, count)
done = []
signal.signal(signal.SIGUSR2, lambda number, frame: done.append(1))
print('pid', os.getpid(), flush=True)
while not done: time.sleep(0.01)
print(sorted(got.items()), flush=True)
"""


# The number of connections that the library still knows, in a process that has loaded it.
SESSIONS = """
import ctypes
class Metric(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('value', ctypes.c_int64),
                ('text', ctypes.c_char_p), ('description', ctypes.c_char_p)]
def sessions():
    found = []
    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Metric))
    def each(context, metric):
        if metric.contents.name == b'sessions': found.append(metric.contents.value)
        return 0
    ctypes.CDLL(%r).qp_metrics(each, None)
    return found[0]
""" % LIBRARY


class Connections(Recording):
    SQL = """SELECT group_concat(name) FROM pragma_database_list;
        SELECT count(*) FROM pragma_function_list;
        SELECT count(*) FROM pragma_module_list;
        SELECT count(*) FROM sqlite_schema;
        PRAGMA query_profiler_cpu_time_period_ns;"""

    def test_memory(self):
        """After the only connection is closed, SQLite uses no more memory than without queryprof."""
        script = self.file("memory.py", """
import ctypes
lib = ctypes.CDLL("libsqlite3.so.0")
lib.sqlite3_memory_used.restype = ctypes.c_longlong
db = ctypes.c_void_p()
assert lib.sqlite3_open(b":memory:", ctypes.byref(db)) == 0
assert lib.sqlite3_exec(db, b"CREATE TABLE t (a); SELECT * FROM t", None, None, None) == 0
assert lib.sqlite3_close(db) == 0
print(lib.sqlite3_memory_used())
""")
        alone = subprocess.run([PYTHON, script], capture_output=True, text=True, timeout=300, check=True).stdout
        recorded = subprocess.run([QUERYPROF, "record", "-o", self.trace, "--", PYTHON, script], capture_output=True, text=True,
                                  timeout=300, check=True).stdout
        self.assertEqual(recorded, alone)

    def test_nothing_added(self):
        command = ["sqlite3", "-init", "/dev/null", os.path.join(self.folder, "a.db"), self.SQL]
        plain = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        done = self.record(*command)
        self.assertEqual(done.stdout, plain.stdout, self.seen)
        self.assertEqual(done.stdout.count("\n"), 4, "an unknown PRAGMA answers nothing" + self.seen)

    def test_words_of_ours_unknown(self):
        for sql in "SELECT * FROM trace_log", "SELECT * FROM system.settings", "SELECT addressToSymbol(0)":
            done = self.record("sqlite3", "-init", "/dev/null", ":memory:", sql)
            self.assertEqual(done.returncode, 1, self.seen)
            self.assertRegex(done.stderr, "no such (table|function)")

    def test_sqlite_not_initialised_for_the_host(self):
        """A program can configure SQLite only before it is initialised."""
        config = "import ctypes\nlib = ctypes.CDLL('libsqlite3.so.0')\nprint(lib.sqlite3_config(2))"  # MULTITHREAD
        done = self.record(PYTHON, "-c", config)
        self.assertEqual((done.returncode, done.stdout), (0, "0\n"), self.seen)

    def test_loaded_as_well(self):
        """A host that loads the extension itself can use all of it."""
        done = self.record(PYTHON, "-c", """
import sqlite3, sys
db = sqlite3.connect(':memory:')
print(db.execute(sys.argv[2]).fetchone()[0])
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
print(db.execute("SELECT count(*) FROM trace_log").fetchone()[0] > 0)
print(db.execute("PRAGMA query_profiler_cpu_time_period_ns").fetchone()[0])
db.execute("PRAGMA query_id = 'mine'")
print(db.execute(sys.argv[2]).fetchone()[0])
other = sqlite3.connect(':memory:')
print(other.execute("SELECT count(*) > 0 FROM system.settings").fetchone()[0])
db.close()
other.close()
""", LIBRARY, SLOW)
        self.assertEqual((done.returncode, done.stdout), (0, "%s\nTrue\n1000000\n%s\n1\n" % (ANSWER, ANSWER)), self.seen)
        self.expect_sampled(2)
        self.assertEqual(len(self.rows("SELECT 1 FROM query_log WHERE query_id = 'mine'")), 1)

    def test_ten_thousand_connections(self):
        done = self.record(PYTHON, "-c", SESSIONS + """
import gc, sqlite3
for i in range(10000):
    db = sqlite3.connect(':memory:')
    db.execute('SELECT 1').fetchone()
    if i %% 2: db.close()
    del db
gc.collect()
print(sessions())
print(sqlite3.connect(':memory:').execute(%r).fetchone()[0])""" % SLOW)
        self.assertEqual((done.returncode, done.stdout), (0, "0\n" + ANSWER + "\n"), self.seen)
        self.expect_sampled(1)

    def test_closed_with_statements(self):
        """sqlite3_close_v2() keeps a connection until its last statement is finalized."""
        done = self.record(CLOSER, LIBRARY)
        self.assertEqual((done.returncode, done.stdout), (0, "1 1 1 0\n"), self.seen)


class End(Recording):
    def test_exit_status(self):
        for status in 0, 1, 2, 77, 125, 255:
            self.assertEqual(self.record("sh", "-c", "exit %d" % status).returncode, status)

    def test_killed_by_signal(self):
        for number in signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT:
            done = self.record("sh", "-c", "kill -%d $$" % number)
            self.assertEqual(done.returncode, -number, self.seen)

    def test_under_fakeroot(self):
        """A library that is also preloaded into the command keeps its connection there."""
        for way in "tcp", "sysv":
            if not shutil.which("fakeroot-" + way):
                self.skipTest("no fakeroot-" + way)
            with self.subTest(way=way):
                done = subprocess.run(["fakeroot-" + way, "--", *self.arguments("sh", "-c", "id -u; sqlite3 :memory: 'SELECT 42'; exit 3")],
                                      capture_output=True, text=True, timeout=300, check=False)
                self.seen = done.stdout + done.stderr
                self.assertEqual((done.returncode, done.stdout), (3, "0\n42\n"), self.seen)
                self.assertNotIn("libfakeroot", done.stderr)

    def test_not_started(self):
        done = self.record("no-such-program-here")
        self.assertEqual(done.returncode, 127, self.seen)
        self.assertIn("no-such-program-here", done.stderr)
        done = self.record(self.file("not-a-program", "text"))
        self.assertEqual(done.returncode, 126, self.seen)
        self.assertFalse(os.path.exists(self.trace), "no file when there was nothing to put in")

    def test_killed_with_us(self):
        # The command can no longer remove its files, so the folder contains them.
        environment = {**os.environ, "TMPDIR": self.folder}
        with subprocess.Popen(self.arguments(PYTHON, "-c", COUNTER), stdout=subprocess.PIPE, text=True,
                              env=environment) as us:
            program = int(read_line(us.stdout, "the program's number").split()[1])
            us.kill()
            with bounded("the end of the program's output"):
                us.stdout.read()  # ends when the program has ended
        wait_until(lambda: state(program) in ("", "Z"), "the program's end")

    def test_quiet(self):
        done = self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW, options=("--quiet",))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, ANSWER + "\n", ""))


class Streams(Recording):
    def test_standard_input(self):
        done = self.record("sqlite3", "-init", "/dev/null", ":memory:", input=SLOW + ";")
        self.assertEqual(done.stdout, ANSWER + "\n", self.seen)

    def test_output_closed_early(self):
        """A reader gets the end of the output when the program closes it, not when the program ends."""
        with subprocess.Popen(self.arguments("sh", "-c", "echo one; exec >&- 2>&-; read line", options=("--quiet",)),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as us:
            output = []
            os.set_blocking(us.stdout.fileno(), False)
            wait_until(lambda: output.append(us.stdout.read()) or output[-1] == b"", "the end of its output")
            self.assertEqual(b"".join(part or b"" for part in output), b"one\n")
            self.assertIsNone(us.poll())
            us.communicate(b"go\n", timeout=300)
            self.assertEqual(us.returncode, 0)

    def test_environment(self):
        """The user's own preloads remain, and queryprof's comes after them."""
        done = self.record("sh", "-c", 'echo "$LD_PRELOAD"',
                           env={**os.environ, "LD_PRELOAD": "libc.so.6"})
        self.assertRegex(done.stdout, r"^libc\.so\.6:/.*/libqueryprof-preload\.so\n$", self.seen)

    def test_inherited(self):
        """The program inherits blocked and ignored signals, limits and the process group."""
        def prepare():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        show = ["grep", "-hE", "^Sig(Blk|Ign|Cgt)|^ShdPnd|^Max open", "/proc/self/status", "/proc/self/limits"]
        plain = subprocess.run(show, capture_output=True, text=True, timeout=300, check=True, preexec_fn=prepare)
        done = self.record(*show, preexec_fn=prepare)
        self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), self.seen)


class Signals(Recording):
    def start(self, before="", **named):
        us = subprocess.Popen(self.arguments(PYTHON, "-c", before + COUNTER, options=("--quiet",)), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, start_new_session=True, **named)
        self.addCleanup(us.stdout.close)
        self.addCleanup(us.wait)
        self.addCleanup(us.kill)
        self.program = int(read_line(us.stdout, "the program's number").split()[1])
        return us

    def take(self, us, count=1):
        """Waits until the program has got the signals, so that the next one can neither overtake them nor be merged
        with one."""
        for at in range(count):
            self.assertEqual(read_line(us.stdout, "signal %d of %d" % (at + 1, count)), "got one\n")

    def finish(self, us):
        time.sleep(0.2)  # waits for a second copy, which must not come
        os.kill(us.pid, signal.SIGUSR2)
        with bounded("the end of the program's output, after SIGUSR2"):
            lines = us.stdout.read().splitlines()
        us.wait(300)
        return lines[-1]

    def test_sent_to_us(self):
        us = self.start()
        wanted = [signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGRTMIN + 3]
        for number in wanted:
            os.kill(us.pid, number)
        self.take(us, len(wanted))
        self.assertEqual(self.finish(us), str(sorted((int(number), 1) for number in wanted)))

    def test_sent_to_the_group(self):
        us = self.start()
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGINT:
            os.killpg(us.pid, number)
            self.take(us)
        self.assertEqual(self.finish(us), str([(2, 2), (15, 1)]))

    def test_two_sent_to_the_group_at_once(self):
        us = self.start()
        for number in signal.SIGINT, signal.SIGTERM:
            os.killpg(us.pid, number)
        self.take(us, 2)
        self.assertEqual(self.finish(us), str([(2, 1), (15, 1)]))

    def test_sent_to_a_group_that_it_left(self):
        """Like timeout(1) with a server that starts a session of its own."""
        us = self.start("import os; os.setsid()\n")
        os.killpg(us.pid, signal.SIGTERM)
        self.take(us)
        self.assertEqual(self.finish(us), str([(15, 1)]))

    def test_stopped_and_continued(self):
        us = self.start()
        os.kill(self.program, signal.SIGSTOP)
        with bounded("the command's stop"):
            pid, status = os.waitpid(us.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status), "a shell sees the job stopped")
        os.kill(us.pid, signal.SIGCONT)
        self.take(us)
        self.assertEqual(self.finish(us), str([(int(signal.SIGCONT), 1)]))


class Terminal(Recording):
    """The program on a terminal, as a job of a shell."""

    def read_until(self, text, seconds=300):
        end = time.monotonic() + seconds
        while text not in self.output:
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("%r never came in %r" % (text, self.output))
            try:
                self.output += os.read(self.terminal, 4096).decode(errors="replace").replace("\r", "")
            except OSError:
                raise AssertionError("%r never came in %r" % (text, self.output)) from None
        before, self.output = self.output.split(text, 1)
        return before

    def send(self, text):
        os.write(self.terminal, text.encode())

    def setUp(self):
        super().setUp()
        self.output = ""
        shell, self.terminal = pty.fork()
        if not shell:
            os.environ.update(PS1="PROMPT> ", HISTFILE="/dev/null", TERM="dumb")
            os.execvp("bash", ["bash", "--norc", "--noediting", "-i"])
        def end():
            os.kill(shell, signal.SIGKILL)
            os.close(self.terminal)
            os.waitpid(shell, 0)
        self.addCleanup(end)
        self.read_until("PROMPT> ")
        # The kernel flushes output after it has sent the signal of a Ctrl-C or Ctrl-Z, including the receiver's output.
        self.send("stty -echo noflsh\n")
        self.read_until("PROMPT> ")

    def start(self, program, *arguments):
        path = self.file("program.py", program)
        self.send("%s record --quiet -o %s -- %s %s %s\n" % (QUERYPROF, self.trace, PYTHON, path, " ".join(arguments)))

    def test_is_a_terminal(self):
        self.start("import os, sys; print([os.isatty(i) for i in range(3)], os.tcgetpgrp(0) == os.getpgrp())")
        self.assertEqual(self.read_until("PROMPT> "), "[True, True, True] True\n")

    def test_interrupt_once(self):
        self.start(COUNTER)
        self.read_until("pid ")
        program = int(self.read_until("\n"))
        self.send("\x03")
        self.read_until("got one\n")
        time.sleep(0.3)  # waits for a second one, which must not come
        os.kill(program, signal.SIGUSR2)
        self.assertEqual(self.read_until("PROMPT> "), "[(2, 1)]\n")

    def test_one_to_the_command_behind_an_interrupt(self):
        """The witness got the interrupt, too, and has handled it."""
        self.start(COUNTER)
        self.read_until("pid ")
        program = int(self.read_until("\n"))
        with open(f"/proc/{program}/stat") as stat:
            command = int(stat.read().rsplit(")", 1)[1].split()[1])

        def children():
            with open(f"/proc/{command}/task/{command}/children") as file:
                return file.read().split()

        before = children()
        self.send("\x03")
        self.read_until("got one\n")
        # Does not look at the witness's signals, because it has none before the kernel has sent them, either.
        wait_until(lambda: len(children()) == len(before) and children() != before, "another witness")
        os.kill(command, signal.SIGINT)
        self.read_until("got one\n")
        os.kill(program, signal.SIGUSR2)
        self.assertEqual(self.read_until("PROMPT> "), "[(2, 2)]\n")

    def test_interrupt_ends_it(self):
        self.start("import time\nprint('here', flush=True)\ntime.sleep(1000)")
        self.read_until("here")
        self.send("\x03")
        self.read_until("PROMPT> ")
        self.send("echo status $?\n")
        self.assertEqual(self.read_until("PROMPT> "), "status 130\n")

    def test_stop_and_foreground(self):
        self.start(COUNTER)
        self.read_until("pid ")
        program = int(self.read_until("\n"))
        self.send("\x1a")
        self.assertIn("Stopped", self.read_until("PROMPT> "))
        self.send("jobs\n")
        self.assertIn("Stopped", self.read_until("PROMPT> "))
        self.send("fg\n")
        self.read_until("record")
        self.read_until("got one\n")
        os.kill(program, signal.SIGUSR2)
        self.assertIn("[(%d, 1)]" % signal.SIGCONT, self.read_until("PROMPT> "))

    def test_program_that_does_not_stop(self):
        """A program may ignore Ctrl-Z. Then the shell does not return."""
        self.start("import signal\nsignal.signal(signal.SIGTSTP, signal.SIG_IGN)\n"
                   "print('here', flush=True)\nprint('got', input(), flush=True)\n")
        self.read_until("here")
        self.send("\x1a")
        self.send("a line\n")
        self.read_until("got a line")
        self.read_until("PROMPT> ")


class TerminalGone(Recording):
    """The kernel sends the hang-up only to the session's leader. Without the command, the program would be the
    leader."""

    def test_hang_up(self):
        path = self.file("program.py", """
import os, signal, sys, time
signal.signal(signal.SIGHUP, lambda number, frame: os._exit(5))
print('here', flush=True)
time.sleep(1000)
""")
        leader, terminal = pty.fork()
        if not leader:
            os.execv(QUERYPROF, self.arguments(PYTHON, path))
        output = b""
        while b"here\r\n" not in output:
            output += os.read(terminal, 4096)
        os.close(terminal)
        with bounded("the command's end"):
            status = os.waitpid(leader, 0)[1]
        self.assertEqual(os.waitstatus_to_exitcode(status), 5)


unittest.main()
