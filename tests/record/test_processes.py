#!/usr/bin/python3
"""More than one process under `queryprof record`: forks, other programs, daemons."""

from recording import *

WORK = """
import os, sqlite3, sys, time
SLOW = %r
def work(text=SLOW):
    return sqlite3.connect(':memory:').execute(text).fetchone()
""" % SLOW


class Processes(Recording):
    def test_forking_server(self):
        """Workers that end with _exit(), as those of servers do, leave all they have."""
        done = self.record(PYTHON, "-c", WORK + """
work()
workers = []
for i in range(3):
    pid = os.fork()
    if not pid:
        work()
        os._exit(i)
    workers.append(pid)
print([os.waitpid(pid, 0)[1] >> 8 for pid in workers])
work()""")
        self.assertEqual((done.returncode, done.stdout), (0, "[0, 1, 2]\n"), self.seen)
        found = self.expect_sampled(5)
        self.assertEqual(len({query[3] for query in found}), 4, found)
        self.assertRegex(done.stderr, " 4 processes\\.")

    def test_forked_before_sqlite(self):
        """A process that has no SQLite yet when it forks."""
        done = self.record(PYTHON, "-c", """
import os, sys
if not os.fork():
%s
    work()
    sys.exit()
print(os.wait()[1])""" % "\n".join("    " + line for line in WORK.splitlines()))
        self.assertEqual((done.returncode, done.stdout), (0, "0\n"), self.seen)
        self.expect_sampled(1)

    def test_programs_of_programs(self):
        done = self.record("sh", "-c", 'sqlite3 -init /dev/null :memory: "$0"; sqlite3 -init /dev/null :memory: "$0" | cat', SLOW)
        self.assertEqual((done.returncode, done.stdout), (0, 2 * (ANSWER + "\n")), self.seen)
        self.expect_sampled(2)

    def test_exec_in_place(self):
        """A program that becomes another one, with queries in both."""
        done = self.record(PYTHON, "-c", WORK + """
work()
os.execvp('sqlite3', ['sqlite3', '-init', '/dev/null', ':memory:', SLOW])""")
        self.assertEqual((done.returncode, done.stdout), (0, ANSWER + "\n"), self.seen)
        # What was not stored when the first image went is lost.
        self.assertIn(len(self.queries()), (1, 2), self.seen)

    def test_multiprocessing(self):
        path = self.file("pool.py", WORK + """
import multiprocessing
if __name__ == '__main__':
    with multiprocessing.Pool(2) as pool:
        print(len(pool.map(work, [SLOW] * 4)))
        pool.close()
        pool.join()
""")
        done = self.record(PYTHON, path)
        self.assertEqual((done.returncode, done.stdout), (0, "4\n"), self.seen)
        self.expect_sampled(4)

    def test_threads(self):
        done = self.record(PYTHON, "-c", WORK + """
import threading
threads = [threading.Thread(target=work) for i in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()""")
        self.assertEqual(done.returncode, 0, self.seen)
        self.expect_sampled(3)
        self.assertEqual(self.rows("SELECT count(DISTINCT thread_id) FROM trace_log"), [(3,)])

    def test_daemon_that_outlives(self):
        """It goes on recording when the command, and we with it, have ended."""
        done = self.record(PYTHON, "-c", WORK + """
work()
go = sys.argv[1]
if os.fork():
    os._exit(3)
os.setsid()
null = os.open('/dev/null', os.O_RDWR)
for i in range(3): os.dup2(null, i)
while not os.path.exists(go): time.sleep(0.01)
work(SLOW + ' -- later')
""", os.path.join(self.folder, "go"))
        self.assertEqual(done.returncode, 3, self.seen)
        self.expect_sampled(1)
        self.file("go", "")
        wait_until(lambda: [query for query in self.queries() if query[0].endswith("-- later")],
                   "the daemon's query")
        self.expect_sampled(1, SLOW + " -- later")

    def test_two_runs_in_one_file(self):
        self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW)
        done = self.record("sqlite3", "-init", "/dev/null", ":memory:", SLOW)
        self.expect_sampled(2)
        self.assertRegex(done.stderr, " 1 process\\.", "what is told is of the second run")


unittest.main()
