# SPDX-License-Identifier: Apache-2.0
"""More programs for test_findings.py, in the form of programs.py. Someone who had not read the rules wrote them and the
expected findings. So they show how well the rules work on other programs.

  programs_apart.py NAME DATABASE"""

import sqlite3
import threading
import time
import zlib

from programs import Program, ROWS, connect, for_a_while, main, nothing, repeat

PROGRAMS = {}


def program(setup, finding=None, text=None, also=None):
    """As in programs.py. `also` may contain several findings."""
    def add(run):
        PROGRAMS[run.__name__] = Program(run.__name__, setup, finding, text, run, also)
        return run
    return add


def select(name, setup, sql, values=lambda i: (i,), finding=None, text=None, also=None):
    def run(path, timed):
        repeat(connect(path), timed, sql, values)
    run.__name__ = name
    program(setup, finding, text, also)(run)


def transaction(db):
    db.execute("BEGIN")
    return db


# --- programs with a fault -------------------------------------------------------------------------------------------

FORUM = ("CREATE TABLE topics(id INTEGER PRIMARY KEY, slug TEXT UNIQUE); CREATE TABLE members(id INTEGER PRIMARY KEY, nick TEXT);"
         "CREATE TABLE posts(id INTEGER PRIMARY KEY, topic INT, author INT, body TEXT);"
         "INSERT INTO topics " + ROWS % 3000 + "SELECT i, 'topic-' || i FROM n; INSERT INTO members " + ROWS % 500 + "SELECT i, 'nick' || i FROM n;"
         "INSERT INTO posts " + ROWS % 50000 + "SELECT i, i * 7919 % 3000 + 1, i % 500 + 1, 'some words ' || i FROM n;")
select("scan_three_tables", FORUM, "SELECT m.nick, p.body FROM topics t JOIN posts p ON p.topic = t.id JOIN members m ON m.id = p.author "
       "WHERE t.slug = ?", lambda i: ("topic-%d" % (i % 3000),), "unindexed_scan", "SELECT m.nick")
select("scan_cte_without_rowid",
       "CREATE TABLE readings(taken_at INT, sensor TEXT, value REAL, PRIMARY KEY(taken_at, sensor)) WITHOUT ROWID;"
       "INSERT INTO readings " + ROWS % 50000 + "SELECT i, 's' || (i % 900), i % 77 FROM n;",
       "WITH mine AS (SELECT * FROM readings WHERE sensor = ?) SELECT avg(value), max(taken_at) FROM mine",
       lambda i: ("s%d" % (i % 900),), "unindexed_scan", "WITH mine")
select("scan_or", "CREATE TABLE contacts(id INTEGER PRIMARY KEY, email TEXT, phone TEXT); CREATE INDEX contacts_email ON contacts(email);"
       "INSERT INTO contacts " + ROWS % 40000 + "SELECT i, 'p' || i || '@example.org', '+49' || (i * 31) FROM n;",
       "SELECT id FROM contacts WHERE email = ?1 OR phone = ?2", lambda i: ("p%d@example.org" % i, "+49%d" % i), "unindexed_scan", "FROM contacts")
select("scan_in_select", "CREATE TABLE albums(id INTEGER PRIMARY KEY, artist TEXT); CREATE INDEX albums_artist ON albums(artist);"
       "CREATE TABLE songs(id INTEGER PRIMARY KEY, album INT, title TEXT);"
       "INSERT INTO albums " + ROWS % 3000 + "SELECT i, 'artist ' || (i % 1000) FROM n;"
       "INSERT INTO songs " + ROWS % 45000 + "SELECT i, i * 7919 % 3000 + 1, 'title ' || i FROM n;",
       "SELECT title FROM songs WHERE album IN (SELECT id FROM albums WHERE artist = ?)", lambda i: ("artist %d" % (i % 1000),),
       "unindexed_scan", "SELECT title FROM songs")


@program("CREATE TABLE unused(x);", "unindexed_scan", "FROM archive.invoices")
def scan_attached(path, timed):
    db = connect(path)
    db.execute("ATTACH ? AS archive", (path + "-archive",))
    db.execute("CREATE TABLE archive.invoices(id INTEGER PRIMARY KEY, number TEXT, amount REAL)")
    db.execute("INSERT INTO archive.invoices " + ROWS % 40000 + "SELECT i, 'RE-' || i, i / 7.0 FROM n")
    repeat(db, timed, "SELECT amount FROM archive.invoices WHERE number = ?", lambda i: ("RE-%d" % i,))


