#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The order of the house, read from the sources of src/:

- a room includes only rooms before it (ROOMS), so no circle of files crosses rooms;
- a recorded program loads the rooms up to `recorder` and none of the later ones (NOT_RECORDED);
- the rooms up to `hook` contain no name of SQLite (WITHOUT_SQLITE);
- functions that wait, or take the loader's lock, are called only in the files of the list (WAITS_IN);
- a header's functions are defined in the .c, .inc or .S of the same base name, or in one for each
  processor (x.h, x_aarch64.c);
- a source file that a comment names exists in src/ or tests/.

The test also prints figures for the reader to judge: the lines of each room; the sources that are linked into the signal
handler, from the build; files of more than 600 lines, with the .inc files that they include; files that include each other
in a circle (a file is a base name: x.c and x.h); folders of a room that include each other; and the files that name a
column of trace_log, which a new column has to be added to.

usage: test_house.py SOURCE_DIR [BUILD_DIR RECORDER PRELOAD HANDLER_OBJECT...]"""

import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.abspath(sys.argv.pop(1))
SOURCE = os.path.join(ROOT, "src")
BUILD, RECORDED, HANDLER = sys.argv[1:2], sys.argv[2:4], sys.argv[4:]
del sys.argv[1:]
ROOMS = ("base", "settings", "wire", "system", "handler", "collect", "timers", "process", "span", "query", "label", "modules",
         "handover", "hook", "interpreter", "sqlite", "sqlite/calls", "recorder", "symbol", "store", "frames", "sql", "export", "entry", "cmd/ui",
         "cmd/line", "cmd/http", "cmd/file", "cmd/read", "cmd/export", "cmd/push", "cmd/pull", "cmd/advise", "cmd/attach", "cmd/record", "cmd/live", "cmd/page", "cmd/mcp", "cmd")
WITHOUT_SQLITE = ROOMS[:ROOMS.index("hook") + 1]
NOT_RECORDED = "symbol", "store", "frames", "sql", "export", "cmd"
LINES = 600
PROCESSORS = "", "_aarch64", "_x86_64"

# Headers that all rooms may include.
OUTSIDE = {"queryprof"}

# Functions that wait, also for the loader's lock, and functions of clocks that the host may have replaced. Only files in
# which each wait has a limit and is in the list of waits (base/bounded_wait.h) may call them, and files that pass the host's
# own calls on.
WAITING = re.compile(r"\b(futex_wait|nanosleep|clock_nanosleep|usleep|sleep|pause|sched_yield|clock_gettime|gettimeofday|time"
                     r"|pthread_(?:cond|mutex|rwlock|barrier|spin)_\w+|pthread_once|pthread_join|call_once|sem_\w+|select|pselect"
                     r"|poll|ppoll|epoll_p?wait|waitpid|wait4|sigwait\w*|sigsuspend|dl_iterate_phdr)\s*\("
                     r"|\bsyscall\s*\(\s*SYS_(futex|nanosleep|clock_nanosleep|wait4|waitid|poll|ppoll|sched_yield)\b")
WAITS_IN = {
    "base/futex.h": {"futex_wait", "futex"},
    "base/bounded_wait.c": {"futex_wait", "sched_yield"},
    "base/lock.c": {"futex_wait"},  # waits for a mutex's holder, and for another thread's one-time work
    "base/loader.c": {"dl_iterate_phdr"},  # a forked child may find the lock taken
    "sqlite/static/freeze.c": {"wait4"},  # the child has ended, or it does not wait
}
HOSTS_CALLS = {"hook/calls.c", "hook/signals.c", "hook/waits.c"}
LIBC_IN = "system"  # the room with queryprof's versions of libc functions

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# A comment, a string or a character, whichever begins first.
TOKEN = re.compile(r'(/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
# A file that a comment names, but not an example with a line (file.c:12) and not a system header (<x.h>).
NAMED_FILE = re.compile(r"(?<![\w./<-])([\w-]+/)*[\w-]+\.[chS]\b(?!:\d)")
SYSTEM_HEADER = re.compile(r"#\s*include\s+<([^>]+)>")
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")


def files(root=SOURCE):
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), root)


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def base(path):
    return os.path.splitext(path)[0]


def code_of(text, string='""'):
    """Returns the code without comments. Replaces each string by `string`, unless it is None."""
    return TOKEN.sub(lambda found: " " if found[1] else found[0] if string is None else string, text)


def room(path):
    """Returns the file's room: its folder in src/, or a folder below that which is a room itself, like those of the command."""
    folder = os.path.dirname(path)
    return folder if folder in ROOMS or folder.startswith("cmd/") else folder.split("/")[0]


