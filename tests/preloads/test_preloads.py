#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts with a preload of another tool: output, exit status and descriptors are the same as with that preload alone, and the
trace file and its earlier recordings are whole.

usage: test_preloads.py QUERYPROF LIBRARY HOST PRELOAD NODE NAME [all]

NAME: a name in PRELOADS or WRAPPERS. Without `all` only the host in C runs, otherwise also interpreters."""

import contextlib
import glob
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import hangs

QUERYPROF, LIBRARY, HOST, OWN, NODE = (os.path.abspath(path) for path in sys.argv[1:6])
NAME = sys.argv[6]
SKIPPED = 77
TIMEOUT = int(os.environ.get("QUERYPROF_TEST_TIMEOUT", "120"))
MARK = "<preload>"
BEGIN = "/preloads/begin"
RUNS = 8

QUERY = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000) SELECT sum(x) FROM c"

PYTHON = """
import os, sqlite3, sys, threading
print("begins", flush=True)
try:
    os.open("%(begin)s", os.O_RDONLY)
except OSError:
    pass
def run(place=None):
    db = sqlite3.connect(":memory:", check_same_thread=False)
    if len(sys.argv) > 1:
        db.enable_load_extension(True)
        db.load_extension(sys.argv[1])
    sums = [db.execute("%(query)s").fetchone()[0] for _ in range(%(runs)d)]
    db.close()
    if place is not None:
        found[place] = sum(sums)
    return sum(sums)