select("expression_month", "CREATE TABLE payments(id INTEGER PRIMARY KEY, paid_at TEXT, cents INT); CREATE INDEX payments_at ON payments(paid_at);"
       "INSERT INTO payments " + ROWS % 30000 + "SELECT i, datetime(1500000000 + i * 4000, 'unixepoch'), i % 9000 FROM n;",
       "SELECT sum(cents) FROM payments WHERE strftime('%Y-%m', paid_at) = ?", lambda i: ("2018-%02d" % (i % 12 + 1),),
       "expression_scan", "FROM payments")
select("expression_cast", "CREATE TABLE villes(id INTEGER PRIMARY KEY, \"code postal\" TEXT UNIQUE, nom TEXT);"
       "INSERT INTO villes " + ROWS % 40000 + "SELECT i, printf('%05d', i), 'Ville n° ' || i FROM n;",
       "SELECT nom FROM villes WHERE CAST(\"code postal\" AS INTEGER) = ?", lambda i: (i % 40000,), "expression_scan", "SELECT nom FROM villes")


@program("CREATE TABLE \"Artikel\"(nr INTEGER PRIMARY KEY, \"Größe\" TEXT, preis INT); CREATE TABLE \"Änderungen\"(\"Größe\" TEXT, aufschlag INT);"
         "INSERT INTO \"Artikel\" " + ROWS % 300 + "SELECT i, 'G' || i, i FROM n;"
         "INSERT INTO \"Änderungen\" " + ROWS % 20000 + "SELECT 'G' || (i * 3), i % 9 FROM n;", "automatic_index", "UPDATE \"Artikel\"")
def automatic_update_from(path, timed):
    db = transaction(connect(path))
    repeat(db, timed, 'UPDATE "Artikel" SET preis = preis + ä.aufschlag FROM "Änderungen" AS ä WHERE ä."Größe" = "Artikel"."Größe" AND nr > 0', nothing)
    db.execute("COMMIT")


select("sort_window", "CREATE TABLE players(id INTEGER PRIMARY KEY, region TEXT, score INT);"
       "INSERT INTO players " + ROWS % 30000 + "SELECT i, 'region ' || (i * 7 % 40), i * 7919 % 100003 FROM n;",
       "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY region ORDER BY score DESC) AS place FROM players) WHERE place <= 3",
       nothing, "sort", "FROM players")
select("sort_newest", "CREATE TABLE devices(id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE events(id INTEGER PRIMARY KEY, device INT, kind TEXT, at INT);"
       "CREATE INDEX events_kind ON events(kind); INSERT INTO devices " + ROWS % 100 + "SELECT i, 'd' || i FROM n;"
       "INSERT INTO events " + ROWS % 40000 + "SELECT i, i % 100 + 1, 'kind' || (i % 4), i * 7919 % 1000003 FROM n;",
       "SELECT e.id, d.name FROM events AS e JOIN devices AS d ON d.id = e.device WHERE e.kind = ? ORDER BY e.at DESC LIMIT 20",
       lambda i: ("kind%d" % (i % 4),), "sort", "SELECT e.id")

LIBRARY = ("CREATE TABLE authors(id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE publishers(id INTEGER PRIMARY KEY, name TEXT);"
           "CREATE TABLE books(id INTEGER PRIMARY KEY, author INT, publisher INT, title TEXT); CREATE TABLE reviews(book INT, stars INT);"
           "CREATE INDEX reviews_book ON reviews(book);"
           "INSERT INTO authors " + ROWS % 2000 + "SELECT i, 'a' || i FROM n; INSERT INTO publishers " + ROWS % 200 + "SELECT i, 'p' || i FROM n;"
           "INSERT INTO books " + ROWS % 20000 + "SELECT i, i % 2000 + 1, i % 200 + 1, 't' || i FROM n; INSERT INTO reviews " + ROWS % 30000
           + "SELECT i % 20000 + 1, i % 5 FROM n;")


