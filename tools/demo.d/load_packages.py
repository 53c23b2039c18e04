#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Loads Debian's package index into a new SQLite database.

    apt-cache dumpavail | load_packages.py SCHEMA.sql DATABASE

The database appears under its name only when it is complete. Progress goes to
stderr. Fails if the index has too few packages to be Debian's.
"""
import os
import re
import sqlite3
import sys
import time

DEPENDENCY_KINDS = ("Depends", "Pre-Depends", "Recommends", "Suggests")
FEWEST_PACKAGES = 10_000

# "libc6:any (>= 2.34) [amd64]": name, architecture qualifier, version.
DEPENDENCY = re.compile(r"\s*([a-z0-9][a-z0-9.+-]*)(?::\S+)?\s*(?:\(([^)]*)\))?")


def stanzas(lines):
    """Yields the fields of each package. Continuation lines are joined."""
    fields, name = {}, None
    for line in lines:
        if line == "\n":
            if fields:
                yield fields
            fields, name = {}, None
        elif line[0] in " \t":
            if name:
                fields[name] += " " + line.strip()
        else:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
    if fields:
        yield fields


def package_row(fields):
    return (
        fields["Package"],
        fields["Version"],
        fields.get("Architecture", ""),
        fields.get("Source", fields["Package"]).split(" ")[0],
        fields.get("Section", ""),
        fields.get("Priority", ""),
        fields.get("Maintainer", ""),
        fields.get("Homepage"),
        int(fields.get("Installed-Size", 0)),
        int(fields.get("Size", 0)),
        fields.get("Tag", ""),
        fields.get("Description", fields.get("Description-en", "")),
    )


def dependency_rows(fields):
    for kind in DEPENDENCY_KINDS:
        if kind not in fields:
            continue
        for position, choice in enumerate(fields[kind].split(",")):
            for alternative, text in enumerate(choice.split("|")):
                match = DEPENDENCY.match(text)
                if match:
                    yield fields["Package"], kind, position, alternative, match[1], match[2]


class Progress:
    """Rewrites one line on a terminal; otherwise prints a line every two seconds."""

    def __init__(self):
        self.terminal = sys.stderr.isatty()
        self.next = time.monotonic() + (0.1 if self.terminal else 2)

    def show(self, packages, dependencies, done=False):
        now = time.monotonic()
        if now < self.next and not done:
            return
        self.next = now + (0.1 if self.terminal else 2)
        text = f"{packages:,} packages, {dependencies:,} dependencies"
        start, end = ("\r", "\n" if done else "") if self.terminal else ("", "\n")
        sys.stderr.write(f"{start}  {text}{end}")
        sys.stderr.flush()


def load(lines, schema, database):
    connection = sqlite3.connect(database, isolation_level=None)
    # An incomplete file is removed, so it needs no journal.
    connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
    connection.executescript(schema)
    connection.execute("BEGIN")
    packages = dependencies = 0
    progress = Progress()
    seen = set()
    for fields in stanzas(lines):
        # A package that is only installed here, and in no archive, has no Filename.
        if "Filename" not in fields or fields["Package"] in seen:
            continue
        seen.add(fields["Package"])
        connection.execute("INSERT INTO packages VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", package_row(fields))
        rows = list(dependency_rows(fields))
        connection.executemany("INSERT INTO dependencies VALUES (?,?,?,?,?,?)", rows)
        packages += 1
        dependencies += len(rows)
        progress.show(packages, dependencies)
    progress.show(packages, dependencies, done=True)
    connection.execute("COMMIT")
    connection.close()
    return packages


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: apt-cache dumpavail | load_packages.py SCHEMA.sql DATABASE")
    schema_path, database = sys.argv[1:]
    with open(schema_path, encoding="utf-8") as file:
        schema = file.read()
    unfinished = f"{database}.{os.getpid()}"
    try:
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
        packages = load(sys.stdin, schema, unfinished)
        if packages < FEWEST_PACKAGES:
            sys.exit(f"load_packages.py: only {packages:,} packages, so this is not Debian's index")
        os.rename(unfinished, database)
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)


if __name__ == "__main__":
    main()
