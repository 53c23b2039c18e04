#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The documents are true: the examples run, the reference names everything that the code has, links have targets,
and the code has the messages that docs/troubleshooting.md explains.

    test_documents.py SOURCE_DIR BUILD_DIR C_COMPILER
"""
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import hangs

SOURCE, BUILD, COMPILER = sys.argv[1:4]
LIBRARY = os.path.join(BUILD, "libqueryprof")
REFERENCE = "docs/sql-reference.md"
DOCS = sorted("docs/" + name for name in os.listdir(os.path.join(SOURCE, "docs")) if name.endswith(".md"))
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "THIRD-PARTY.md", "sql/README.md", "src/README.md",
             "tests/bench/README.md", "third_party/libunwind/README.md", *DOCS)

# How the reference shows defaults.
UNITS = {"": 1, "ms": 10**6, "MiB": 2**20, "GiB": 2**30}
NO_VALUES = {"a private temporary file": ""}

# Messages of SQLite, the loader and the system in docs/troubleshooting.md.
MESSAGES_OF_OTHERS = ("not authorized", "no such function: load_extension", "cannot open shared object file",
                      "No such file or directory", "out of memory")

WORK = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT sum(i % 7) FROM n"
APPLICATION = """\
import sqlite3

db = sqlite3.connect("app.db")
db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER)")
db.execute("%s").fetchall()
db.execute("SELECT count(*) FROM orders, (%s)").fetchall()
db.execute("SELECT count(*) FROM orders /*route='users'*/").fetchall()
try:
    db.execute("SELECT abs(-9223372036854775807 - 1)").fetchall()
except sqlite3.OperationalError:
    pass