@program(LIBRARY, "repeated_lookup", "FROM authors", "repeated_lookup")
def lookup_of_an_orm(path, timed):
    db = connect(path)
    for book, author, publisher in db.execute("SELECT id, author, publisher FROM books WHERE title > 't' LIMIT 8000").fetchall():
        timed(lambda: db.execute("SELECT id, name FROM authors WHERE id = ?", (author,)).fetchone())
        db.execute("SELECT id, name FROM publishers WHERE id = ?", (publisher,)).fetchone()
        db.execute("SELECT avg(stars) FROM reviews WHERE book = ?", (book,)).fetchone()


@program("CREATE TABLE products(sku TEXT PRIMARY KEY, title TEXT) WITHOUT ROWID; CREATE TABLE lines(id INTEGER PRIMARY KEY, basket INT, sku TEXT);"
         "CREATE INDEX lines_basket ON lines(basket);"
         "INSERT INTO products " + ROWS % 20000 + "SELECT printf('SKU%07d', i), 'title' FROM n;"
         "INSERT INTO lines " + ROWS % 40000 + "SELECT i, i / 40, printf('SKU%07d', i * 7919 % 20000 + 1) FROM n;", "repeated_lookup", "FROM products", "mutex slow_consumer")  # threads of Python wait for its lock between two rows
def lookup_in_threads(path, timed):
    def serve(first):
        db = connect(path)
        for basket in range(first, first + 250):
            for (sku,) in db.execute("SELECT sku FROM lines WHERE basket = ?", (basket,)):
                db.execute("SELECT title FROM products WHERE sku = ?", (sku,)).fetchone()
    threads = [threading.Thread(target=serve, args=(first,)) for first in (0, 250, 500)]

    def run():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    timed(run)


@program(FORUM, "slow_consumer", "SELECT body FROM posts")
def consumer_compresses(path, timed):
    def run():
        cursor = connect(path).execute("SELECT body FROM posts WHERE id <= 400")
        while rows := cursor.fetchmany(10):
            for row in rows:
                zlib.compress(row[0].encode() * 4000, 9)
    timed(run)


@program(FORUM, "offset", "SELECT p.id, m.nick")
def pages_of_an_export(path, timed):
    db = connect(path)
    for page in range(0, 30000, 100):
        timed(lambda: db.execute("SELECT p.id, m.nick FROM posts p JOIN members m ON m.id = p.author ORDER BY p.id LIMIT 100 OFFSET ?", (page,)).fetchall())


@program("CREATE TABLE tracks(code TEXT PRIMARY KEY, name TEXT); INSERT INTO tracks " + ROWS % 5000 + "SELECT 'C' || i, 'n' FROM n;",
         "preparing", "FROM tracks")
def prepared_in_lists(path, timed):
    db = connect(path)
    for i in for_a_while():
        codes = ", ".join("'C%d'" % (i * 13 % 5000 + k) for k in range(i % 4 + 1))
        timed(lambda: db.execute("SELECT code, name FROM tracks WHERE code IN (" + codes + ") AND name <> ''").fetchall())


@program("CREATE TABLE counters(name TEXT PRIMARY KEY, hits INT);", "commit_sync", "INSERT INTO counters")
def upserts_autocommit(path, timed):
    db = connect(path)
    for i in range(400):
        timed(lambda: db.execute("INSERT INTO counters VALUES (?, 1) ON CONFLICT(name) DO UPDATE SET hits = hits + 1", ("c%d" % (i % 30),)))


@program("CREATE TABLE projects(code TEXT PRIMARY KEY); CREATE TABLE tasks(id INTEGER PRIMARY KEY, project TEXT REFERENCES projects, title TEXT);"
         "INSERT INTO projects " + ROWS % 3000 + "SELECT 'P' || i FROM n; INSERT INTO tasks " + ROWS % 20000
         + "SELECT i, 'P' || (2000 + i % 1000), 'task' FROM n;", "foreign_key", "DELETE FROM projects")
def foreign_key_no_action(path, timed):
    db = connect(path)
    db.execute("PRAGMA foreign_keys = ON")
    transaction(db)
    for i in range(250):
        timed(lambda: db.execute("DELETE FROM projects WHERE code = ?", ("P%d" % (i + 1),)))
    db.execute("COMMIT")


