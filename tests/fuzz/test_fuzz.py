#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged, forged and foreign trace files: the store and every subcommand read them without a crash or a hang, and
print the reason if they fail.

usage: test_fuzz.py QUERYPROF VICTIM SOURCE_DIR FIXTURE [--rounds N] [--seed N] [--keep FOLDER]

The seed is 1, or the number in QUERYPROF_TEST_SEED.
"""

import argparse
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import damage

TIME_LIMIT = 300
SUBCOMMANDS = (
    ("queries", "FILE"),
    ("findings", "FILE"),
    ("queries", "FILE", "--by", "samples", "--since", "start"),
    ("queries", "FILE", "--regressed"),
    ("report", "FILE"),
    ("report", "FILE", "--like", "SELECT"),
    ("plan", "FILE"),
    ("plan", "FILE", "orders", "--opcodes"),
    ("locks", "FILE"),
    ("traces", "FILE"),
    ("trace", "FILE", "4bf92f3577b34da6", "--samples"),
    ("diff", "FILE", "GOOD"),
    ("diff", "GOOD", "FILE"),
    ("export", "FILE", "--format", "collapsed", "-o", "-"),
    ("export", "FILE", "--format", "pprof", "-o", "-"),
    ("export", "FILE", "--format", "speedscope", "-o", "-"),
    ("export", "FILE", "--format", "flamegraph", "-o", "-"),
    ("export", "FILE", "--format", "json", "-o", "-"),
    ("export", "FILE", "--format", "perfetto", "-o", "-"),
    ("export", "FILE", "--format", "otlp", "-o", "-"),
    ("export", "FILE", "--format", "otlp-traces", "-o", "-"),
    ("export", "FILE", "--format", "label-history", "-o", "-"),
    ("export", "FILE", "--format", "collapsed", "--plan", "-o", "-"),
    ("push", "FILE", "http://127.0.0.1:9/?database=none", "--dry-run"),
    ("sql", "FILE", "SELECT *, symbols, lines FROM trace_log LIMIT 50"),
    ("sql", "FILE", "SELECT * FROM query_log"),
    ("sql", "FILE", "SELECT traceToText(trace) FROM trace_log LIMIT 50"),
    ("sql", "FILE", "SELECT * FROM top_functions"),
    ("sql", "FILE", "SELECT * FROM top_stacks"),
    ("embed", "FILE"),
)


def copy(path, to):
    for suffix in ("-wal", "-journal", "-shm"):
        if os.path.exists(path + suffix):
            shutil.copy(path + suffix, to + suffix)
    shutil.copy(path, to)


def add_rows(path, sql):
    """Adds rows that the commands' file lacks: spans, labels, plans, locks."""
    db = sqlite3.connect(path)
    with open(sql, encoding="utf-8") as file:
        db.executescript(file.read().replace("INSERT INTO", "INSERT OR IGNORE INTO"))
    db.execute("UPDATE queries SET program = id WHERE id IN (1, 2)")
    db.commit()
    db.close()


class Fuzz:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.failures = 0
        self.refused = self.served = 0
        self.good = os.path.join(folder, "good.trace")

    def run(self, name, *command):
        try:
            process = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            return self.fail(name, command, "no end after %d s" % TIME_LIMIT)
        err = process.stderr.decode("utf-8", "replace")
        if process.returncode < 0 or process.returncode > 2:
            return self.fail(name, command, "status %d, %s" % (process.returncode, err[-3000:]))
        if "Sanitizer" in err or "runtime error" in err:
            return self.fail(name, command, err[:6000])
        if process.returncode and not err.startswith("queryprof: "):
            return self.fail(name, command, "status %d without a message: %r" % (process.returncode, err))
        self.refused += process.returncode != 0
        self.served += process.returncode == 0
        return process

    def check_commands(self):
        """Every subcommand must accept the good file. With a wrong option it would never read a file."""
        for subcommand in SUBCOMMANDS:
            used = os.path.join(self.folder, "used.trace")
            copy(self.good, used)
            command = [used if word == "FILE" else self.good if word == "GOOD" else word for word in subcommand]
            process = self.run("good.trace", self.options.queryprof, *command)
            if process and process.returncode:
                self.fail("good.trace", command, process.stderr.decode("utf-8", "replace"))
            self.remove(used)

    def fail(self, name, command, what):
        self.failures += 1
        print("FAILED: %s: %s\n%s" % (name, " ".join(command), what))
        if self.options.keep:
            os.makedirs(self.options.keep, exist_ok=True)
            copy(os.path.join(self.folder, name), os.path.join(self.options.keep, name))

    def round(self, number):
        chance = random.Random(self.options.seed * 1000003 + number)
        kinds = [damage.KINDS[number % len(damage.KINDS)]]
        if number >= len(damage.KINDS) and chance.random() < 0.3:
            kinds.append(chance.choice(damage.KINDS))
        name = "%d-%s.trace" % (number, "-".join(kind.__name__ for kind in kinds))
        path = os.path.join(self.folder, name)
        copy(self.good, path)
        for kind in kinds:
            try:
                kind(chance, path)
            except (damage.sqlite3.Error, ValueError, IndexError):
                pass  # the earlier damage suffices
        used = os.path.join(self.folder, "used.trace")
        # A long run uses all subcommands in each round; a short run uses a few, which alternate.
        for turn, subcommand in enumerate(SUBCOMMANDS):
            if self.options.rounds < 1000 and (turn + number) % 14:
                continue
            copy(path, used)
            self.run(name, self.options.queryprof, *(
                used if word == "FILE" else self.good if word == "GOOD" else word for word in subcommand))
            self.remove(used)
        copy(path, used)
        self.run(name, self.options.victim, used)
        self.remove(used)
        self.remove(path)

    @staticmethod
    def remove(path):
        for suffix in ("", "-wal", "-journal", "-shm"):
            if os.path.exists(path + suffix):
                os.unlink(path + suffix)


def main():
    parser = argparse.ArgumentParser()
    for name in ("queryprof", "victim", "source", "fixture"):
        parser.add_argument(name)
    parser.add_argument("--rounds", type=int, default=len(damage.KINDS))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("QUERYPROF_TEST_SEED", "1")))
    parser.add_argument("--keep")
    options = parser.parse_args()
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
    import trace_file
    print("seed %d" % options.seed)
    with tempfile.TemporaryDirectory(prefix="qp-test-fuzz-") as folder:
        fuzz = Fuzz(options, folder)
        trace_file.make(fuzz.good, os.path.join(options.source, "sql", "schema", "store_schema.sql"), options.fixture, "")
        add_rows(fuzz.good, os.path.join(options.source, "tests", "fuzz", "trace.sql"))
        fuzz.check_commands()
        for number in range(options.first, options.first + options.rounds):
            fuzz.round(number)
    print("%d rounds: %d times refused, %d times served, %d failures"
          % (options.rounds, fuzz.refused, fuzz.served, fuzz.failures))
    # Both results must occur, or nothing was tested.
    return 1 if fuzz.failures or not fuzz.refused or not fuzz.served else 0


if __name__ == "__main__":
    sys.exit(main())
