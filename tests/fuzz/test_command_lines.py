#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random command lines: the command's own words in any order, with numbers out of range, invalid texts and missing
files. Each ends with a documented exit status and the reason for its failure.

usage: test_command_lines.py QUERYPROF SOURCE_DIR FIXTURE [--rounds N] [--seconds N] [--seed N]

The seed is 1, or the number in QUERYPROF_TEST_SEED."""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import hangs

TIME_LIMIT = 300
# record itself returns 125 to 127.
STATUSES = 0, 1, 2, 125, 126, 127
VALUES = ("", "-", "--", "0", "-1", "1", "7", "10ms", "1s", "500us", "1e9", "nan", "99999999999999999999", "-9223372036854775809",
          "0x7f", "1%", "%s%n", "start", "end", "now", "a=b", "=", "log_queries=1", "trace_log_path=", "SELECT 1",
          "SELECT * FROM trace_log", "'; DROP TABLE samples; --", "CPU", "wall", "json", "csv", "pprof", "self", "\x1b[31m",
          "zwölf", b"\xff\xfe", b"\xc3", "\u202e", "\n", "*", "x" * 5000, "good.trace", "other.trace", "none.trace", "text",
          "folder", "good.trace-wal", "/dev/null", "/dev/full", "clickhouse://", "http://127.0.0.1:9/", "-h", "--help",
          "--version")


def words_of(queryprof, folder):
    """The subcommands and their options."""
    def help_of(*arguments):
        return subprocess.run([queryprof, *arguments, "--help"], capture_output=True, text=True, cwd=folder, check=True,
                              stdin=subprocess.DEVNULL).stdout

    commands = re.findall(r"^  ([a-z]+)  +[A-Z]", help_of(), re.M)
    return {command: re.findall(r"^  (--?[a-z][a-z-]*)", help_of(command), re.M) for command in commands}


def draw(chance, words):
    command = chance.choice([*words, *words, "", "nothing", "--help", "-o"])
    options = words.get(command) or [option for of in words.values() for option in of]
    arguments = [command]
    if command in words and chance.random() < 0.7:
        arguments.append("good.trace")
    for _ in range(chance.randrange(5)):
        kind = chance.random()
        if kind < 0.6:
            arguments.append(chance.choice(options))
        if kind < 0.1:
            arguments[-1] += "=" + str(chance.choice(VALUES))
        elif kind > 0.2:
            arguments.append(chance.choice(VALUES))
    if command == "record":
        # The recorded program is fixed, so that random words cannot start another one.
        arguments = [argument for argument in arguments if argument != "--"] + ["--", "true"]
    if command == "push" and "--retry-for" not in arguments:
        arguments += ["--retry-for", "1"]  # otherwise it retries for a minute if nobody listens
    return [argument.encode("utf-8", "replace") if isinstance(argument, str) else argument for argument in arguments]


def look(done, arguments):
    """Returns the error in the end of a command, if any."""
    errors = done.stderr.decode("utf-8", "replace")
    if done.returncode not in STATUSES:
        return f"status {done.returncode}"
    if "Sanitizer" in errors or "runtime error" in errors:
        return "a sanitizer's report"
    if done.returncode and not errors.strip():
        return f"status {done.returncode} without a word"
    if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", errors):
        return "a control character in an error"
    return None


def main():
    parser = argparse.ArgumentParser()
    for name in ("queryprof", "source", "fixture"):
        parser.add_argument(name)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seconds", type=float, help="instead of a number of rounds")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("QUERYPROF_TEST_SEED", "1")))
    options = parser.parse_args()
    options.queryprof = os.path.abspath(options.queryprof)
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
    import trace_file
    print("seed %d" % options.seed)
    failures = served = rounds = 0
    end = time.monotonic() + (options.seconds or 0)
    with tempfile.TemporaryDirectory(prefix="qp-test-lines-") as folder:
        schema = os.path.join(options.source, "sql", "schema", "store_schema.sql")
        for name in ("good.trace", "other.trace"):
            trace_file.make(os.path.join(folder, name), schema, options.fixture, "")
        os.mkdir(os.path.join(folder, "folder"))
        with open(os.path.join(folder, "text"), "w", encoding="utf-8") as file:
            file.write("no trace file\n" * 100)
        words = words_of(options.queryprof, folder)
        environment = {**os.environ, "HOME": folder, "TMPDIR": folder, "TERM": "dumb"}
        while time.monotonic() < end if options.seconds else rounds < options.rounds:
            chance = random.Random(options.seed * 1000003 + rounds)
            arguments = draw(chance, words)
            rounds += 1
            try:
                done = subprocess.run([options.queryprof, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                                      cwd=folder, env=environment, timeout=TIME_LIMIT, check=False)
                wrong = look(done, arguments)
                served += done.returncode == 0
            except subprocess.TimeoutExpired:
                wrong = f"no end after {TIME_LIMIT} s"
            if wrong:
                failures += 1
                print("FAILED: round %d: %r: %s\n%s" % (rounds - 1, arguments, wrong, "" if "no end" in wrong else done.stderr[-500:]))
    print(f"{len(words)} subcommands, {rounds} lines, {served} served, {failures} failures")
    # Both results must occur, or nothing was tested.
    return 1 if failures or not served or served == rounds else 0


sys.exit(main())