TEXTS = {path: read(path) for path in files() if path.endswith((".c", ".h", ".inc", ".S"))}


def includes(path):
    """Returns the base names in src/ that a file includes, without generated files."""
    for name in INCLUDE.findall(code_of(TEXTS[path], None)):
        for found in (name, os.path.normpath(os.path.join(os.path.dirname(path), name))):
            if found in TEXTS:
                yield base(found)
                break


def graph():
    edges = {}
    for path in TEXTS:
        edges.setdefault(base(path), set()).update(other for other in includes(path) if other != base(path))
    return edges


def circles(edges):
    """Returns the strongly connected components of more than one file (Tarjan)."""
    number, low, stack, result = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
            if len(component) > 1:
                result.append(sorted(component))

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return sorted(result)


def top_level(text):
    """Returns the text outside of braces, comments, strings and directives. A body becomes {}."""
    text = ATTRIBUTE.sub(" ", DIRECTIVE.sub("", code_of(text)))
    text = text.replace('extern ""', "extern")
    out, depth = [], 0
    for part in re.split(r"([{}])", text):
        if part == "{":
            depth += 1
            if depth == 1:
                out.append("{")
        elif part == "}":
            depth -= 1
            if depth == 0:
                out.append("}")
        elif depth == 0:
            out.append(part)
    return "".join(out)


def declared(header):
    """Returns the functions that a header declares and does not define."""
    for statement in re.split(r"[;}]", top_level(TEXTS[header])):
        statement = " ".join(statement.split())
        if "{" in statement or statement.startswith(("typedef", "static")):
            continue
        found = re.match(r"(?:[A-Za-z_][\w\s*]*?[\s*])(\w+)\s*\((?!\*)", statement)
        if found:
            yield found[1]


def has_definition(name, path):
    if path.endswith(".S"):
        return re.search(r"^%s:" % name, TEXTS[path], re.M) is not None
    return re.search(r"\b%s\s*\([^;{}]*\)\s*\{" % name, top_level(TEXTS[path])) is not None


def named_files_that_are_not_there():
    there = {"/src/" + path for path in TEXTS} | {"/tests/" + path for path in files(os.path.join(ROOT, "tests"))}
    ends = {path[i + 1:] for path in there for i, letter in enumerate(path) if letter == "/"}
    ends.update(header for text in TEXTS.values() for header in SYSTEM_HEADER.findall(text))
    for path, text in TEXTS.items():
        for comment in TOKEN.finditer(text):
            for named in NAMED_FILE.finditer(comment[1] or ""):
                if named[0] not in ends:
                    yield "not there: %s, which %s names" % (named[0], path)


def violations():
    yield from named_files_that_are_not_there()
    for path in TEXTS:
        if room(path) not in ROOMS:
            if base(path) not in OUTSIDE:
                yield "no room: %s" % path
            continue
        for other in sorted(set(includes(path))):
            if base(other) in OUTSIDE:
                continue
            if room(other) not in ROOMS or ROOMS.index(room(other)) > ROOMS.index(room(path)):
                yield "order: %s includes %s" % (path, other)
        if room(path) != LIBC_IN and not room(path).startswith("cmd") and path not in HOSTS_CALLS:
            code = code_of(TEXTS[path])
            for name in sorted({called[1] or called[2] for called in WAITING.finditer(code)} - WAITS_IN.get(path, set())):
                yield "waits: %s in %s" % (name, path)
        if room(path) in WITHOUT_SQLITE and re.search(r"sqlite3", code_of(TEXTS[path], None)):
            yield "names SQLite: %s" % path
    for header in (path for path in TEXTS if path.endswith(".h") and base(path) not in OUTSIDE):
        names = [base(header) + processor for processor in PROCESSORS]
        own = [path for path in TEXTS if base(path) in names and not path.endswith(".h")]
        for name in declared(header):
            if not any(has_definition(name, path) for path in own):
                yield "defined elsewhere: %s of %s" % (name, header)


