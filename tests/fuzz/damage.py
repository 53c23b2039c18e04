# SPDX-License-Identifier: Apache-2.0
"""Damaged, forged and foreign trace files: each kind of damage is a function that gets a random generator and the path
of a valid file, and damages the file.

The content of a file may be anything; the names of its tables and columns, too."""

import os
import sqlite3
import struct

# --- bytes ---------------------------------------------------------------------------


def read(path):
    with open(path, "rb") as file:
        return bytearray(file.read())


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def flip_bits(random, path):
    data = read(path)
    for _ in range(random.choice((1, 3, 30, 300))):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    write(path, data)


def flip_in_page_heads(random, path):
    data = read(path)
    for page in range(0, len(data), 4096):
        if random.random() < 0.3:
            data[page + random.randrange(16) + (100 if page == 0 else 0)] = random.randrange(256)
    write(path, data)


def change_header(random, path):
    data = read(path)
    at = random.choice((16, 18, 19, 20, 21, 22, 23, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 92, 96))
    data[at:at + 4] = struct.pack(">I", random.choice((0, 1, 2, 3, 255, 4097, 2**31 - 1, 2**32 - 1)))
    write(path, data)


def mix_pages(random, path):
    data = read(path)
    pages = len(data) // 4096
    for _ in range(random.choice((1, 2, 5))):
        one, other = (4096 * random.randrange(1, pages) for _ in range(2))
        data[one:one + 4096] = data[other:other + 4096]
    write(path, data)


def cut(random, path):
    os.truncate(path, random.choice((1, 15, 16, 99, 100, 511, 512, 4095, 4096, 4097, 8192,
                                     random.randrange(os.path.getsize(path)))))


def random_bytes(random, path):
    write(path, bytearray(random.randbytes(random.choice((1, 100, 5000, 50000)))))


def random_behind_the_header(random, path):
    data = read(path)
    write(path, data[:100] + random.randbytes(max(0, len(data) - 100)))


def strange_log(random, path):
    write(path + "-wal", bytearray(struct.pack(">IIIIIIII", 0x377F0682, 3007000, 4096, 1, 2, 3, 4, 5)
                                   + random.randbytes(4096 * 3)))


def strange_journal(random, path):
    write(path + "-journal", bytearray(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + random.randbytes(3000)))


# --- content ---------------------------------------------------------------------------

STRANGE = (
    None, 0, -1, 1, 2**31, 2**62, 2**62 + 5, 2**63 - 1, -2**63, 1.5, float("inf"), -0.0, "", "x", "\x1b[2J\r\n\t",
    "'\"<script>&;", "\u202e\U0001f600", b"", b"\xff\xfe\x00\x80", b"\x00" * 50, "0" * 100000, "[", "[]", "[1,2",
    "[null]", '["a"]', "[1.5]", "[-1]", "[99999999999999999999999]", "[[1]]", "{}", '{"a":[1]}', "null", "1",
    "[" + ",".join(["4611686018427387904"] * 3000) + "]", "[" * 3000 + "]" * 3000, "[0]", "[9223372036854775807]")
LOOSE = {"NOT NULL": "", "INTEGER PRIMARY KEY": "INTEGER", "CHECK (id = 1)": ""}


def edit_schema(path, edit):
    db = sqlite3.connect(path)
    db.execute("PRAGMA writable_schema = ON")
    for name, sql in db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall():
        if not isinstance(sql, str):
            continue  # an earlier damage has put another value there
        changed = edit(name, sql)
        if changed != sql:
            db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (changed, name))
    version = db.execute("PRAGMA schema_version").fetchone()[0]
    db.execute("PRAGMA schema_version = %d" % (version + 1))
    db.commit()
    db.close()


def tables(db):
    return [name for (name,) in db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]


def strange_values(random, path):
    if random.random() < 0.7:
        def loosen(_, sql):
            for text, other in LOOSE.items():
                if text != "INTEGER PRIMARY KEY":
                    sql = sql.replace(text, other)
            return sql
        edit_schema(path, loosen)
    db = sqlite3.connect(path)
    for _ in range(random.choice((1, 4, 40))):
        table = random.choice(tables(db))
        columns = [row[1] for row in db.execute("PRAGMA table_info(%s)" % table)]
        try:
            db.execute("UPDATE OR IGNORE %s SET %s = ? WHERE rowid IN (SELECT rowid FROM %s ORDER BY random() LIMIT ?)"
                       % (table, random.choice(columns), table),
                       (random.choice(STRANGE), random.choice((1, 5, 1000000))))
        except (sqlite3.IntegrityError, sqlite3.OperationalError):
            pass  # a constraint refuses the value
    db.commit()
    db.close()


