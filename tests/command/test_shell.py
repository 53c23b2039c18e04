#!/usr/bin/python3
"""queryprof sql as a shell, on a terminal and in scripts.

usage: test_shell.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import os
import pty
import re
import select
import shutil
import stat

from tool import QUERYPROF, Tool, environment, main, run

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;"
PROMPT, MORE = "queryprof> ", "...> "


class Terminal:
    """A shell on a terminal, typed to and read."""

    def __init__(self, test, trace, **variables):
        self.test = test
        self.seen = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            try:
                os.execve(QUERYPROF, [QUERYPROF, "sql", trace],
                          environment(80, **dict({"TERM": "dumb", "HOME": test.home}, **variables)))
            finally:
                os._exit(127)

    def wait_for(self, text):
        """What comes after it is left for the next time, what came before is returned."""
        while text.encode() not in self.seen:
            self.test.assertTrue(select.select([self.terminal], [], [], 60)[0], (text, self.seen))
            try:
                part = os.read(self.terminal, 4096)
            except OSError:
                part = b""
            self.test.assertTrue(part, (text, self.seen))
            # What moves the cursor is libedit's own.
            self.seen = re.sub(b"\x1b\\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r", b"", self.seen + part)
        before, self.seen = self.seen.split(text.encode(), 1)
        return before.decode()

    def type(self, text):
        os.write(self.terminal, text.encode())

    def ask(self, line, answer):
        """The answer must be none that the echo of the line has in it."""
        self.type(line + "\n")
        self.wait_for(answer)
        self.wait_for(PROMPT)

    def end(self, text):
        self.type(text)
        try:
            while select.select([self.terminal], [], [], 60)[0] and (part := os.read(self.terminal, 4096)):
                self.seen += part
        except OSError:  # Linux's way to say that nobody has the terminal open
            pass
        os.close(self.terminal) # a shell that has not ended gets SIGHUP
        self.test.assertEqual(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), 0, self.seen)


class Shell(Tool):
    def setUp(self):
        self.home = os.path.join(self.folder, "home")
        os.mkdir(self.home)
        self.history = os.path.join(self.home, ".local", "state", "queryprof", "sql_history")

    def tearDown(self):
        shutil.rmtree(self.home)

    def start(self, **variables):
        terminal = Terminal(self, self.trace, **variables)
        terminal.wait_for(PROMPT)
        return terminal

    def test_statements_and_words(self):
        shell = self.start()
        shell.ask(".tables", "trace_log")
        shell.ask(".schema stacks", "CREATE TABLE stacks (")
        shell.ask(".help", ".quit")
        shell.ask(".mode xml", "expected table, csv, json or line")
        shell.ask("SELECT nonsense;", "no such column")
        shell.type("SELECT 40 AS n,\n")
        shell.wait_for(MORE)
        shell.type("+ 2 AS m;\n")
        shell.wait_for("n  m\n40  2\n")
        shell.wait_for(PROMPT)
        shell.type(".mode line\n")
        shell.wait_for(PROMPT)
        shell.ask("SELECT 7 AS n, 'x' AS name;", "   n = 7\nname = x\n")
        shell.ask("SELECT 1; SELECT 2 AS second;", "second = 2\n")
        shell.ask(".nothing", "there is no .nothing")
        shell.end(".quit\n")

    def test_end_of_input(self):
        self.start().end("\x04")

    def test_interrupts(self):
        """Ctrl-C takes back what is typed, ends what runs, and does not end the shell."""
        shell = self.start()
        shell.type("SELECT 1,\n")
        shell.wait_for(MORE)
        shell.type("2,")
        shell.wait_for("2,")
        shell.type("\x03")
        self.assertEqual(shell.wait_for(PROMPT), "\n")
        shell.ask("SELECT 'anew' AS a;", "a\nanew\n")
        shell.type(ENDLESS + "\n")
        shell.wait_for("queryprof: working, 1 s") # it runs
        shell.type("\x03")
        shell.wait_for("queryprof: interrupted")
        shell.wait_for(PROMPT)
        shell.ask("SELECT 'still there' AS a;", "a\nstill there\n")
        shell.end(".exit\n")

    def test_history(self):
        def lines():
            with open(self.history, encoding="utf-8") as file:
                return file.read().splitlines()

        old = os.umask(0)
        try:
            shell = self.start(TERM="xterm")
            other = self.start()
        finally:
            os.umask(old)
        shell.ask("SELECT 'secret', 'ä';", "secret    ä\n")
        self.assertEqual(lines(), ["SELECT 'secret', 'ä';"]) # not only at the end
        other.ask("SELECT 2;", "2\n2\n")
        other.end("\x04")
        shell.end(".quit\n")
        self.assertEqual(lines(), ["SELECT 'secret', 'ä';", "SELECT 2;", ".quit"])
        self.assertEqual(stat.S_IMODE(os.stat(self.history).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(self.history)).st_mode), 0o700)
        # The next one has it: three lines up.
        shell = self.start(TERM="xterm")
        shell.type("\x1b[A\x1b[A\x1b[A\n")
        shell.wait_for("'secret'  'ä'\nsecret    ä\n")
        shell.wait_for(PROMPT)
        shell.end("\x04")
        self.assertEqual(lines()[3:], ["SELECT 'secret', 'ä';"])

    def test_history_elsewhere_and_nowhere(self):
        state = os.path.join(self.home, "state")
        shell = self.start(XDG_STATE_HOME=state)
        shell.ask("SELECT 1;", "1\n1\n")
        shell.end(".quit\n")
        self.assertTrue(os.path.exists(os.path.join(state, "queryprof", "sql_history")))
        shell = self.start(HOME="/proc/1/nowhere")
        shell.ask("SELECT 1;", "1\n1\n")
        shell.end(".quit\n")
        # Not through a link to somebody else's file.
        os.makedirs(os.path.dirname(self.history))
        victim = os.path.join(self.home, "victim")
        with open(victim, "w", encoding="ascii") as file:
            file.write("untouched")
        os.symlink(victim, self.history)
        shell = self.start()
        shell.ask("SELECT 1;", "1\n1\n")
        shell.end(".quit\n")
        with open(victim, encoding="ascii") as file:
            self.assertEqual(file.read(), "untouched")

    def test_long_history_is_cut(self):
        os.makedirs(os.path.dirname(self.history))
        with open(self.history, "w", encoding="ascii") as file:
            for i in range(2000):
                file.write("SELECT %d, '%s';\n" % (i, "x" * 700))
        os.chmod(self.history, 0o644)
        shell = self.start()
        shell.ask("SELECT 'last';", "'last'\nlast\n")
        shell.end("\x04")
        with open(self.history, encoding="ascii") as file:
            lines = file.read().splitlines()
        self.assertEqual((len(lines), lines[0][:12], lines[-2][:12], lines[-1]),
                         (1001, "SELECT 1000,", "SELECT 1999,", "SELECT 'last';"))
        self.assertEqual(stat.S_IMODE(os.stat(self.history).st_mode), 0o600)

    # --- scripts --------------------------------------------------------------

    def test_scripts(self):
        self.assertEqual(self.output("sql", self.trace, stdin="SELECT 1 AS a;\n\nSELECT 2\nAS b"), "a\n1\nb\n2\n")
        self.assertEqual(self.output("sql", self.trace, "-", stdin="SELECT 3 AS c"), "c\n3\n")
        self.assertEqual(self.output("sql", self.trace, stdin=".mode csv\nSELECT 1 AS a; SELECT 2 AS b;\n.quit\nx"),
                         "a\n1\nb\n2\n")
        self.assertEqual(self.output("sql", self.trace, stdin=""), "")
        self.assertEqual(self.output("sql", self.trace, stdin="-- nothing\n"), "")
        for script in ("SELECT 1 AS a;\nSELECT x;\nSELECT 2;\n", "SELECT 1 AS a;\n.nothing\nSELECT 2;\n",
                       "SELECT 1 AS a; SELECT x; SELECT 2"):
            code, out, err = run("sql", self.trace, stdin=script)
            self.assertEqual((code, out), (1, "a\n1\n"), script)
            self.assertRegex(err, "^queryprof: .*x|.nothing")
        self.assertFalse(os.path.exists(self.history))


if __name__ == "__main__":
    main()