print("first", run(), flush=True)
def fork():
    child = os.fork()
    if not child:
        if "PRELOADS_CHILD" in os.environ:
            del sys.argv[1:]
        print("child", run())
        sys.stdout.flush()
        os._exit(4)
    print("child's status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
fork()
found = {}
threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
    # Its last free() comes after that, and libmemusage aborts if its own destructor was first: 1 in 16 alone.
    while os.path.exists("/proc/self/task/%d" % thread.native_id):
        os.sched_yield()  # without a clock, which may be faked
print(sorted(found.items()))
folder = os.open("/proc/self/fd", os.O_RDONLY)
print("descriptors", sorted(int(name) for name in os.listdir(folder) if int(name) != folder))
sys.exit(3)
"""

RUBY = """
require 'sqlite3'
$stdout.sync = true
puts "begins"
begin
  File.open("%(begin)s")
rescue SystemCallError
end
def run(library)
  db = SQLite3::Database.new(':memory:')
  if library
    db.enable_load_extension(true)
    db.load_extension(library)
  end
  sum = 0
  %(runs)d.times { sum += db.execute("%(query)s")[0][0] }
  db.close
  sum
end
library = ARGV[0]
puts "first #{run(library)}"
child = fork { puts "child #{run(ENV['PRELOADS_CHILD'] ? nil : library)}"; exit!(4) }
Process.wait(child)
puts "child's status #{$?.exitstatus}"
puts (1..2).map { Thread.new { run(library) } }.map(&:value).inspect
puts "descriptors #{Dir.children('/proc/self/fd').select { |n| File.exist?("/proc/self/fd/#{n}") }.map(&:to_i).sort.inspect}"
exit 3
"""

PHP = """
echo "begins\\n";
@fopen("%(begin)s", "r");
for ($i = 0; $i < 2; $i++) {
    $db = new SQLite3(':memory:');
    if ($argc > 1)
        $db->loadExtension(basename($argv[1]));
    $sum = 0;
    for ($run = 0; $run < %(runs)d; $run++)
        $sum += $db->querySingle("%(query)s");
    echo "sum $sum\\n";
    $db->close();
}
$open = [];
for ($i = 0; $i < 100; $i++)
    if (@readlink("/proc/self/fd/$i") !== false)
        $open[] = $i;
echo "descriptors ", implode(" ", $open), "\\n";
exit(3);
"""

JAVASCRIPT = """
const fs = require('fs'), { DatabaseSync } = require('node:sqlite');
console.log('begins');
try { fs.openSync('%(begin)s'); } catch {}
for (let i = 0; i < 2; i++) {
  const db = new DatabaseSync(':memory:', { allowExtension: true });
  if (process.argv[2]) db.loadExtension(process.argv[2]);
  let sum = 0;
  const stmt = db.prepare('%(query)s AS s');
  for (let run = 0; run < %(runs)d; run++) sum += stmt.get().s;
  console.log('sum', sum);
  db.close();
}
const open = [];
for (let i = 0; i < 100; i++) try { fs.readlinkSync('/proc/self/fd/' + i); open.push(i); } catch {}
console.log('descriptors', open.join(' '));
process.exitCode = 3;
"""

# By name: the program, and the command with the program's file.
INTERPRETERS = {
    "python": (PYTHON, ["/usr/bin/python3"], ["import sqlite3"], "-c"),
    "ruby": (RUBY, ["ruby"], ["require 'sqlite3'"], "-e"),
    "php": (PHP, ["php", "-d", "sqlite3.extension_dir=" + os.path.dirname(LIBRARY)], ["new SQLite3(':memory:');"], "-r"),
    "node": (JAVASCRIPT, [NODE if os.path.exists(NODE) else "node", "--no-warnings"], ["require('node:sqlite')"], "-e"),
}


def of_debian(*patterns):
    def find():
        return next((path for pattern in patterns for path in sorted(glob.glob(pattern))), None)
    return find


def own(action, functions, each=1):
    return (lambda: OWN, {"PRELOAD_ACTION": action, "PRELOAD_IN": functions, "PRELOAD_EACH": str(each)}, action)


FAKETIME, FAKETIME_MT = (of_debian("/usr/lib/*/faketime/libfaketime%s.so.1" % kind) for kind in ("", "MT"))

# The file, the variables, and special cases. "noisy": its output differs between runs.
PRELOADS = {
    "heaptrack": (of_debian("/usr/lib/heaptrack/libheaptrack_preload.so", "/usr/lib/*/heaptrack/libheaptrack_preload.so"),
                  {"DUMP_HEAPTRACK_OUTPUT": "{folder}/heaptrack.$$"}, "noisy"),
    "fakeroot_sysv": (of_debian("/usr/lib/*/libfakeroot/libfakeroot-sysv.so"), {}, "faked-sysv"),
    "fakeroot_tcp": (of_debian("/usr/lib/*/libfakeroot/libfakeroot-tcp.so"), {}, "faked-tcp"),
    "faketime_past": (FAKETIME, {"FAKETIME": "-10d"}, ""),
    "faketime_stands": (FAKETIME, {"FAKETIME": "2020-01-01 00:00:00"}, ""),
    "faketime_fast": (FAKETIME, {"FAKETIME": "+1d x10"}, ""),
    "faketime_steps": (FAKETIME, {"FAKETIME": "+0 i2.0"}, ""),
    "faketimemt_past": (FAKETIME_MT, {"FAKETIME": "-10d"}, ""),
    "faketimemt_fast": (FAKETIME_MT, {"FAKETIME": "+1d x10"}, ""),
    "jemalloc": (of_debian("/usr/lib/*/libjemalloc.so.2"), {}, ""),
    "tcmalloc": (of_debian("/usr/lib/*/libtcmalloc_minimal.so.4"), {}, ""),
    "mimalloc": (of_debian("/usr/lib/*/libmimalloc.so.2*"), {}, ""),
    "memusage": (of_debian("/usr/lib/*/libmemusage.so", "/lib/*/libmemusage.so"), {}, "noisy"),
    "pcprofile": (of_debian("/usr/lib/*/libpcprofile.so", "/lib/*/libpcprofile.so"), {}, ""),
    "eatmydata": (of_debian("/usr/lib/*/libeatmydata.so.1", "/usr/lib/*/libeatmydata.so"), {}, ""),
    "own_write": own("write", "malloc fstat open read clock_gettime pthread_mutex_lock", 61),
    "own_lock": own("lock", "malloc fstat open read clock_gettime"),
    "own_lock_clock": own("lock", "clock_gettime"),
    "own_lock_mutex": own("lock", "pthread_mutex_lock"),
    "own_fork": own("fork", "fstat open read clock_gettime pthread_mutex_lock", 2503),
    "own_fork_malloc": own("fork", "malloc", 997),
    "own_exit_malloc": own("exit", "malloc", 50),
    "own_exit_files": own("exit", "fstat open read", 3),
    "own_exit_clock": own("exit", "clock_gettime", 5),
    "own_thread": own("thread", ""),
    "own_exit_mutex": own("exit", "pthread_mutex_lock", 60),
}

# Commands that preload a library themselves.
WRAPPERS = {
    "wrapper_faketime": ["faketime", "2020-01-01 00:00:00"],
    "wrapper_heaptrack": ["heaptrack"],
    "wrapper_fakeroot_sysv": ["fakeroot-sysv", "--"],
    "wrapper_fakeroot_tcp": ["fakeroot-tcp", "--"],
}


class Done:
    def __init__(self, status, out, err):
        self.status, self.err = status, err.replace(MARK, "")
        # A file's name contains the process's number.
        self.out = re.sub(r"(heaptrack\.\S+)\.\d+\.zst", r"\1.zst", out.replace(MARK, ""))

    def __str__(self):
        return "status %d\n--- output\n%s--- errors\n%s" % (self.status, self.out, self.err)


def print_stacks(session):
    """Only the stacks show whose lock a hung thread waits for, and the next run may not hang."""
    if not shutil.which("gdb") or not shutil.which("pgrep"):
        print("no stacks: gdb or pgrep is not installed")
        return
    pids = subprocess.run(["pgrep", "-s", str(session)], capture_output=True, text=True, check=False).stdout.split()
    for pid in pids:
        with contextlib.suppress(subprocess.TimeoutExpired):
            shown = subprocess.run(["gdb", "--batch", "-p", pid, "-ex", "thread apply all backtrace 16"], timeout=60,
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
            print("process %s\n%s%s" % (pid, shown.stdout, "" if shown.returncode == 0 else shown.stderr), flush=True)


def run(command, environment):
    """Returns None if the command hangs, and prints its threads' stacks. Processes that it has started are ended with
    it."""
    sweep()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", env=environment, cwd=environment["TMPDIR"], start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=TIMEOUT)
            return Done(process.returncode, out, err)
        except subprocess.TimeoutExpired:
            print_stacks(process.pid)
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)


@contextlib.contextmanager
def faked(name):
    """The daemon that a fakeroot uses."""
    if not name.startswith("faked"):
        yield {}
        return
    if not shutil.which(name):
        yield None
        return
    key, pid = subprocess.run([name], capture_output=True, text=True, check=True).stdout.strip().split(":")
    try:
        yield {"FAKEROOTKEY": key}
    finally:
        os.kill(int(pid), 15)


def sweep():
    """libfaketime leaves these files if a process ends by _exit() or a signal. A new process with the same number keeps
    two fewer descriptors, and its clock does not advance."""
    for path in glob.glob("/dev/shm/sem.faketime_sem_*") + glob.glob("/dev/shm/faketime_shm_*"):
        if not os.path.exists("/proc/" + path.rpartition("_")[2]):
            with contextlib.suppress(OSError):
                os.unlink(path)


def preloaded(path, place, given, command):
    """The command with this preload and the environment's. Only the program itself gets it."""
    preloads = '"$0${LD_PRELOAD:+:$LD_PRELOAD}"' if place == "before" else '"${LD_PRELOAD:+$LD_PRELOAD:}$0"'
    return ["env", *given, "/bin/sh", "-c", 'LD_PRELOAD=%s; export LD_PRELOAD; exec "$@"' % preloads, path, *command]


def rows(trace, sql, *values):
    db = sqlite3.connect(trace)
    try:
        return db.execute(sql, values).fetchall()
    finally:
        db.close()


EARLIER = ("SELECT count(*), sum(length(query)) FROM query_log WHERE query_id IN (SELECT value FROM json_each(?))",
           "SELECT count(*), sum(weight) FROM trace_log WHERE query_id IN (SELECT value FROM json_each(?))")


class Matrix:
    def __init__(self, folder):
        self.folder, self.faults, self.runs, self.skipped = folder, [], 0, []
        self.environment = dict(os.environ, TMPDIR=folder, HOME=folder, LC_ALL="C.UTF-8", TZ="UTC")
        self.environment.pop("LD_PRELOAD", None)
        # A forked child hangs in the destructor and in the dlopen() of heaptrack if heaptrack's thread had its lock at
        # the fork: it ends by _exit(), and does not load the extension again.
        if "heaptrack" in NAME:
            self.environment["PRELOADS_CHILD"] = "_exit"
        self.base = os.path.join(folder, "base.trace")
        # Also runs without a sample, which all may be.
        subprocess.run([QUERYPROF, "record", "--quiet", "--no-symbols", "--setting", "log_queries_min_query_duration_ns=0",
                        "-o", self.base, "--", HOST], check=False, capture_output=True, env=self.environment)
        with contextlib.closing(sqlite3.connect(self.base)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.queries = rows(self.base, "SELECT json_group_array(query_id) FROM query_log")[0][0]
        self.earlier = [rows(self.base, sql, self.queries) for sql in EARLIER]
        assert self.earlier[0][0][0] > 0, self.earlier

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def hosts(self, with_interpreters):
        yield "c", [HOST]
        if not with_interpreters:
            return
        for name, (program, command, probe, flag) in INTERPRETERS.items():
            try:
                ask = subprocess.run([*command, flag, *probe], capture_output=True, text=True, check=False)
                reason = ask.returncode and (ask.stderr or ask.stdout).strip().splitlines()[-1]
            except FileNotFoundError as error:
                reason = str(error)
            if reason:
                self.skipped.append("%s is not here: %s" % (name, reason))
                continue
            if name == "php":
                program = "<?php" + program
            values = {"begin": BEGIN, "query": QUERY, "runs": RUNS}
            for key, value in values.items():
                program = program.replace("%%(%s)s" % key, str(value)).replace("%%(%s)d" % key, str(value))
            yield name, [*command, self.file("program." + ("js" if name == "node" else name), program)]

    def fault(self, what, *seen):
        self.faults.append("%s\n%s" % (what, "\n".join(map(str, seen))))
        print("FAULT: " + self.faults[-1], flush=True)

    def expect_trace(self, what, trace, done, has_new):
        try:
            whole = rows(trace, "PRAGMA integrity_check")
            if whole != [("ok",)]:
                self.fault(what + ": the trace file is damaged: %s" % whole[:3], done)
            earlier = [rows(trace, sql, self.queries) for sql in EARLIER]
            if earlier != self.earlier:
                self.fault(what + ": of the earlier recording there is %s, there was %s" % (earlier, self.earlier), done)
            new = rows(trace, "SELECT count(*) FROM query_log WHERE query_id NOT IN (SELECT value FROM json_each(?))",
                       self.queries)[0][0]
            if has_new and not new:
                self.fault(what + ": nothing was recorded", done)
        except sqlite3.Error as error:
            self.fault(what + ": the trace file cannot be read: %s" % error, done)
        with open(trace, "rb") as file:
            if MARK.encode() in file.read():
                self.fault(what + ": the preload has written to the trace file", done)

    def expect_same(self, what, alone, done, special):
        if done is None:
            self.fault(what + ": hangs")
            return
        if special == "exit":
            same = alone.status == done.status or 0 in (alone.status, done.status)
            shorter, longer = sorted((alone.out, done.out), key=len)
            same = same and longer.startswith(shorter) and done.status in (0, 3)
        else:
            same = (done.status, done.out) == (alone.status, alone.out)
            same = same and (special in ("noisy", "exit") or done.err == alone.err)
        if not same:
            self.fault(what + ": differs", "alone: %s" % alone, "with us: %s" % done)

    def trace(self):
        self.runs += 1
        return shutil.copy(self.base, os.path.join(self.folder, "%d.trace" % self.runs))

    def record(self, trace, *command):
        return [QUERYPROF, "record", "--append", "-o", trace, "--quiet", "--no-symbols", "--cpu", "1ms", "--real", "1ms",
                "--setting", "trace_log_flush_interval_ms=50", "--", *command]

    def matrix(self, name, with_interpreters):
        find, variables, special = PRELOADS[name]
        path = find()
        with faked(special) as more:
            if not path or more is None:
                print("skipped: %s is not installed" % name)
                return False
            given = ["%s=%s" % (key, value.replace("{folder}", self.folder)) for key, value in {**variables, **more}.items()]
            for host, command in self.hosts(with_interpreters):
                alone = run(preloaded(path, "before", given, command), self.environment)
                if alone is None or alone.status not in (3, 0):
                    if path == OWN:
                        self.fault("%s, %s: not queryprof's fault, the preload alone: %s" % (name, host, alone or "hangs"))
                    else:
                        self.skipped.append("%s does not work with %s alone: %s" % (host, name, alone))
                    continue
                for place in ("before", "behind"):
                    trace, what = self.trace(), "%s %s us, %s recorded" % (name, place, host)
                    done = run(self.record(trace, *preloaded(path, place, given, command)), self.environment)
                    self.expect_same(what, alone, done, special)
                    self.expect_trace(what, trace, done, special != "exit")
                    os.unlink(trace)
                trace, what = self.trace(), "%s, %s with the extension" % (name, host)
                environment = dict(self.environment, QUERYPROF_TRACE_LOG_PATH=trace, QUERYPROF_TRACE_LOG_FLUSH_INTERVAL_MS="50",
                                   QUERYPROF_QUERY_PROFILER_REAL_TIME_PERIOD_NS="1ms")
                done = run(preloaded(path, "before", given, [*command, LIBRARY]), environment)
                self.expect_same(what, alone, done, special)
                self.expect_trace(what, trace, done, special != "exit")
                os.unlink(trace)
        return True

    def wrapper(self, name, with_interpreters):
        wrapper = [word.replace("{folder}", self.folder) for word in WRAPPERS[name]]
        if not shutil.which(wrapper[0]):
            print("skipped: %s is not installed" % wrapper[0])
            return False
        for host, command in self.hosts(with_interpreters):
            alone = run([*wrapper, *command], self.environment)
            if alone is None or alone.status not in (3, 0):
                self.skipped.append("%s does not work with %s alone: %s" % (host, name, alone))
                continue
            trace, what = self.trace(), "record -- %s %s" % (wrapper[0], host)
            done = run(self.record(trace, *wrapper, *command), self.environment)
            self.expect_same(what, alone, done, "noisy")
            self.expect_trace(what, trace, done, True)
            os.unlink(trace)
        return True


def main():
    with tempfile.TemporaryDirectory(prefix="queryprof-preloads-test-", ignore_cleanup_errors=True) as folder:
        matrix = Matrix(folder)
        call = matrix.wrapper if NAME in WRAPPERS else matrix.matrix
        if not call(NAME, "all" in sys.argv):
            return SKIPPED
        for reason in matrix.skipped:
            print("skipped: " + reason)
        print("%d runs, %d faults" % (matrix.runs, len(matrix.faults)))
        return 1 if matrix.faults else 0 if matrix.runs else SKIPPED


sys.exit(main())