@program("CREATE TABLE accounts(id INTEGER PRIMARY KEY, balance INT); CREATE TABLE bookings(id INTEGER PRIMARY KEY, account INT, amount INT);"
         "CREATE INDEX bookings_account ON bookings(account, amount); INSERT INTO accounts " + ROWS % 10 + "SELECT i, 0 FROM n;"
         "INSERT INTO bookings " + ROWS % 20000 + "SELECT i, i % 10 + 1, i % 100 FROM n; CREATE TRIGGER keep_balance AFTER INSERT ON bookings BEGIN "
         "UPDATE accounts SET balance = (SELECT sum(amount) FROM bookings WHERE account = new.account) WHERE id = new.account; END;",
         "trigger", "INSERT INTO bookings")
def trigger_sums(path, timed):
    db = sqlite3.connect(path)
    timed(lambda: db.executemany("INSERT INTO bookings(account, amount) VALUES (?, ?)", ((i % 10 + 1, i) for i in range(2000))))
    db.commit()


@program("CREATE TABLE rooms(id INTEGER PRIMARY KEY, guest TEXT); INSERT INTO rooms " + ROWS % 50 + "SELECT i, '' FROM n;",
         "idle_writer", "BEGIN IMMEDIATE", "commit_sync")
def idle_writer_calls_a_service(path, timed):
    held = threading.Event()

    def book():
        db = connect(path)
        for i in range(3):
            db.execute("BEGIN IMMEDIATE")
            db.execute("UPDATE rooms SET guest = 'held' WHERE id = ?", (i + 1,))
            held.set()
            time.sleep(0.3)
            db.execute("COMMIT")
    thread = threading.Thread(target=book)
    thread.start()
    held.wait()
    db = connect(path, timeout=60)
    for i in range(3):
        timed(lambda: db.execute("UPDATE rooms SET guest = 'walk-in' WHERE id = ?", (i + 20,)))
    thread.join()


@program("CREATE TABLE stock(item TEXT PRIMARY KEY, count INT); INSERT INTO stock VALUES ('nut', 900), ('bolt', 900); PRAGMA journal_mode = WAL;",
         "busy_snapshot", "UPDATE stock SET count = ?", "commit_sync")
def snapshot_of_a_stock(path, timed):
    one, two = connect(path), connect(path)
    for _ in range(15):
        one.execute("BEGIN")
        count = one.execute("SELECT count FROM stock WHERE item = 'nut'").fetchone()[0]
        two.execute("UPDATE stock SET count = count - 1 WHERE item = 'bolt'")
        try:
            one.execute("UPDATE stock SET count = ? WHERE item = 'nut'", (count - 1,))
            raise SystemExit("it was not refused")
        except sqlite3.OperationalError:
            one.execute("ROLLBACK")
    timed(lambda: None)


JOBS = "INSERT INTO jobs " + ROWS % 40000 + "SELECT i, 'q' || (i * 7919 % 4000), i % 2 FROM n"


@program("CREATE TABLE jobs(id INTEGER PRIMARY KEY, queue TEXT, state INT); CREATE INDEX jobs_queue ON jobs(queue); CREATE INDEX jobs_state ON jobs(state);"
         + JOBS + "; ANALYZE;", "slower_plan", "SELECT count(*), max(id)")
def slower_after_analyze(path, timed):
    db = connect(path)
    sql = "SELECT count(*), max(id) FROM jobs WHERE queue = ? AND state = 1"
    repeat(db, lambda run: run(), sql, lambda i: ("q%d" % (i % 4000),), 0.15)
    transaction(db)
    db.execute("DELETE FROM jobs")
    db.execute("INSERT INTO jobs " + ROWS % 300 + "SELECT 100000 + i, 'q1', i + 10 FROM n")
    db.execute("ANALYZE")
    db.execute(JOBS)
    db.execute("COMMIT")
    repeat(db, timed, sql, lambda i: ("q%d" % (i % 4000),))


# --- nothing is wrong ---------------------------------------------------------------------------------------------------

