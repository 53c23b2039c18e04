#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each process hands its ring over to the command, in any namespace or root, and in spite of refused system calls.

usage: test_handover.py QUERYPROF"""

import ctypes
import socket
import struct

import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

EVERY_RUN = ("--cpu", "0", "--real", "60s", "--off-cpu", "0", "--setting", "log_queries_min_query_duration_ns=0")
RUNS = 200
CHILDREN, DESCRIPTORS = 80, 64
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 17, 0x4206, 0x4207, 0x40000000

# The program and a forked child run queries. Each prints its number of threads, which shows whether it has a flusher.
WORK = """
import os, sqlite3, sys
def work(who):
    db = sqlite3.connect(':memory:')
    for i in range(%d):
        db.execute('SELECT /* %%s %%d */ 1' %% (who, i)).fetchall()
    print(who, len(os.listdir('/proc/self/task')), flush=True)
work('parent')
CONFINE
if os.fork() == 0:
    work('child')
    os._exit(0)
os.wait()
""" % RUNS

# After this, these calls fail with ENOSYS.
CONFINE = """
import ctypes, struct
code = [(0x20, 0, 0, 0)]
for call in map(int, sys.argv[1:]):
    code += [(0x15, 0, 1, call), (0x06, 0, 0, 0x00050000 | 38)]
