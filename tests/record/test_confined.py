#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that confine themselves by seccomp. Their output and their end are the same as alone, and missing data is
reported.

usage: test_confined.py QUERYPROF CONFINED OWN_CALLS_H [TEST]...; QUERYPROF_TEST_ALL=1: the whole matrix"""

import errno
import re

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

HOST = os.path.abspath(sys.argv.pop(1))
ALL = "QUERYPROF_TEST_ALL" in os.environ
EVERY = (*OPTIONS, "--setting", "log_queries_min_query_duration_ns=0")
FORBIDS = "the program's seccomp filter forbids %s of queryprof's system calls"
# The library makes these calls so often that an error shows.
SOME = ("clock_gettime", "futex", "getrusage", "openat", "process_vm_readv", "rt_sigprocmask", "rt_sigreturn", "timer_create",
        "timer_delete", "timer_settime")

UNSEEN = "it has a seccomp filter that queryprof did not see"
# Calls that a program with SQLite need not make, but the library makes.
UNUSUAL = ("clone", "clone3", "close_range", "connect", "getrusage", "getsockopt", "membarrier", "memfd_create", "pidfd_open", "ppoll",
           "process_vm_readv", "ptrace", "rt_sigpending", "rt_tgsigqueueinfo", "sched_getaffinity", "sendmsg", "socket",
           "timer_create", "timer_delete", "timer_settime", "uname", "unshare")
ANSWERS = {"kill": 0x80000000, errno.EPERM: 0x00050000 | errno.EPERM}
# In Python. The arguments are the answer and the calls. The call is made by machine instructions, so libc's function is
# not used.
CONFINE = """
import ctypes, mmap, os, struct, sys
def confine(is_bare=False):
    answer, calls = int(sys.argv[1]), [int(call) for call in sys.argv[2:]]
    code = [(0x20, 0, 0, 0)]
    for call in calls:
        code += [(0x15, 0, 1, call), (0x06, 0, 0, answer)]
    code += [(0x06, 0, 0, 0x7fff0000)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(text)))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    if is_bare: # mov eax, SYS_prctl; mov edi, 22; mov esi, 2; mov rdx, program; syscall; ret
        page = mmap.mmap(-1, 4096, prot=7)
        page.write(b"\\xb8" + struct.pack("I", 157) + b"\\xbf" + struct.pack("I", 22) + b"\\xbe" + struct.pack("I", 2) + b"\\x48\\xba"
                   + struct.pack("Q", ctypes.addressof(program)) + b"\\x0f\\x05\\xc3")
        assert ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))() == 0
    else:
        assert libc.prctl(22, 2, program) == 0
