#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`queryprof top` in a terminal of any size: its screen, its keys, and the state of the terminal after every kind of
end.

usage: test_top.py QUERYPROF"""

import fcntl
import pty
import random
import select
import struct
import termios

import os
import sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import *

SIZES = ((10, 40), (24, 80), (40, 120), (60, 200), (1, 1), (2, 5), (3, 300))
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
UP, DOWN = b"\x1b[A", b"\x1bOB"
TEXT = ENDLESS % "top"


class Terminal:
    """Runs the command in a terminal, and keeps the lines that it shows."""
    def __init__(self, rows, columns, *arguments):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.before[3] |= termios.NOFLSH  # otherwise the kernel discards pending output after ^C's signal
        termios.tcsetattr(self.slave, termios.TCSANOW, self.before)
        self.seen = b""
        self.lines = []
        self.process = subprocess.Popen([QUERYPROF, *arguments], stdin=self.slave, stdout=self.slave, stderr=subprocess.PIPE,
                                        start_new_session=True, preexec_fn=self.take,
                                        env=dict(os.environ, TERM="dumb", LC_ALL="C.UTF-8"))

    def take(self):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds=0.05):
        while select.select([self.master], [], [], seconds)[0]:
            try:
                part = os.read(self.master, 65536)
            except OSError:
                break
            self.seen += part
            if not part:
                break
        frames = self.seen.rpartition(LEAVE)[0] if self.seen.endswith(LEAVE) else self.seen
        frames = frames.split(b"\x1b[H")
        # The last frame may be incomplete.
        whole = [frame for frame in frames[1:] if frame.count(b"\r\n") == self.rows - 1 and frame.endswith(b"\x1b[K")]
        if whole:
            self.frame = whole[-1]
            self.lines = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", whole[-1]).decode("utf-8", "replace").split("\r\n")
        return self.lines

    def wait_for(self, condition, what):
        def shown():
            self.read()
            return self.lines and condition("\n".join(self.lines))
        try:
            wait_until(shown, what)
        except AssertionError:
            raise AssertionError("%s: never came in %r" % (what, self.lines)) from None
        return self.lines

    def type(self, keys):
        os.write(self.master, keys)

    def end(self):
        """Waits for the end. Returns the exit status, the errors, and whether the terminal was restored."""
        def has_ended():
            self.read()
            return self.process.poll() is not None
        wait_until(has_ended, "the end of top")
        self.left()
        error = self.process.stderr.read().decode()
        after = termios.tcgetattr(self.slave)
        return self.process.returncode, error, after == self.before and self.seen.count(ENTER) == self.seen.count(LEAVE)

    def left(self):
        """Waits for the last output, which arrives later if the kernel's thread for it has no processor."""
        def has_left():
            self.read()
            return self.seen.rstrip().endswith(LEAVE)
        wait_until(has_left, "the screen as it was")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        os.close(self.master)
        os.close(self.slave)


