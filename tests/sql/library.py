# SPDX-License-Identifier: Apache-2.0
"""The library under test, given as the first argument, and connections with it."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

LIBRARY = os.path.splitext(os.path.abspath(sys.argv.pop(1)))[0]  # as .load takes it


def load(db):
    db.enable_load_extension(True)
    db.execute("SELECT load_extension(?)", (LIBRARY,))
    return db


def connect(path=":memory:", **options):
    """A connection with the schema, whether it appears automatically or when a statement names it."""
    db = load(sqlite3.connect(path, isolation_level=None, **options))
    db.execute("SELECT 1 FROM system.settings").close()
    return db


def rows(db, sql, *values):
    return db.execute(sql, values).fetchall()


def value(db, sql, *values):
    return db.execute(sql, values).fetchone()[0]


def in_new_process(script, *arguments, **environment):
    """Runs Python text in a new process, which imports this module like the test. So an effect that occurs once per
    process, or is permanent, can be tested repeatedly."""
    done = subprocess.run(
        ["/usr/bin/python3", "-c", "from library import *\n" + script, LIBRARY + ".so", *arguments],
        cwd=os.path.dirname(os.path.abspath(__file__)), env={**os.environ, **environment},
        capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise AssertionError(f"exit {done.returncode}\n{script}\n{done.stdout}\n{done.stderr}")
    return done.stdout.strip()


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def assertRefused(self, sentence, db, sql, *values):
        with self.assertRaises(sqlite3.Error) as caught:
            db.execute(sql, values).fetchall()
        self.assertIn(sentence, str(caught.exception), sql)