""" % (WORK, WORK)



def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


def blocks(text, language):
    fences = re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for of, block in fences if of == language]


def quoted(text):
    """Returns the names between backquotes, without arguments."""
    return {name.split("(")[0].strip() for name in re.findall(r"`([^`\n]+)`", text)}


class Documents(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = directory.name
        os.makedirs(os.path.join(self.folder, "build"))
        os.symlink(BUILD, os.path.join(self.folder, "build", "release"))
        self.write("app.py", APPLICATION)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def run_command(self, command, text=""):
        environment = dict(os.environ, PATH=BUILD + ":" + os.environ["PATH"], HOME=self.folder, LC_ALL="C.UTF-8")
        done = subprocess.run(command, shell=isinstance(command, str), cwd=self.folder, env=environment, input=text,
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, (command, done.stdout, done.stderr))
        return done.stdout + done.stderr

    def load(self):
        db = sqlite3.connect(os.path.join(self.folder, "app.db"), isolation_level=None)
        self.addCleanup(db.close)
        db.enable_load_extension(True)
        db.execute("SELECT load_extension(?)", (LIBRARY,))
        return db

    # --- examples ------------------------------------------------------------------

    def test_quick_start(self):
        """Runs README's program and commands. Their headings, and lines without numbers, must be as shown."""
        text = read("README.md")
        self.write("app.py", blocks(text, "python")[0])
        shown = next(block for block in blocks(text, "") if block.startswith("$ "))
        lines = iter(shown.splitlines())
        output, seen = "", []
        for line in lines:
            if line.startswith("$ "):
                output = self.run_command(line[2:].replace("python3", "/usr/bin/python3"))
                seen.append(line)
            elif not re.search(r"[0-9…]", line) and line.strip():
                words = line.split()
                # A busy machine may need more than the second that `record` looks for findings.
                if "evidence and cures" in line and "the findings take longer" in output:
                    continue
                self.assertTrue(any(each.split()[:len(words)] == words for each in output.splitlines()), (line, output))
        self.assertGreater(len(seen), 2)
        # The cause that the reader should find.
        self.assertRegex(output, r"SCAN orders .*the whole table.*customer")

    def test_commands(self):
        for name in ("README.md", *DOCS):
            with self.subTest(name):
                self.run_lines(name)

    def run_lines(self, name):
        lines = [line for block in blocks(read(name), "sh") for line in block.splitlines()]
        if not lines:
            return
        for trace in ("app.trace", "before.trace", "after.trace"):
            self.run_command(["queryprof", "record", "-o", trace, "--new", "--cpu", "1ms", "--", "/usr/bin/python3", "app.py"])
        if "not in this build" in self.run_command("queryprof export --help"):
            lines = [line for line in lines if "flamegraph" not in line and ".html" not in line and not line.startswith("queryprof live ")]
        for line in lines:
            if re.match(r"queryprof (dump|top) ", line):
                self.run_while_recorded(line)
            elif line.startswith("queryprof live "):
                self.run_served(line)
            else:
                self.run_command(line.replace("python3", "/usr/bin/python3"))

    def run_while_recorded(self, command):
        program = "import sqlite3, sys; sqlite3.connect(':memory:').execute('SELECT 1').fetchall(); print(flush=True); sys.stdin.read()"
        with subprocess.Popen([os.path.join(BUILD, "queryprof"), "record", "-o", "app.trace", "--append", "--",
                               "/usr/bin/python3", "-c", program], cwd=self.folder, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recording:
            if recording.stdout.readline() != "\n":
                self.fail("the program did not begin: " + recording.stderr.read())
            self.run_command(command)
            recording.communicate()

    def run_served(self, command):
        """The command prints an address, and ends when it is terminated."""
        with subprocess.Popen([os.path.join(BUILD, "queryprof"), *command.split("#")[0].split()[1:]], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True) as serving:
            self.assertTrue(serving.stdout.readline().startswith("http://127.0.0.1:"))
            serving.terminate()
        self.assertEqual(serving.returncode, 0)

    def test_sql(self):
        """Examples that load the library run in the shell. The others run on a connection and, unless they need one, on a
        trace file."""
        db = self.load()
        db.execute("PRAGMA query_profiler_cpu_time_period_ns = '1ms'").fetchall()
        db.execute(WORK).fetchall()
        self.run_command(["queryprof", "record", "-o", "app.trace", "--cpu", "1ms", "--", "/usr/bin/python3", "app.py"])
        recipes = [block for name in ("README.md", *DOCS) for block in blocks(read(name), "sql")]
        self.assertGreater(len(recipes), 5)
        for recipe in recipes:
            if recipe.startswith(".load"):
                out = self.run_command(["sqlite3", "-init", "/dev/null", "-batch", "-bail", "app.db"], recipe)
                self.assertIn("sqlite3VdbeExec", out)
                continue
            self.assertIsNotNone(db.execute(recipe).description, recipe)
            if "system." not in recipe and "set_label" not in recipe:
                self.run_command(["queryprof", "sql", "app.trace"], recipe)

    def test_python(self):
        for name in DOCS:
            for block in blocks(read(name), "python"):
                self.run_command(["/usr/bin/python3", "-c", block])

    def test_c(self):
        parts = [part for name in DOCS for part in blocks(read(name), "c")]
        self.assertEqual(len(parts), 3)
        for part in parts:
            includes = "".join(re.findall(r"^#.*\n", part, re.MULTILINE))
            body = re.sub(r"^#.*\n", "", part, flags=re.MULTILINE)
            self.run_command([COMPILER, "-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-x", "c",
                              "-I" + os.path.join(SOURCE, "src"), "-"],
                             includes + "void work(void); void example(struct sqlite3 *db);\n"
                             "void example(struct sqlite3 *db) { (void)db;\n" + body + "}\n")

    def test_contents(self):
        for name in DOCS:
            text = read(name)
            titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
            self.assertEqual(titles[0], "Contents", name)
            contents = text[text.index("## Contents"):].split("\n## ", 1)[0]
            self.assertEqual(re.findall(r"^- \[(.*)\]\(#", contents, re.MULTILINE), titles[1:], name)

    def test_format(self):
        version = re.search(r"#define STORE_SCHEMA_VERSION (\d+)", read("src/store/file/schema.h")).group(1)
        self.assertIn("version of the format: %s." % version, read("docs/trace-file.md"))
        self.assertIn("version %s of the format" % version, read("CHANGELOG.md"))

    def test_manual(self):
        """The man page has the options of every command's --help, and no others."""
        def words(text):
            return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))

        with open(os.path.join(BUILD, "queryprof.1"), encoding="utf-8") as file:
            manual = re.sub(r"\\f[BIR]|\\&", "", file.read()).replace("\\-", "-")
        shown = self.run_command("queryprof --help")
        commands = re.findall(r"^  ([a-z]+)  +\S", shown, re.MULTILINE)
        self.assertGreater(len(commands), 10)
        helps = "".join([shown] + [self.run_command(["queryprof", command, "--help"]) for command in commands])
        self.assertEqual(words(helps) - {"--help", "--version"}, words(manual) - {"--help", "--version"})

    # --- the reference -----------------------------------------------------------------

    def assertNamed(self, names, text, what):
        self.assertTrue(names, what)
        self.assertEqual(sorted(set(names) - quoted(text)), [], "%s that the reference does not name" % what)

    def section(self, title, level="##"):
        text = read(REFERENCE)
        found = re.search(r"^%s %s.*?(?=^%s |\Z)" % (level, re.escape(title), level), text, re.MULTILINE | re.DOTALL)
        self.assertTrue(found, title)
        return found.group()

    def test_settings(self):
        def value(shown):
            number, _, unit = shown.split(",")[0].partition(" ")
            return int(number) * UNITS[unit] if number.isdigit() else NO_VALUES.get(shown, shown.strip("`"))

        settings = dict(self.load().execute('SELECT name, "default" FROM system.settings'))
        rows = re.findall(r"^\| `(\w+)` \| ([^|]*?) ?\|", self.section("Settings"), re.MULTILINE)
        self.assertEqual({name: value(shown) for name, shown in rows}, settings)
        # The linker has collected the same list in the command.
        offered = subprocess.run([os.path.join(BUILD, "queryprof"), "--complete", "3", "record", "--setting", ""],
                                 stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout.split()
        self.assertEqual(offered, [name + "=" for name in settings if name != "query_id"])

    def test_functions(self):
        def functions(db):
            return {row[0].lower() for row in db.execute("SELECT name FROM pragma_function_list")}

        with sqlite3.connect(":memory:") as plain:
            ours = functions(self.load()) - functions(plain)
        rows = {name.lower() for name in re.findall(r"^\| `(\w+)\(", self.section("Functions"), re.MULTILINE)}
        self.assertEqual(rows, ours)

    def test_tables_and_columns(self):
        db = self.load()
        tables = [row[0] for row in db.execute("SELECT name FROM system.sqlite_schema WHERE type = 'table'")]
        self.assertNamed(["trace_log"], self.section("Tables"), "tables")
        for table in tables:
            columns = [row[1] for row in db.execute("PRAGMA system.table_xinfo('%s')" % table)]
            self.assertNamed(columns, self.section(table + ":", "###"), "columns of " + table)

    def test_views(self):
        db = sqlite3.connect(":memory:")
        db.executescript(read("sql/schema/store_schema.sql"))
        views = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")]
        self.assertNamed(views, self.section("Views of a trace file"), "views")
        db.close()

    def test_metrics(self):
        metrics = {row[0] for row in self.load().execute("SELECT metric FROM system.metrics")}
        for name in DOCS:
            named = {word for word in quoted(read(name))
                     if re.match(r"(samples_dropped|timers_|store_|unwind_|settings_e)[a-z_]+$", word)}
            self.assertEqual(sorted(named - metrics - {"store_schema"}), [], name)

    # --- references ----------------------------------------------------------------------

    def test_messages(self):
        """The code contains each message of docs/troubleshooting.md, except for placeholders."""
        texts = [re.sub(r'"\s*(?:PRI\w+\s*)?"', "", read(os.path.join(folder, name)))
                 for folder, _, names in os.walk(os.path.join(SOURCE, "src")) for name in names if name.endswith((".c", ".h"))]
        document = read("docs/troubleshooting.md")
        messages = re.findall(r'^### "(.+)"$', document, re.MULTILINE)
        messages += re.findall(r"^\| `([^`]+)` \|", document, re.MULTILINE)
        self.assertGreater(len(messages), 10)
        for message in messages:
            parts = re.split(r"\b[A-Z]+\b|…|^--\w+ \w+", message)
            if message not in MESSAGES_OF_OTHERS and not any(all(part in text for part in parts) for text in texts):
                self.fail("no source has the message %r" % message)

    def test_links(self):
        for name in DOCUMENTS:
            folder = os.path.join(SOURCE, os.path.dirname(name))
            for target in re.findall(r"\]\(([^)]+)\)", read(name)):
                if re.match(r"https?:", target):
                    continue
                path, _, anchor = target.partition("#")
                path = os.path.normpath(os.path.join(folder, path)) if path else os.path.join(SOURCE, name)
                self.assertTrue(os.path.exists(path), (name, target))
                if anchor:
                    with open(path, encoding="utf-8") as file:
                        titles = re.findall(r"^#+ (.*)$", file.read(), re.MULTILINE)
                    self.assertIn(anchor, [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles],
                                  name)

    def test_files(self):
        for name in DOCUMENTS:
            for path in re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:c|h|sql|md|txt|py|proto)|tools/[\w-]+)`", read(name)):
                self.assertTrue(any(os.path.exists(os.path.join(SOURCE, folder, path))
                                    for folder in ("", "src", os.path.dirname(name))), (name, path))

    def test_rooms(self):
        parts = re.findall(r"set\(QUERYPROF_RE(?:CORDER|ST)\s+([a-z ]+)\)", read("src/CMakeLists.txt"))
        listed = " ".join(parts).split()
        block = next(block for block in blocks(read("src/README.md"), "") if block.startswith("base "))
        shown = re.findall(r"^(\w+) ", block, re.MULTILINE)
        # Other rules link export into the command and system into the libraries. cmd is the command itself.
        self.assertEqual([room for room in shown if room not in ("export", "system", "cmd")], listed)
        self.assertEqual(sorted(shown), sorted(name for name in os.listdir(os.path.join(SOURCE, "src"))
                                               if os.path.isdir(os.path.join(SOURCE, "src", name))))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