SHOP = ("CREATE TABLE countries(code TEXT, name TEXT); INSERT INTO countries " + ROWS % 30 + "SELECT 'c' || i, 'Country ' || i FROM n;"
        "CREATE TABLE sales(id INTEGER PRIMARY KEY, country TEXT, basket INT, cents INT, at TEXT, extra TEXT);"
        "INSERT INTO sales " + ROWS % 40000 + "SELECT i, 'c' || (i % 30 + 1), i / 20, i * 7919 % 10007, datetime(1600000000 + i * 600, 'unixepoch'), "
        "json_object('tag', i % 2000) FROM n; CREATE INDEX sales_basket ON sales(basket);")


def fine(name, sql, values=lambda i: (i % 2000,), setup=SHOP):
    select(name, setup, sql, values)


fine("fine_lookup_table", "SELECT name FROM countries WHERE code = ?", lambda i: ("c%d" % (i % 30 + 1),))
fine("fine_report", "SELECT count(*), sum(cents), avg(length(extra)), min(at), max(at) FROM sales", nothing)
# An index on (basket, cents) would save a fifth of the time.
select("fine_small_sort", SHOP, "SELECT id, cents FROM sales WHERE basket = ? ORDER BY cents DESC", lambda i: (i % 2000,), also="sort")
fine("fine_offset_zero", "SELECT id, cents FROM sales WHERE basket >= ? ORDER BY basket LIMIT 20 OFFSET 0")
fine("fine_json_index", "SELECT id FROM sales WHERE json_extract(extra, '$.tag') = ?", setup=SHOP + "CREATE INDEX sales_tag ON sales(json_extract(extra, '$.tag'));")
fine("fine_partial", "SELECT id, at FROM sales WHERE cents > 9990 AND country = 'c5'", nothing,
     SHOP + "CREATE INDEX sales_large ON sales(country) WHERE cents > 9990;")
fine("fine_subquery_joined", "WITH spent AS (SELECT basket, sum(cents) AS s FROM sales WHERE basket BETWEEN ?1 AND ?1 + 100 GROUP BY basket) "
     "SELECT b.value, spent.s FROM json_each('[1, 2, 3, 50, 90]') AS b LEFT JOIN spent ON spent.basket = b.value + ?1", lambda i: (i % 1900,))
fine("fine_search", "SELECT rowid FROM notes WHERE notes MATCH ? ORDER BY rank LIMIT 5", lambda i: ("x%d" % (i % 500),),
     "CREATE VIRTUAL TABLE notes USING fts5(t); INSERT INTO notes " + ROWS % 20000 + "SELECT 'x' || (i % 500) || ' and y' || (i % 77) FROM n;")
fine("fine_tree", "WITH RECURSIVE below(id) AS (SELECT ?1 UNION ALL SELECT n.id FROM nodes n JOIN below b ON n.parent = b.id) SELECT count(*) FROM below",
     lambda i: (i % 300 + 1,), "CREATE TABLE nodes(id INTEGER PRIMARY KEY, parent INT); CREATE INDEX nodes_parent ON nodes(parent); INSERT INTO nodes "
     + ROWS % 30000 + "SELECT i, i / 3 FROM n;")
fine("fine_long_statement", "SELECT s.id, c.name, CASE WHEN s.cents > 5000 THEN 'a' WHEN s.cents > 500 THEN 'b' ELSE 'c' END, (SELECT max(x.cents) FROM sales x "
     "WHERE x.basket = s.basket), (SELECT count(*) FROM sales y WHERE y.basket = s.basket AND y.cents > 10) FROM sales s JOIN countries c "
     "ON c.code = s.country WHERE s.id = ?", lambda i: (i % 40000 + 1,),
     SHOP + "CREATE UNIQUE INDEX countries_code ON countries(code);")