class Top(Live):
    def setUp(self):
        super().setUp()
        self.recorder = self.start("sqlite3", "-init", "/dev/null", ":memory:", TEXT)
        self.find(TEXT, lambda run: run["stack"])

    def terminal(self, rows=24, columns=80):
        terminal = Terminal(rows, columns, "top", self.trace)
        self.addCleanup(terminal.close)
        return terminal

    def expect_end(self, terminal, status=0):
        code, error, is_restored = terminal.end()
        self.assertEqual((code, error), (status, ""))
        self.assertTrue(is_restored, terminal.seen[-300:])

    def test_sizes(self):
        for rows, columns in SIZES:
            with self.subTest(rows=rows, columns=columns):
                terminal = self.terminal(rows, columns)
                if rows >= 10:
                    terminal.wait_for(lambda text: "app.trace: 1 process, 1 in SQLite" in text and "WITH" in text, "a run")
                else:
                    terminal.wait_for(lambda text: True, "a frame")
                self.assertLessEqual(max(map(len, terminal.lines)), columns)
                self.assertEqual(len(terminal.lines), rows)
                terminal.type(b"q")
                self.expect_end(terminal)

    def test_resize(self):
        terminal = self.terminal(24, 80)
        terminal.wait_for(lambda text: "WITH" in text, "a run")
        for rows, columns in SIZES:
            terminal.resize(rows, columns)
            terminal.wait_for(lambda text, rows=rows, columns=columns: len(terminal.lines) == rows and
                              max(map(len, terminal.lines)) <= columns, "%d rows" % rows)
        terminal.type(b"q")
        self.expect_end(terminal)

    def test_keys(self):
        terminal = self.terminal(40, 160)
        terminal.wait_for(lambda text: "by wall" in text and text.count("WITH RECURSIVE") == 2 and "on CPU" in text,
                          "the statement, twice, and that it computes")
        terminal.type(b"s")
        terminal.wait_for(lambda text: "by cpu" in text, "another order")
        terminal.type(b"sss")
        terminal.wait_for(lambda text: "by wall" in text, "the first order")
        terminal.type(DOWN + UP + b"jk")
        terminal.type(b"\r")
        terminal.wait_for(lambda text: re.search(r"self +plan", text) and re.search(r"(?m)^ *[\d.,]+ m?s +(SCAN|.*RECURSIVE)", text)
                          and "sqlite3VdbeExec" in text or "sqlite3_step" in text, "plan and stacks")
        self.assertIn("'top größe'", "\n".join(terminal.lines))
        terminal.type(DOWN * 3)
        terminal.wait_for(lambda text: "'top größe'" not in text, "scrolled lines")
        terminal.type(b"\x1b")
        terminal.wait_for(lambda text: "by wall" in text, "the recording")
        terminal.type(b" ")
        terminal.wait_for(lambda text: "FROZEN" in text, "a frozen page")
        frozen = terminal.lines[2]
        for _ in range(15):
            terminal.read()
            time.sleep(0.1)
        self.assertEqual(terminal.lines[2], frozen)
        terminal.type(b"f")
        terminal.wait_for(lambda text: "FROZEN" not in text and terminal.lines[2] != frozen, "a page that lives")
        terminal.type(b"q")
        self.expect_end(terminal)

    def test_broken_input(self):
        """Incomplete sequences and invalid bytes are no keys, and do not end top."""
        terminal = self.terminal()
        terminal.wait_for(lambda text: "WITH" in text, "a run")
        source = random.Random(45)
        signals = b"\x03\x1a\x1c\x04q"  # ^C ^Z ^\ ^D
        for _ in range(40):
            terminal.type(bytes(byte for byte in source.randbytes(60) if byte not in signals))
            terminal.type(source.choice((b"\x1b", b"\x1b[", b"\x1b[1;5", b"\x1b[" + b"1;" * 40 + b"A", b"\xff\xfe\xc3", b"\x1bO")))
            terminal.read(0.01)
        self.assertIsNone(terminal.process.poll())
        terminal.type(b"\x1b[Ab")
        time.sleep(0.2)
        terminal.type(b"q")
        self.expect_end(terminal)

    def test_ends(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV:
            with self.subTest(number):
                terminal = self.terminal()
                terminal.wait_for(lambda text: "WITH" in text, "a run")
                terminal.process.send_signal(number)
                self.expect_end(terminal, -number)
        terminal = self.terminal()
        terminal.wait_for(lambda text: "WITH" in text, "a run")
        terminal.type(b"\x03")
        self.expect_end(terminal, -signal.SIGINT)
        terminal = self.terminal()
        terminal.wait_for(lambda text: "WITH" in text, "a run")
        terminal.type(b"\x04")
        self.expect_end(terminal)

    def test_stop(self):
        """^Z restores the terminal, and fg shows the screen again."""
        terminal = self.terminal()
        terminal.wait_for(lambda text: "WITH" in text, "a run")
        # As in a shell, the parent is in the same session, because SIGTSTP does not stop an orphaned process group.
        terminal.process.send_signal(signal.SIGTSTP)
        wait_until(lambda: state(terminal.process.pid) == "T", "its stop")
        terminal.left()
        self.assertEqual(termios.tcgetattr(terminal.slave), terminal.before)
        terminal.process.send_signal(signal.SIGCONT)
        count = terminal.seen.count(ENTER)
        wait_until(lambda: terminal.read() and terminal.seen.count(ENTER) == count + 1, "the screen")
        terminal.wait_for(lambda text: "WITH" in text, "a run")
        terminal.type(b"q")
        self.expect_end(terminal)

    def test_the_recording_ends(self):
        terminal = self.terminal(24, 120)
        terminal.wait_for(lambda text: "1 in SQLite" in text, "a run")
        self.end(self.recorder)
        terminal.wait_for(lambda text: "0 processes" in text and "nothing is recorded now" in text, "the end")
        terminal.type(b"q")
        self.expect_end(terminal)

    def test_text(self):
        """If the output is not a terminal, top prints once."""
        for arguments in (), ("--once",):
            # A busy thread sometimes waits for the disk.
            text = self.top_with(r"\Aapp\.trace: 1 process, 1 in SQLite, 0 between rows, 0 transactions\n"
                                 r" elapsed  thread     doing +statement\n +[\d.,]+ m?s  \d+ +on CPU +WITH RECURSIVE.*\n",
                                 r"(?m)^ +wall +cpu +lock +runs  last 10 s, by wall\n"
                                 r" +[\d.,]+ m?s +[\d.,]+ m?s +1  WITH RECURSIVE", arguments=arguments)
            self.assertNotIn("\x1b", text)

    def top_with(self, *patterns, arguments=()):
        """Waits until top's text matches all patterns; returns it."""
        def found():
            done = self.ask("top", self.trace, *arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            missing = [pattern for pattern in patterns if not re.search(pattern, done.stdout)]
            self.seen = "%s is not in\n%s" % (missing, done.stdout)
            return not missing and done.stdout
        try:
            return wait_until(found, "a text")
        except AssertionError:
            raise AssertionError(self.seen) from None

    def test_locks(self):
        path = os.path.join(self.folder, "app.db")
        self.trace = os.path.join(self.folder, "other.trace")
        self.start(PYTHON, self.file("holder.py", HOLDER), path)
        self.find("INSERT INTO t VALUES (2) /* waits */", lambda run: run["wait_cause"] == "lock")
        # The waiting thread computes between two sleeps.
        self.top_with(r"(?m)^ +[\d.,]+ m?s  \d+ +waits [\d.,]+ m?s: lock \(WAL write\) +INSERT INTO t VALUES \(2\)",
                      r"(?m)^ +holder: thread \d+ .* began with BEGIN IMMEDIATE /\* holds \*/; none of its statements runs",
                      r"(?m)^ +[\d.,]+ m?s  \d+ +writes +app\.db \(WAL \d+\.\d MB\): BEGIN IMMEDIATE")


if __name__ == "__main__":
    unittest.main(verbosity=2)