code += [(0x06, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *one) for one in code))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(code), ctypes.addressof(text)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
"""

# The listening process: the command, or its collector.
LISTENER = """
import os, socket, struct
def listener():
    to = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    to.connect('\\0queryprof-' + os.environ['QUERYPROF_RECORD_KEY'][:16])
    return struct.unpack('iii', to.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
"""

# Stops the process, and waits until all of its threads have stopped.
STOP = LISTENER + """
import resource, signal
def states(pid):
    for task in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/stat' % (pid, task)) as file:
            yield file.read().rpartition(')')[2].split()[0]
command = listener()
os.kill(command, signal.SIGSTOP)
while set(states(command)) != {'T'}:
    pass
"""

# Runs alone until the collector has taken the command's place.
DAEMON = LISTENER + """
import time
if os.fork():
    os._exit(0)
first = listener()
while listener() == first:
    time.sleep(0.01)
"""

# More children than descriptors in flight to the command that a user without privileges may have (two each).
FORKS = """
input()
for i in range(%d):
    if os.fork() == 0:
        db = sqlite3.connect(':memory:')
        db.execute('SELECT /* child */ 1').fetchall()
        os._exit(0)
    os.wait()
print('forked', flush=True)
input()
""" % CHILDREN

# The program changes its root or namespace between its queries and the queries of a forked child.
GOES = """
import ctypes, os, sqlite3, sys
def work(who):
    db = sqlite3.connect(':memory:')
    for i in range(%d):
        db.execute('SELECT /* %%s %%d */ 1' %% (who, i)).fetchall()
work('before')
if 'network' in sys.argv:
    assert ctypes.CDLL(None).unshare(0x40000000) == 0
if 'root' in sys.argv:
    os.chroot(sys.argv[1])
    os.chdir('/')
work('after')
if os.fork() == 0:
    work('child')
    os._exit(0)
os.wait()
""" % RUNS

# Messages that a process of the recording, which knows the key, could send by mistake or on purpose.
HOSTILE = r"""
import array, os, socket, struct, sys
key, base = os.environ['QUERYPROF_RECORD_KEY'][:32], os.environ['QUERYPROF_RECORD_KEY'][32:]
memory = os.memfd_create('other')
os.ftruncate(memory, 1 << 20)
zero, folder = os.open('/dev/zero', os.O_RDWR), os.open('/', os.O_PATH)
try:
    self = os.pidfd_open(os.getpid())
except OSError:  # before Linux 5.3
    self = os.open('/proc/self', os.O_RDONLY)
def message(sent=2**63, key=key):
    return key.encode() + struct.pack('Q', sent)
wrong = 'f' * 32
messages = [(b'', []), (b'x', []), (message()[:-1], []), (message() + b'x', []), (message(key=wrong), [self, memory]),
            (message(key=wrong), [memory]), (message(key=wrong), []), (message(), []), (message(0), []),
            (message(2**64 - 1), []), (message(0), [memory]), (message(2**64 - 1), [memory]), (message(0), [memory, self]),
            (message(), [self]), (message(), [memory]), (message(), [zero]), (message(), [folder]), (message(), [self, zero]), (message(), [zero, memory]),
            (message(), [self, folder]), (message(), [folder, folder]), (message(), [self, memory]), (message(), [memory, self]),
            (message(), [self] * 3), (message(), [self] * 200)]
kept, sent = [], 0
for address in '\0queryprof-' + key[:16], '%s/queryprof-%s/%s' % (base, key[:16], key[16:]):
    for bytes, descriptors in messages:
        to = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        to.connect(address)
        to.sendmsg([bytes], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', descriptors))] if descriptors else [])
        sent += 1
    # Says nothing.
    for i in range(20):
        kept.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        kept[-1].connect(address)
print(sent, len(messages), flush=True)
"""


# After the command was killed, another user binds its abstract socket. A child would hand its ring over there.
IMPOSTOR = r"""
import os, signal, socket, sqlite3, sys, time
address = '\0queryprof-' + os.environ['QUERYPROF_RECORD_KEY'][:16]
db = sqlite3.connect(':memory:')
db.execute('SELECT 1').fetchall()
os.kill(int(sys.argv[1]), signal.SIGKILL)
ready, is_ready = os.pipe()
if os.fork() == 0:
    os.setresuid(65534, 65534, 65534)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    while True:
        try:
            listening.bind(address)
            break
        except OSError:  # the command has it still
            time.sleep(0.01)
    listening.listen()
    os.write(is_ready, b'x')
    came, _ = listening.accept()
    text, descriptors, _, _ = socket.recv_fds(came, 100, 2)
    print(len(text), len(descriptors), flush=True)
    os._exit(0)
os.read(ready, 1)
if os.fork() == 0:
    db.execute('SELECT 2').fetchall()
    os._exit(0)
os.wait()
os.wait()
"""


def numbers(*names):
    """Asks the compiler, because Python has no table of these numbers."""
    source = "#include <sys/syscall.h>\n" + "".join("number SYS_%s\n" % name for name in names)
    done = subprocess.run(["cc", "-E", "-P", "-"], input=source, capture_output=True, text=True, check=True)
    found = re.findall(r"^number (\w+)$", done.stdout, re.M)
    return [number if number.isdigit() else "434" for number in found]  # pidfd_open: newer than some headers


class Handover(Recording):
    def namespace(self, *options):
        """Words that start the command in namespaces of its own."""
        command = ["unshare", *(() if os.getuid() == 0 else ("-r",)), *options]
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no namespaces here")
        return command

    def temporary_names(self):
        return sorted(name for name in os.listdir(self.folder) if name.startswith("queryprof"))

    def expect_all(self, *program, script=WORK.replace("CONFINE", ""), arguments=(), around=(), **named):
        """All runs are stored, and neither process has a thread of the library."""
        self.trace = os.path.join(tempfile.mkdtemp(dir=self.folder), "app.trace")
        done = self.record(*program, PYTHON, "-c", script, *arguments, options=EVERY_RUN, around=around,
                           env={**os.environ, "TMPDIR": self.folder}, **named)
        self.assertEqual((done.returncode, done.stdout), (0, "parent 1\nchild 1\n"), self.seen)
        self.assertNotRegex(done.stderr, "lost|missing", self.seen)
        for who in "parent", "child":
            self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* %s%%'" % who), [(RUNS,)],
                             who + self.seen)
        self.assertEqual(self.temporary_names(), [], self.seen)

    def test_network_namespace(self):
        self.expect_all(*self.namespace("-n"))

    @unittest.skipIf(os.getuid(), "only root can become another user")
    def test_network_namespace_of_another_user(self):
        self.expect_all(*self.namespace("-n"), "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")

    def test_new_root_and_network(self):
        """The whole file system is at another place."""
        root = os.path.join(self.folder, "root")
        os.mkdir(root)
        self.expect_all(*self.namespace("-n", "-m"), "sh", "-c", 'mount --rbind / "$0" && exec chroot "$@"', root, root)

    def test_goes_elsewhere(self):
        """The process keeps its memory. A child hands its own over, unless it sees neither socket; the command reports
        that."""
        empty = os.path.join(self.folder, "empty")
        os.mkdir(empty)
        for places in ("root",), ("network",), ("root", "network"):
            with self.subTest(places=places):
                self.trace = os.path.join(self.folder, "-".join(places))
                done = self.record(*self.namespace("-m"), PYTHON, "-c", GOES, empty, *places, options=EVERY_RUN)
                self.assertEqual(done.returncode, 0, self.seen)
                child = 0 if len(places) == 2 else RUNS
                for who, runs in ("before", RUNS), ("after", RUNS), ("child", child):
                    self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* %s%%'" % who), [(runs,)],
                                     who + self.seen)
                refused = "samples missing, refused 1 time: a forked child could not hand its memory over\n"
                self.assertEqual(refused in done.stderr, child == 0, self.seen)

    def test_process_namespace(self):
        self.expect_all(*self.namespace("-n", "-p", "-f"))

    def test_long_folder(self):
        """A socket's name is limited, so the socket is in /tmp."""
        long = os.path.join(self.folder, "x" * 100)
        os.mkdir(long)
        script = WORK.replace("CONFINE", "") + "print(os.environ['QUERYPROF_RECORD_KEY'])"
        done = self.record(*self.namespace("-n"), PYTHON, "-c", script, options=EVERY_RUN, env={**os.environ, "TMPDIR": long})
        self.assertEqual(done.stdout.splitlines()[:-1], ["parent 1", "child 1"], self.seen)
        key = done.stdout.splitlines()[-1]
        self.assertEqual(key[32:], "/tmp", self.seen)
        self.assertFalse(os.path.exists("/tmp/queryprof-" + key[:16]), self.seen)
        self.assertEqual(os.listdir(long), [])

    def test_no_pidfd(self):
        """The command finds the process by its number."""
        self.expect_all(script=WORK.replace("CONFINE", CONFINE), arguments=numbers("pidfd_open"))

    def test_no_pidfd_in_time_namespace(self):
        """The process's clock is behind the command's, so it seems to have sent its message before it began."""
        with open("/proc/uptime", encoding="utf-8") as file:
            half = int(float(file.read().split()[0])) // 2
        script = WORK.replace("CONFINE", CONFINE).replace("    work('child')", "    import time\n    time.sleep(0.3)\n    work('child')")
        self.expect_all(*self.namespace("-T", "-f", "--boottime", str(-half)), script=script, arguments=numbers("pidfd_open"))

    def test_no_memory(self):
        """A process that cannot allocate its memory continues, and the command reports the reason."""
        refused = "samples missing, refused 1 time: %s\n"
        limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        for script, runs, why in (
                (limit + WORK.replace("CONFINE", ""), 0, "its ring cannot be handed over to `queryprof record`: the limit of file sizes "
                 "(ulimit -f) is smaller than the shared memory"),
                (WORK.replace("CONFINE", limit), RUNS, "a forked child could not hand its memory over"),
                (WORK.replace("CONFINE", CONFINE), RUNS, "a forked child could not hand its memory over")):
            with self.subTest(why=why, runs=runs):
                self.trace = os.path.join(tempfile.mkdtemp(dir=self.folder), "app.trace")
                done = self.record(PYTHON, "-c", script, *numbers("memfd_create"), options=EVERY_RUN)
                self.assertEqual((done.returncode, done.stdout), (0, "parent 1\nchild 1\n"), self.seen)
                self.assertIn(refused % why, done.stderr)
                for who, expected in ("parent", runs), ("child", 0):
                    self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* %s%%'" % who), [(expected,)])

    def test_stopped_command(self):
        """The command is stopped from before a process begins until after its end. All runs are stored when the command
        continues."""
        for before in "", DAEMON:
            for calls in (), ("pidfd_open",):
                with self.subTest(is_daemon=bool(before), calls=calls):
                    self.trace = os.path.join(tempfile.mkdtemp(dir=self.folder), "app.trace")
                    script = WORK.replace("CONFINE", CONFINE + before + STOP) + "os.kill(command, signal.SIGCONT)\n"
                    process = subprocess.Popen(self.arguments(PYTHON, "-c", script, *numbers(*calls), options=EVERY_RUN),
                                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    self.seen = "".join(process.communicate(timeout=300))
                    self.assertEqual(process.returncode, 0, self.seen)
                    self.assertTrue(self.seen.startswith("parent 1\nchild 1\n"), self.seen)
                    self.assertNotIn("missing", self.seen)
                    wait_until(lambda: self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* child%'") == [(RUNS,)],
                               "the child's queries")

    @unittest.skipIf(os.getuid(), "only root can become another user")
    def test_storing_command(self):
        """The command's storing thread is held as by a hanging disk. Its other thread accepts incoming messages."""
        limited = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (%d, %d))\n" % (DESCRIPTORS, DESCRIPTORS)
        script = limited + WORK.partition("CONFINE")[0] + FORKS
        process = subprocess.Popen(self.arguments("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", PYTHON,
                                                  "-c", script, options=EVERY_RUN),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.seen = read_line(process.stdout, "the parent's line")
        # The command starts its threads after the program.
        held = wait_until(lambda: self.all_but_listener(process.pid), "the command's three threads")
        ptrace = ctypes.CDLL(None).ptrace
        for thread in held:
            self.assertEqual(ptrace(PTRACE_SEIZE, thread, None, None), 0)
            self.assertEqual(ptrace(PTRACE_INTERRUPT, thread, None, None), 0)
            os.waitpid(thread, WALL)
        process.stdin.write("\n")
        process.stdin.flush()
        line = read_line(process.stdout, "the children's end")
        for thread in held:
            self.assertEqual(ptrace(PTRACE_DETACH, thread, None, None), 0)
        _, said = process.communicate("\n", timeout=300)
        self.seen += line + said
        self.assertEqual((process.returncode, line), (0, "forked\n"), self.seen)
        self.assertNotIn("missing", said)
        self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query = 'SELECT /* child */ 1'"), [(CHILDREN,)], self.seen)

    @staticmethod
    def all_but_listener(process):
        names = {}
        for thread in os.listdir("/proc/%d/task" % process):
            with open("/proc/%d/task/%s/comm" % (process, thread), encoding="utf-8") as file:
                names[int(thread)] = file.read()
        held = [thread for thread, name in names.items() if name != "listener\n"]
        return held if (len(names), len(held)) == (3, 2) else None

    def test_strict_memory(self):
        """Memory is never overcommitted, as the processes and the command see it."""
        mode = self.file("mode", "2\n")
        self.expect_all(around=[*self.namespace("-m"), "sh", "-c", 'mount --bind "$0" /proc/sys/vm/overcommit_memory && exec "$@"',
                                mode])

    def test_hostile_messages(self):
        """Hostile messages have no effect on others."""
        script = WORK.replace("CONFINE", "") + "print('hostile')\n" + HOSTILE
        done = self.record(PYTHON, "-c", script, options=EVERY_RUN, env={**os.environ, "TMPDIR": self.folder})
        self.assertEqual(done.returncode, 0, self.seen)
        sent, count = done.stdout.splitlines()[-1].split()
        self.assertEqual(int(sent), 2 * int(count), self.seen)
        done = self.record("sh", "-c", '"$0" -c "$1" && "$0" -c "$2"', PYTHON, HOSTILE, WORK.replace("CONFINE", ""),
                           options=(*EVERY_RUN, "--append"), env={**os.environ, "TMPDIR": self.folder})
        self.assertEqual(done.returncode, 0, self.seen)
        for who in "parent", "child":
            self.assertEqual(self.rows("SELECT count(*) FROM query_log WHERE query LIKE 'SELECT /* %s%%'" % who), [(2 * RUNS,)],
                             who + self.seen)
        self.assertEqual(self.temporary_names(), [], self.seen)

    @unittest.skipIf(os.getuid(), "only root can become another user")
    def test_impostor(self):
        """No process hands its memory over to another user."""
        process = subprocess.Popen(self.arguments("sh", "-c", '"$@" $PPID & wait', "sh", PYTHON, "-c", IMPOSTOR,
                                                  options=EVERY_RUN), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   env={**os.environ, "TMPDIR": self.folder})
        with bounded("the end of the impostor"):
            self.assertEqual(process.stdout.read(), "0 0\n")
        self.assertEqual(process.wait(300), -signal.SIGKILL)

    def test_nothing_is_left(self):
        """No files remain if the program does not begin, or if another of its processes continues."""
        env = {**os.environ, "TMPDIR": self.folder}
        self.assertEqual(self.record("./no-such-program", env=env).returncode, 127, self.seen)
        self.assertEqual(self.temporary_names(), [], self.seen)
        self.record("sh", "-c", "sleep 300 </dev/null >/dev/null 2>&1 & echo $!", env=env)
        self.assertEqual(len(self.temporary_names()), 1, self.seen)
        os.kill(int(self.seen.split("\n")[2]), signal.SIGKILL)
        wait_until(lambda: self.temporary_names() == [], "the end of the collector")


if __name__ == "__main__":
    unittest.main(verbosity=2)