"""
QUERIES = """
import sqlite3
db = sqlite3.connect(':memory:')
print(db.execute("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100000) SELECT /* last */ sum(x) FROM c").fetchall(), flush=True)
raise SystemExit(5)
"""


def own_calls():
    with open(sys.argv.pop(1), encoding="utf-8") as header:
        text = header.read()
    return {name: losses for name, losses in re.findall(r"\bX\((\w+),[^,]+, (LOST_\w+)\)", text)}


CALLS = own_calls()


def numbers():
    """Asks the compiler, because Python has no table of these numbers."""
    names = sorted(CALLS)
    source = "#include <sys/syscall.h>\n" + "".join("own %s SYS_%s\n" % (name, name) for name in names)
    done = subprocess.run(["cc", "-E", "-P", "-"], input=source, capture_output=True, text=True, check=True)
    found = dict(re.findall(r"^own (\w+) (\d+)$", done.stdout, re.M))
    # Newer than some systems' headers.
    found.setdefault("pidfd_open", "434")
    found.setdefault("close_range", "436")
    return found


class Confined(Recording):
    def run_both(self, how, action, *numbers_of_calls, options=EVERY):
        self.trace = os.path.join(tempfile.mkdtemp(dir=self.folder), "app.trace")
        alone = subprocess.run([HOST, how, action, *numbers_of_calls], capture_output=True, text=True, timeout=300, check=False)
        if alone.returncode == 77:
            self.skipTest("no seccomp here")
        done = self.record("timeout", "-s", "KILL", "200", HOST, how, action, *numbers_of_calls, options=options)
        self.assertEqual(done.returncode, alone.returncode, self.seen)
        if alone.returncode < 0:
            # The filter kills the process at its own call. A thread that waits for another one makes this call earlier,
            # later, or not at all.
            shorter, longer = sorted((done.stdout, alone.stdout), key=len)
            self.assertTrue(longer.startswith(shorter), self.seen)
        else:
            self.assertEqual(done.stdout, alone.stdout, self.seen)
        return done

    def sampled(self, where):
        return self.rows("SELECT count(*) FROM trace_log JOIN query_log USING (query_id)"
                         " WHERE query LIKE '%/* ' || ? || ' */%' AND trace_type IN ('CPU', 'Real')", where)[0][0]

    def logged(self, where):
        return self.rows("SELECT count(*) FROM query_log WHERE query LIKE '%/* ' || ? || ' */%'", where)[0][0]

    def expect_true_sentence(self, done, name, is_alive):
        """The report names everything that is missing, and nothing else."""
        said = [line for line in done.stderr.splitlines() if FORBIDS % 1 in line]
        self.assertEqual(len(said), 1, self.seen)
        self.assertRegex(said[0], FORBIDS % 1 + ": .")
        if not is_alive:
            return
        self.assertEqual(self.logged("last"), 1, self.seen)
        is_silent = "timers no longer take samples" in said[0]
        self.assertEqual(is_silent, CALLS[name] == "LOST_TIMERS", self.seen)
        self.assertEqual(self.sampled("last") > 0, not is_silent, self.seen)
        self.assertEqual("threads whose first query comes later are not recorded" in said[0], CALLS[name] == "LOST_THREADS",
                         self.seen)
        self.assertEqual("threads whose first query comes later have no samples" in said[0], CALLS[name] == "LOST_NEW_TIMERS",
                         self.seen)
        if "in a thread" in done.stdout and not is_silent:
            self.assertEqual(self.sampled("in a thread") > 0, CALLS[name] not in ("LOST_NEW_TIMERS", "LOST_THREADS"),
                             self.seen)

    def test_matrix(self):
        known = numbers()
        # The store's own calls in a process without the store's thread, some of them with each answer.
        for name in sorted(known) if ALL else SOME:
            for action in ("kill", "trap", str(errno.EPERM), str(errno.ENOSYS)) if ALL else ("kill", str(errno.EPERM)):
                if name == "exit" and action not in ("kill", "trap"):
                    continue  # libc tries forever to end a thread
                with self.subTest(call=name, action=action):
                    done = self.run_both("tsync", action, known[name])
                    is_alive = done.stdout.endswith("end\n")
                    # If rt_sigreturn fails, the program ends, too.
                    if action in ("kill", "trap") or name == "rt_sigreturn":
                        self.expect_true_sentence(done, name, is_alive)
                    else:
                        self.assertNotIn("seccomp filter forbids", done.stderr, self.seen)
                        # Data that the store cannot write counts as lost.
                        if is_alive and CALLS[name] != "LOST_TIMERS" and name != "timer_create" and not self.sampled("after"):
                            self.assertRegex(done.stderr, r"\d+ (?:sample, row or span|samples, rows or spans) lost: ")

    def test_sandbox(self):
        for how in "list", "sigreturn":
            for action in "kill", "trap", "thread":
                with self.subTest(how=how, action=action):
                    done = self.run_both(how, action)
                    self.assertEqual(done.returncode, 5, self.seen)
                    self.assertRegex(done.stderr, FORBIDS % r"\d+" + ": use queryprof record to store later samples;"
                                     " timers no longer take samples; .*children that are forked later are not recorded")
                    self.assertEqual([self.logged(where) for where in ("before", "after", "in a thread", "in a child", "last")],
                                     [1, 1, 1, 0, 1], self.seen)
                    self.assertGreater(self.sampled("before"), 0, self.seen)
                    self.assertEqual(self.sampled("last"), 0, self.seen)

    def test_error_numbers_silence_nothing(self):
        done = self.run_both("list", str(errno.EPERM))
        self.assertNotIn("seccomp filter forbids", done.stderr, self.seen)
        self.assertEqual(self.logged("last"), 1, self.seen)

    def calls_of(self, *command):
        """The system calls that strace sees in a program."""
        log = os.path.join(self.folder, "strace")
        traced = ["strace", "-f", "-qq", "-o", log, *command]
        done = self.record(*traced, options=EVERY) if self.is_recorded else subprocess.run(traced, capture_output=True, text=True, check=False)
        if "ptrace" in done.stderr or not os.path.exists(log):
            self.skipTest("strace may not look: " + done.stderr)
        with open(log, encoding="utf-8") as lines:
            return set(re.findall(r"^\d+ +(\w+)\(", lines.read(), re.M))

    def test_list_is_whole(self):
        """A recorded program makes only its own calls and the calls in the list."""
        if not shutil.which("strace"):
            self.skipTest("no strace")
        for host in ([HOST, "refused", "kill"],
                     [PYTHON, "-c", "import sqlite3, subprocess\n"
                      "db = sqlite3.connect('a.db')\ndb.execute('CREATE TABLE IF NOT EXISTS t(x)')\n"
                      "db.executemany('INSERT INTO t VALUES (?)', [(i,) for i in range(4000)])\ndb.commit()\n"
                      "db.execute('SELECT * FROM t AS a JOIN t AS b USING (x) ORDER BY x DESC').fetchall()\n"
                      "subprocess.run(['true'])"]):
            with self.subTest(host=host[0]):
                self.addCleanup(os.chdir, os.getcwd())
                os.chdir(self.folder)
                self.is_recorded = False
                alone = self.calls_of(*host)
                self.is_recorded = True
                self.assertEqual(self.calls_of(*host) - alone - set(CALLS), set(), self.seen)

    def test_ways(self):
        known = numbers()
        for how in "prctl", "seccomp", "tsync":
            with self.subTest(how=how):
                done = self.run_both(how, "kill", known["getrusage"])
                self.assertIn(FORBIDS % 1, done.stderr, self.seen)
                self.assertGreater(self.sampled("last"), 0, self.seen)

    def test_refused(self):
        """A filter that the kernel refuses changes nothing."""
        done = self.run_both("refused", "kill", *numbers().values())
        self.assertEqual(done.returncode, 5, self.seen)
        for where in "before", "after", "in a thread", "in a child", "last":
            self.assertGreater(self.sampled(where), 0, where + self.seen)

    def run_python(self, script, *action_and_calls):
        """Runs a program under a filter that the library did not see. Returns how it was recorded."""
        known = numbers()
        self.trace = os.path.join(tempfile.mkdtemp(dir=self.folder), "app.trace")
        path = self.file("host.py", script)
        arguments = [path, str(ANSWERS[action_and_calls[0]]), *(known[name] for name in action_and_calls[1:])]
        alone = subprocess.run([PYTHON, *arguments], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(alone.returncode, 5, "alone\n" + alone.stdout + alone.stderr)
        done = self.record(PYTHON, *arguments, options=EVERY)
        self.assertEqual((done.returncode, done.stdout), (5, alone.stdout), self.seen)
        return done

    def test_filter_before_sqlite(self):
        """The library does not see a filter that is older than itself. It makes no call that the filter may punish by
        killing."""
        done = self.run_python(CONFINE + "confine()\n" + QUERIES, "kill", *UNUSUAL)
        self.assertRegex(done.stderr, "nothing was recorded: .*python3.*: " + UNSEEN)
        # The program does not load SQLite under this filter.
        done = self.run_python(CONFINE + "confine()\nimport decimal\nprint('end')\nraise SystemExit(5)", "kill", *UNUSUAL)
        self.assertRegex(done.stderr, UNSEEN)

    def test_filter_by_a_bare_call(self):
        """The filter is installed between loading SQLite and the first query, and not by libc's functions."""
        done = self.run_python("import sqlite3\n" + CONFINE + "confine(is_bare=True)\n" + QUERIES, "kill", *UNUSUAL)
        self.assertRegex(done.stderr, "samples missing, refused 1 time: " + UNSEEN)

    def test_filter_in_between(self):
        """The library evaluates a filter that libc's function installs before the first query."""
        known = numbers()
        done = self.run_both("early", "kill", *(known[name] for name in UNUSUAL if name not in ("clone", "clone3", "ppoll")))
        self.assertRegex(done.stderr, FORBIDS % (len(UNUSUAL) - 3) + ": use queryprof record to store later samples")
        self.assertEqual([self.logged(where) for where in ("before", "after", "in a thread", "last")], [1, 1, 1, 1], self.seen)

    def test_no_memfd_no_pidfd(self):
        """The command finds a process without a pidfd. It reports data that is not recorded for lack of memory. The
        library sees a killing filter before it is installed; then the process has its memory, but its children have
        none."""
        known = numbers()
        missing = ("children that are forked later are not recorded", "the kernel or a seccomp filter refuses it shared memory")
        for action, calls, logged, said in ((errno.ENOSYS, ("pidfd_open",), [1] * 5, ()), ("kill", ("pidfd_open",), [1] * 5, ()),
                                            (errno.ENOSYS, ("memfd_create",), [0] * 5, missing[1:]),
                                            ("kill", ("memfd_create",), [1, 1, 1, 0, 1], missing[:1])):
            with self.subTest(action=action, calls=calls):
                done = self.run_both("early", str(action), *(known[call] for call in calls))
                self.assertEqual([self.logged(where) for where in ("before", "after", "in a thread", "in a child", "last")], logged,
                                 self.seen)
                self.assertEqual(tuple(line for line in missing if line in done.stderr), said, self.seen)

    def test_filter_around_the_command(self):
        """As in a container, the command runs under the filter, too."""
        inner = self.arguments(PYTHON, "-c", "import sys\n" + QUERIES, options=EVERY)
        path = self.file("around.py", CONFINE + "confine()\nos.execv(%r, %r)\n" % (inner[0], inner))
        done = subprocess.run([PYTHON, path, str(ANSWERS[errno.EPERM]), numbers()["ptrace"]], capture_output=True, text=True,
                              timeout=300, check=False)
        self.seen = done.stdout + done.stderr
        self.assertEqual(done.returncode, 5, self.seen)
        self.assertGreater(self.sampled("last"), 0, self.seen)
        self.assertNotIn("seccomp filter forbids", done.stderr)

    def test_timers_refused(self):
        """The report names the refuser. The kernel itself does not refuse with EPERM."""
        for answer, who in (errno.EPERM, "a seccomp filter refused a timer: Operation not permitted"), \
                           (errno.ENOSYS, "the system or a seccomp filter refused a timer: Function not implemented"), \
                           (errno.EAGAIN, "the system refused a timer: Resource temporarily unavailable"):
            with self.subTest(answer=answer):
                done = self.run_both("tsync", str(answer), numbers()["timer_create"])
                self.assertRegex(done.stderr, r"samples missing, refused \d+ times?: " + who)

    def test_system_without_descriptors(self):
        """Neither a file can be opened nor a connection be made. The command has its descriptors, so it stores the
        ring."""
        for answer in errno.EMFILE, errno.ENFILE, errno.ENOMEM:
            with self.subTest(answer=errno.errorcode[answer]):
                done = self.run_both("tsync", str(answer), numbers()["openat"], numbers()["socket"])
                self.assertEqual([self.logged(where) for where in ("before", "after", "in a thread", "last")], [1, 1, 1, 1], self.seen)
                self.assertNotIn("lost", done.stderr)
                self.assertIn("samples missing, refused 1 time: a forked child could not hand its memory over\n", done.stderr)

    def test_child_without_getpid(self):
        """The child is a process of its own in the file."""
        self.run_both("tsync", "kill", numbers()["getpid"])
        self.assertEqual(self.rows("SELECT count(DISTINCT process_id) FROM trace_log"), [(2,)], self.seen)
        self.assertEqual(self.logged("in a child"), 1, self.seen)

    def test_strict(self):
        done = self.run_both("strict", "kill")
        self.assertEqual(done.stdout.splitlines()[-1], "strict", self.seen)
        self.assertGreater(self.sampled("before"), 0, self.seen)


unittest.main()
