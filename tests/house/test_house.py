#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The order of the house, read from the sources of src/:

- a room includes only rooms before it (ROOMS);
- files that include each other in a circle are at most three, and in one room (a file is
  a base name: x.c and x.h);
- what waits is called only where the list of waits has it (WAITS_IN);
- a header's functions are defined in the .c, .inc or .S of the same base name
  (DEFINED_ELSEWHERE lists the exceptions, with reasons);
- a function whose lock a forked child may find taken is called in one file (CALLED_IN).

Violations in known.txt pass, and so does a part of a circle there; lines that can go are
printed.

What is a matter of judgement is printed for the reader and fails nothing: files of more than 600 lines, the
.inc files that they include counted, and circles of two or three files.

usage: test_house.py SOURCE_DIR"""

import os
import re
import sys
import unittest

SOURCE = os.path.join(os.path.abspath(sys.argv.pop(1)), "src")
KNOWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known.txt")
ROOMS = ("base", "wire", "system", "handler", "collect", "timers", "process", "span", "query", "label", "modules", "hook", "symbol", "store",
         "trace", "settings", "sqlite", "sql", "export", "entry", "cmd/ui", "cmd/line", "cmd/http", "cmd/file", "cmd/read", "cmd/export", "cmd/push",
         "cmd/pull", "cmd/record", "cmd")
LINES = 600
CIRCLE = 3

# Not code of the library: what all may include.
OUTSIDE = {"queryprof", "cfi"}

# header: reason. Its functions may be defined in any file of its room.
DEFINED_ELSEWHERE = {"sqlite/static/stub.h": "one file for each processor"}

CALLED_IN = {"dl_iterate_phdr": "base/loader.c"}

# What waits, and whose clock the host may have replaced: only where each wait has a limit and stands in the list of
# waits (base/bounded_wait.h), and where the host's own calls are handed on.
WAITING = re.compile(r"\b(futex_wait|nanosleep|clock_nanosleep|usleep|sleep|pause|sched_yield|clock_gettime|gettimeofday|time"
                     r"|pthread_(?:cond|mutex|rwlock|barrier|spin)_\w+|pthread_once|pthread_join|call_once|sem_\w+|select|pselect"
                     r"|poll|ppoll|epoll_p?wait|waitpid|wait4|sigwait\w*|sigsuspend)\s*\(|\bSYS_(futex|nanosleep|clock_nanosleep"
                     r"|wait4|waitid|poll|ppoll|sched_yield)\b")
WAITS_IN = {
    "base/futex.h": {"futex_wait", "futex"},
    "base/bounded_wait.c": {"futex_wait", "sched_yield"},
    "base/lock.c": {"futex_wait"},  # a mutex's holder, and what is done once, by another thread
    "entry/handover.c": {"ppoll"},  # in the list
    "hook/confine.c": {"futex"},  # the number of a call that is evaluated, not made
    "store/leaving.c": {"poll"},  # without waiting
    "sqlite/static/freeze.c": {"wait4"},  # a child that has ended, or without waiting
}
HOSTS_CALLS = {"hook/calls.c", "hook/signals.c", "hook/waits.c"}
LIBC_IN = "system"  # the room that has libc's functions

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# A comment, a string or a character, whichever begins first.
TOKEN = re.compile(r'(/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")


def files():
    for folder, _, names in sorted(os.walk(SOURCE)):
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), SOURCE)


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def base(path):
    return os.path.splitext(path)[0]


def code_of(text, string='""'):
    """Without comments, and with `string` for each string; None: strings stay."""
    return TOKEN.sub(lambda found: " " if found[1] else found[0] if string is None else string, text)


def room(path):
    """Its folder in src/; the command's rooms are folders of cmd/."""
    folders = os.path.dirname(path).split(os.sep)
    return "/".join(folders[:2 if folders[0] == "cmd" else 1])


TEXTS = {path: read(path) for path in files() if path.endswith((".c", ".h", ".inc", ".S"))}


def includes(path):
    """The base names in src/ that a file includes; generated files are not among them."""
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
    """The strongly connected components of more than one file (Tarjan)."""
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
    """The text outside of braces, comments, strings and directives; a body becomes {}."""
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
    """The functions that a header declares and does not define."""
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


def violations():
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
        for name, only in CALLED_IN.items():
            if path != only and re.search(r"\b%s\s*\(" % name, code_of(TEXTS[path])):
                yield "called elsewhere: %s in %s" % (name, path)
        if room(path) != LIBC_IN and not room(path).startswith("cmd") and path not in HOSTS_CALLS:
            code = code_of(TEXTS[path])
            for name in sorted({called[1] or called[2] for called in WAITING.finditer(code)} - WAITS_IN.get(path, set())):
                yield "waits: %s in %s" % (name, path)
    for circle in circles(graph()):
        rooms = {room(path) for path in circle}
        if len(circle) > CIRCLE or len(rooms) > 1:
            yield "circle: %s" % " ".join(circle)
    for header in (path for path in TEXTS if path.endswith(".h")):
        if base(header) in OUTSIDE or header in DEFINED_ELSEWHERE:
            continue
        own = [path for path in TEXTS if base(path) == base(header) and not path.endswith(".h")]
        for name in declared(header):
            if not any(has_definition(name, path) for path in own):
                yield "defined elsewhere: %s of %s" % (name, header)


def judgements():
    for path in TEXTS:
        lines = TEXTS[path].count("\n") + sum(TEXTS[other + ".inc"].count("\n") for other in set(includes(path))
                                              if other + ".inc" in TEXTS and base(path) != other)
        if lines > LINES and not path.endswith(".inc"):
            yield "%d lines: %s" % (lines, path)
    for circle in circles(graph()):
        yield "circle: %s" % " ".join(circle)


class House(unittest.TestCase):
    def test_order(self):
        with open(KNOWN, encoding="utf-8") as file:
            known = {line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")}
        self.assertTrue(any(base(path) == "handler/sample" for path in TEXTS), "no sources in " + SOURCE)
        found = set(violations())
        rings = [set(line.split()) for line in known if line.startswith("circle: ")]
        new = {line for line in found - known
               if not (line.startswith("circle: ") and any(set(line.split()) <= ring for ring in rings))}
        for line in sorted(known - found):
            print("known.txt, this can go: " + line)
        for line in sorted(judgements()):
            print("to judge: " + line)
        self.assertEqual(sorted(new), [], "new violations (see the head of test_house.py)")

    def test_reads_c(self):
        """The little reader of C finds what it must."""
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


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(violations()))
    else:
        unittest.main()