def lines_of(path):
    """Returns the number of lines, including those of the .inc files that the file includes."""
    included = [other + ".inc" for other in set(includes(path)) - {base(path)}]
    return sum(TEXTS[one].count("\n") for one in [path, *included] if one in TEXTS)


def print_rooms():
    print("\n%-12s%6s%9s%14s" % ("room", "files", "lines", "longest file"))
    for name in ROOMS:
        lines = sorted(TEXTS[path].count("\n") for path in TEXTS if room(path) == name)
        print("%-12s%6d%9d%14d" % (name, len(lines), sum(lines), lines[-1]))
    print("%-12s%6d%9d" % ("all", len(TEXTS), sum(text.count("\n") for text in TEXTS.values())))


def print_handler():
    """Prints the files that the compiler read for the objects of the handler, by folder."""
    objects = [os.path.relpath(one, BUILD[0]) for one in HANDLER]
    told = subprocess.run(["ninja", "-t", "deps", *objects], cwd=BUILD[0], capture_output=True, text=True).stdout
    read_files = {os.path.realpath(os.path.join(BUILD[0], line.strip()))
                  for line in told.splitlines() if line.startswith(" ")}
    folders = {}
    for path in sorted(path for path in read_files if path.startswith(ROOT + os.sep)):
        folder = "LLVM's, of the build" if path.startswith(BUILD[0]) else os.path.relpath(os.path.dirname(path), ROOT)
        with open(path, encoding="utf-8") as file:
            folders.setdefault(folder, []).append(file.read().count("\n"))
    if not folders:
        print("\nlinked into the signal handler: not known, %s is no build by ninja" % BUILD[0])
        return
    print("\n%-34s%6s%9s" % ("linked into the signal handler", "files", "lines"))
    for folder, lines in folders.items():
        print("%-34s%6d%9d" % (folder, len(lines), sum(lines)))
    own = [lines for folder, lines in folders.items() if folder.startswith(("src", "third_party"))]
    print("%-34s%6d%9d" % ("all but LLVM's", sum(map(len, own)), sum(map(sum, own))))


def folder_edges():
    """Returns {(folder, other folder of its room): number of includes}."""
    edges = {}
    for path in TEXTS:
        for other in set(includes(path)):
            pair = os.path.dirname(path), os.path.dirname(other)
            if pair[0] != pair[1] and room(path) == room(other):
                edges[pair] = edges.get(pair, 0) + 1
    return edges


def print_column():
    """Prints the files that name a column. Files that only read a column name it, too, so it takes the one with the fewest."""
    log = TEXTS["store/write/columns.h"].partition("#define QUERY_COLUMNS")[0]
    texts = {}
    for top in ("src", "sql", "docs"):
        for path in files(os.path.join(ROOT, top)):
            if path.endswith((".c", ".h", ".sql", ".md")):
                with open(os.path.join(ROOT, top, path), encoding="utf-8") as file:
                    texts[os.path.join(top, path)] = set(re.findall(r"\w+", file.read()))
    named = {column: [path for path, words in texts.items() if column in words]
             for column in re.findall(r"^\t_\((\w+),", log, re.M)}
    column = min(named, key=lambda one: len(named[one]))
    print("\nfiles that name a column of trace_log (%s)" % column)
    for path in named[column]:
        print("        " + path)