@program(SHOP)
def fine_import(path, timed):
    db = transaction(connect(path))
    for i in range(20000):
        db.execute("INSERT INTO sales(country, basket, cents) VALUES ('c1', ?, ?)", (i, i % 77))
        if i % 10 == 0:
            db.execute("UPDATE sales SET cents = 0 WHERE basket = ?", (i // 10,))
    db.execute("COMMIT")


@program(SHOP)
def fine_stream(path, timed):
    db = connect(path)
    for _ in for_a_while():
        total = 0
        for _, cents in db.execute("SELECT id, cents FROM sales"):
            total += cents


@program("CREATE TABLE kv(k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID; INSERT INTO kv " + ROWS % 10000 + "SELECT 'k' || i, randomblob(30) FROM n;")
def fine_key_values(path, timed):
    db = transaction(connect(path))
    for i in for_a_while():
        db.execute("SELECT v FROM kv WHERE k = ?", ("k%d" % (i * 7919 % 10000 + 1),)).fetchone()
        if i % 5 == 0:
            db.execute("INSERT OR REPLACE INTO kv VALUES (?, ?)", ("k%d" % (i % 10000), b"v"))
    db.execute("COMMIT")


@program("CREATE TABLE bookings(id INTEGER PRIMARY KEY, account INT, amount INT); CREATE INDEX by_account ON bookings(account);"
         "CREATE TRIGGER positive BEFORE INSERT ON bookings WHEN new.amount < 0 BEGIN SELECT RAISE(ABORT, 'negative'); END;")
def fine_check_trigger(path, timed):
    db = sqlite3.connect(path)
    db.executemany("INSERT INTO bookings(account, amount) VALUES (?, 5)", ((i % 10,) for i in range(60000)))
    db.commit()


@program("CREATE TABLE teams(id INTEGER PRIMARY KEY); CREATE TABLE people(team INT REFERENCES teams(id) ON DELETE CASCADE, nr INT, name TEXT, "
         "PRIMARY KEY(team, nr)) WITHOUT ROWID; INSERT INTO teams " + ROWS % 5000 + "SELECT i FROM n; INSERT INTO people " + ROWS % 40000
         + "SELECT i % 5000 + 1, i, 'name' FROM n;")
def fine_cascade(path, timed):
    db = connect(path)
    db.execute("PRAGMA foreign_keys = ON")
    transaction(db)
    for i in range(5000):
        db.execute("DELETE FROM teams WHERE id = ?", (i + 1,))
    db.execute("COMMIT")


@program(SHOP + "PRAGMA journal_mode = WAL;", also="mutex")
def fine_readers_and_writer(path, timed):
    def read():
        db = connect(path)
        for i in for_a_while():
            db.execute("SELECT sum(cents) FROM sales WHERE basket = ?", (i % 2000,)).fetchone()
    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    db = transaction(connect(path))
    for i in range(3000):
        db.execute("UPDATE sales SET cents = cents + 1 WHERE id = ?", (i + 1,))
    db.execute("COMMIT")
    for thread in threads:
        thread.join()


@program(SHOP)
def fine_bulk_delete(path, timed):
    connect(path).execute("DELETE FROM sales WHERE at < '2021-05-01'")


@program(SHOP)
def fine_create_table_as(path, timed):
    connect(path).execute("CREATE TABLE copy AS SELECT id, country, cents, upper(extra) AS e FROM sales")


@program(SHOP)
def fine_requests(path, timed):
    db = connect(path)
    for i in for_a_while():
        db.execute("SELECT country, cents FROM sales WHERE id = ?", (i * 7919 % 40000 + 1,)).fetchone()
        db.execute("SELECT id, cents FROM sales WHERE basket = ?", (i * 31 % 2000,)).fetchall()


# --- problems that developers report --------------------------------------------------------------------------------

CHATS = ("CREATE TABLE chats(id INTEGER PRIMARY KEY, title TEXT); CREATE TABLE messages(id INTEGER PRIMARY KEY, chat_id INT, sent INT);"
         "INSERT INTO chats " + ROWS % 100 + "SELECT i, 'chat ' || i FROM n; INSERT INTO messages " + ROWS % 10000 + "SELECT i, i % 100 + 1, i FROM n;")
# The subquery reads all messages. An index on the key of chats, with which it compares, would save nothing.
select("scan_newest_of_each", CHATS, "SELECT title, (SELECT max(sent) FROM messages m WHERE m.chat_id = c.id) AS newest FROM chats c",
       nothing, "unindexed_scan", "SELECT title")
# SQLite has no statistics of the values, and prefers the index on two columns.
select("search_flags", "CREATE TABLE tickets(id INTEGER PRIMARY KEY, status TEXT, deleted INT, customer INT, title TEXT);"
       "CREATE INDEX tickets_customer ON tickets(customer); CREATE INDEX tickets_status ON tickets(status, deleted);"
       "INSERT INTO tickets " + ROWS % 30000 + "SELECT i, iif(i % 50, 'open', 'shut'), 0, i % 3000, 'title ' || i FROM n;",
       "SELECT id, title FROM tickets WHERE customer = ? AND status = 'open' AND deleted = 0", lambda i: (i % 3000,), "poor_search", "FROM tickets")
PICTURES = ("CREATE TABLE pictures(id INTEGER PRIMARY KEY, name TEXT, album INT, data BLOB);"
            "INSERT INTO pictures " + ROWS % 60 + "SELECT i, 'picture ' || i, i % 4, zeroblob(100000) FROM n;")
select("wide_values_all_columns", PICTURES, "SELECT * FROM pictures WHERE album < ?", lambda i: (4,), "wide_values", "FROM pictures", "repeated_reads wide_rows slow_consumer")  # Python copies the values


@program(FORUM, "whole_database", "integrity_check")
def check_at_start(path, timed):
    for _ in range(3):
        db = connect(path)
        timed(lambda: db.execute("PRAGMA integrity_check").fetchall())
        db.execute("SELECT nick FROM members WHERE id = 7").fetchall()
        db.close()


# The program writes between two rows of the cursor, so the time between them is that of its transactions.
@program(SHOP, "commit_sync", "UPDATE sales")
def commit_while_reading(path, timed):
    db = connect(path)
    for (i,) in db.execute("SELECT id FROM sales WHERE id <= 60"):
        timed(lambda: db.execute("UPDATE sales SET cents = cents + 1 WHERE id = ?", (i,)))


@program("PRAGMA page_size = 65536;" + SHOP, "repeated_reads", "SELECT extra")
def small_cache_of_short_runs(path, timed):
    db = connect(path)
    db.execute("PRAGMA cache_size = 2")
    time.sleep(1)  # queryprof reads no counters of a connection that lives for less than a second
    repeat(db, timed, "SELECT extra FROM sales WHERE id = ?", lambda i: (i * 7919 % 40000 + 1,), 0.6)


@program("CREATE TABLE unused(x);")
def fine_load_append(path, timed):
    """The cache is full, but no page is written twice."""
    db = connect(path)
    db.execute("PRAGMA cache_size = 20")
    db.execute("CREATE TABLE readings(id INTEGER PRIMARY KEY, sensor TEXT, value REAL)")
    transaction(db).executemany("INSERT INTO readings(sensor, value) VALUES (?, ?)", (("sensor %d" % (i % 90), i / 7) for i in range(250000)))
    db.execute("COMMIT")


@program("CREATE TABLE unused(x); PRAGMA journal_mode = WAL;")
def fine_load_wal(path, timed):
    """The only commit writes the WAL back."""
    db = connect(path)
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE readings(id INTEGER PRIMARY KEY, sensor TEXT, value REAL)")
    transaction(db).executemany("INSERT INTO readings(sensor, value) VALUES (?, ?)", (("sensor %d" % (i % 90), i / 7) for i in range(150000)))
    db.execute("COMMIT")


@program("CREATE TABLE unused(x);")
def fine_many_values(path, timed):
    db = connect(path)
    db.execute("CREATE TABLE readings(id INTEGER PRIMARY KEY, sensor TEXT, value REAL)")
    db.execute("PRAGMA foreign_keys = ON")
    text = "INSERT INTO readings(sensor, value) VALUES " + ", ".join(["(?, ?)"] * 400)
    transaction(db)
    for i in range(150):
        db.execute(text, [value for j in range(400) for value in ("sensor %d" % j, i)])
    db.execute("COMMIT")


@program(SHOP)
def fine_insert_from_view(path, timed):
    db = connect(path)
    db.execute("CREATE TABLE copies(id INTEGER PRIMARY KEY, cents INT)")
    db.execute("CREATE VIEW all_sales AS SELECT id, cents + 1 AS cents FROM sales")
    transaction(db).execute("INSERT INTO copies SELECT id, cents FROM all_sales")
    db.execute("COMMIT")


@program(PICTURES)
def fine_pictures(path, timed):
    db = connect(path)
    for i in for_a_while():
        db.execute("SELECT * FROM pictures WHERE id = ?", (i % 60 + 1,)).fetchall()


if __name__ == "__main__":
    main(PROGRAMS)
