#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the example for node in docs/recipes.md unchanged, if there is a node with node:sqlite.

usage: test_node.py QUERYPROF DOCUMENT NODE..."""

import os
import re
import shlex
import subprocess
import sys
import tempfile

QUERYPROF, DOCUMENT, *NODES = sys.argv[1:]
APP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "app.js")
SKIP = 77


def has_sqlite(node):
    try:
        return not subprocess.run([node, "-e", "require('node:sqlite')"], capture_output=True, check=False).returncode
    except OSError:
        return False


def columns(line):
    return re.split(r"\s{2,}", line.strip())


def main():
    node = next(filter(has_sqlite, NODES), None)
    if not node:
        print("no node with node:sqlite")
        return SKIP
    with open(DOCUMENT, encoding="utf-8") as file:
        example = re.search(r"```\n(\$ queryprof record [^\n]* node app\.js\n.*?)```", file.read(), re.S).group(1)
    known = {"queryprof": os.path.abspath(QUERYPROF), "node": os.path.abspath(node), "app.js": APP}
    with tempfile.TemporaryDirectory() as folder:
        for part in example.split("$ ")[1:]:
            command, *expected = part.splitlines()
            done = subprocess.run([known.get(word, word) for word in shlex.split(command)], cwd=folder, text=True,
                                  capture_output=True, check=True)
            if expected[0].startswith("queryprof: "):
                # Numbers that depend on the machine.
                pattern = re.sub(r"\d+", r"\\d+", re.escape(expected[0]).replace(r"\ ", " "))
                assert re.search(pattern, done.stderr), done.stderr
                continue
            shown = done.stdout.splitlines()
            assert columns(shown[0]) == columns(expected[0]), shown[0]
            # The runs and text of each statement, whichever takes longer.
            runs = columns(shown[0]).index("runs")
            rows, wanted = ({(columns(line)[runs], columns(line)[-1]) for line in lines[1:-1]} for lines in (shown, expected))
            assert rows == wanted, done.stdout
            for line in re.findall(r"from app\.js:\d+", "\n".join(expected)):
                assert line in done.stdout, done.stdout
            print(done.stdout)
    return 0


sys.exit(main())