def print_judgements():
    print_rooms()
    if HANDLER:
        print_handler()
    print("\nfiles of more than %d lines" % LINES)
    for path in TEXTS:
        if lines_of(path) > LINES and not path.endswith(".inc"):
            print("%6d  %s" % (lines_of(path), path))
    print("\ncircles of files")
    for circle in circles(graph()):
        print("%6d  %s" % (len(circle), " ".join(circle)))
    print("\nfolders of a room that include each other, and how many includes go either way")
    edges = folder_edges()
    for one, other in sorted(edges):
        if one < other and (other, one) in edges:
            print("%6d%6d  %s  %s" % (edges[one, other], edges[other, one], one, other))
    print_column()
    print(flush=True)


class House(unittest.TestCase):
    def test_order(self):
        self.assertTrue(any(base(path) == "handler/sample" for path in TEXTS), "no sources in " + SOURCE)
        print_judgements()
        self.assertEqual(sorted(violations()), [], "see the head of test_house.py")

    @unittest.skipUnless(RECORDED, "without a build")
    def test_recorded_program(self):
        """Checks the symbols of the two libraries that a recorded program loads."""
        defined = {}
        for library in RECORDED:
            for line in subprocess.run(["nm", "--defined-only", "--format=posix", library], capture_output=True, text=True,
                                       check=True).stdout.splitlines():
                defined[line.split()[0]] = os.path.basename(library)
        self.assertIn("qp_record", defined)
        headers = [path for path in TEXTS if path.endswith(".h") and room(path).split("/")[0] in NOT_RECORDED]
        functions = [name for header in headers for name in declared(header)]
        self.assertGreater(len(functions), 300)
        self.assertEqual([(name, defined[name]) for name in functions if name in defined], [])
        self.assertEqual([name for name in defined if name.startswith("sqlite3_") and "queryprof" not in name], [])

    def test_reads_c(self):
        """The simple reader of C finds declarations, definitions and circles."""
        TEXTS["test/one.h"] = """/* int no(void); */
            struct one { int (*call)(void); };
            static inline int inlined(void) { return 0; }
            int first(void); char *second(int a,
              struct one *b) __attribute__((format(printf, 1, 2)));
            extern int number;
            typedef int (*third)(void);
            #define FOURTH(a) int a(void);
            """
        TEXTS["test/one.c"] = '#include "test/two.h"\nint first(void)\n{\n\treturn second(";");\n}\n'
        TEXTS["test/two.h"] = '#include "test/one.h"\n'
        try:
            self.assertEqual(list(declared("test/one.h")), ["first", "second"])
            self.assertTrue(has_definition("first", "test/one.c"))
            self.assertFalse(has_definition("second", "test/one.c"))
            self.assertIn(["test/one", "test/two"], circles(graph()))
        finally:
            for path in ("test/one.h", "test/one.c", "test/two.h"):
                del TEXTS[path]

    def test_finds_names_of_files(self):
        TEXTS["test/one.c"] = ('/* See house/one.h, test/one.c and <sys/none.h>;\n * base/lock.h, lock.h, file.c:12. */\n'
                               '#include <sys/epoll.h> // as epoll.h\nconst char *text = "/* gone.c */";\n')
        try:
            self.assertEqual([line for line in violations() if "which test/one.c" in line],
                             ["not there: house/one.h, which test/one.c names", "not there: epoll.h, which test/one.c names"])
        finally:
            del TEXTS["test/one.c"]

    def test_finds_sqlite(self):
        """The test finds names of SQLite in the rooms of hooks, also in strings, but not in comments."""
        TEXTS["hook/test.c"] = '/* sqlite3_step() */\nint test = 1;\n'
        TEXTS["hook/other.c"] = 'const char *test = "sqlite3_step";\n'
        TEXTS["handler/test.c"] = '#include <sqlite3.h>\n#include "sqlite/library/host.h"\n'
        try:
            self.assertEqual([line for line in violations() if "test" in line or "other.c" in line],
                             ["names SQLite: hook/other.c", "order: handler/test.c includes sqlite/library/host",
                              "names SQLite: handler/test.c"])
        finally:
            for path in ("hook/test.c", "hook/other.c", "handler/test.c"):
                del TEXTS[path]


if __name__ == "__main__":
    unittest.main()