def empty_tables(random, path):
    db = sqlite3.connect(path)
    for table in tables(db):
        if random.random() < 0.4:
            db.execute("DELETE FROM %s" % table)
    db.commit()
    db.close()


def missing_objects(random, path):
    db = sqlite3.connect(path)
    objects = db.execute("SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'").fetchall()
    for kind, name in random.sample(objects, random.choice((1, 2, 4))):
        try:
            db.execute("DROP %s IF EXISTS %s" % (kind, name))
        except sqlite3.OperationalError:
            pass  # removed with its table
    db.commit()
    db.close()


def missing_column(random, path):
    db = sqlite3.connect(path)
    table = random.choice(tables(db))
    column = random.choice([row[1] for row in db.execute("PRAGMA table_info(%s)" % table)])
    for change in ("DROP COLUMN %s" % column, "RENAME COLUMN %s TO other" % column):
        try:
            db.execute("ALTER TABLE %s %s" % (table, change))
            break
        except sqlite3.OperationalError:
            pass
    db.commit()
    db.close()


def tables_that_are_views(random, path):
    db = sqlite3.connect(path)
    table = random.choice(tables(db))
    for (view,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall():
        if random.random() < 0.5:
            db.execute("DROP VIEW %s" % view)
    db.execute("PRAGMA legacy_alter_table = ON")
    db.execute("ALTER TABLE %s RENAME TO real_%s" % (table, table))
    db.execute("CREATE VIEW %s AS SELECT * FROM real_%s" % (table, table))
    db.commit()
    db.close()


def forged_views(random, path):
    db = sqlite3.connect(path)
    text = random.choice((
        "SELECT 1 AS query_id",
        "SELECT load_extension('/nowhere') AS query_id",
        "SELECT * FROM no_such_table",
        "SELECT zeroblob(1000000) AS trace, 1 AS weight, 'CPU' AS trace_type FROM samples",
        "SELECT addressToSymbol(1) AS query_id"))
    for view in ("trace_log", "query_log"):
        db.execute("DROP VIEW IF EXISTS %s" % view)
        db.execute("CREATE VIEW %s AS %s" % (view, text))
    db.commit()
    db.close()


def triggers(random, path):
    db = sqlite3.connect(path)
    db.create_function("addressToSymbol", 1, lambda address: None)
    for table in tables(db):
        db.execute("CREATE TRIGGER on_%s BEFORE INSERT ON %s BEGIN %s; END" % (table, table, random.choice((
            "SELECT raise(ROLLBACK, 'no')", "DELETE FROM samples", "INSERT INTO %s SELECT * FROM %s" % (table, table)))))
    db.commit()
    db.close()


def generated_columns(random, path):
    db = sqlite3.connect(path)
    table = random.choice(tables(db))
    db.execute("ALTER TABLE %s ADD COLUMN made AS (%s)" % (
        table, random.choice(("1", "abs(-9223372036854775808)", "zeroblob(99999)", "rowid || 'x'"))))
    db.commit()
    db.close()


def strange_statistics(random, path):
    db = sqlite3.connect(path)
    db.execute("ANALYZE")
    db.execute("UPDATE sqlite_stat1 SET stat = ?", (random.choice(("", "0", "-1 -1", "x y z", "9" * 40, None)),))
    db.commit()
    db.close()


def other_versions(random, path):
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = %d" % random.choice((0, 1, 2, 1000, -1, 2**31 - 1)))
    db.commit()
    db.close()


def other_database(random, path):
    os.unlink(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA page_size = %d" % random.choice((512, 1024, 65536)))
    db.execute("PRAGMA encoding = '%s'" % random.choice(("UTF-8", "UTF-16le")))
    db.execute("CREATE TABLE samples (a, b)")
    if random.random() < 0.7:
        db.execute("PRAGMA application_id = %d" % 0x51505246)
        db.execute("PRAGMA user_version = %d" % random.choice((1, 2, 3, 4, 5, 6, 7)))
    db.commit()
    db.close()


def other_pages(random, path):
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = DELETE")
    db.execute("PRAGMA auto_vacuum = %d" % random.choice((0, 1, 2)))
    db.execute("PRAGMA page_size = %d" % random.choice((512, 1024, 65536)))
    db.execute("VACUUM")
    db.close()


KINDS = (
    flip_bits, flip_bits, flip_in_page_heads, change_header, mix_pages, cut, random_bytes, random_behind_the_header,
    strange_log, strange_journal, strange_values, strange_values, strange_values, strange_values, empty_tables,
    missing_objects, missing_column, tables_that_are_views, forged_views, triggers, generated_columns,
    strange_statistics, other_versions, other_database, other_pages)
