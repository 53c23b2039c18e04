#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A host for tests/bench/whole_program: the work of a small web application in Python for each request, without the sockets.
It parses the request, queries the user, a page of articles and their tags, counts the visit, commits every twentieth
time, and renders HTML and JSON.

  web.py FILE REQUESTS"""
import html
import json
import sqlite3
import sys
import urllib.parse

REQUEST = "GET /articles?page={}&tag=sql HTTP/1.1\r\nHost: example.org\r\nCookie: session={}\r\nAccept: */*\r\n\r\n"


def fill(db):
    db.executescript("""
        PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
        CREATE TABLE user(id INTEGER PRIMARY KEY, session TEXT UNIQUE, name TEXT);
        CREATE TABLE article(id INTEGER PRIMARY KEY, author INTEGER, title TEXT, body TEXT);
        CREATE TABLE tag(article INTEGER, name TEXT, PRIMARY KEY(article, name)) WITHOUT ROWID;
        CREATE TABLE visit(id INTEGER PRIMARY KEY, user INTEGER, path TEXT);""")
    db.executemany("INSERT INTO user VALUES (?, ?, ?)", ((i, f"s{i}", f"user {i}") for i in range(500)))
    db.executemany("INSERT INTO article VALUES (?, ?, ?, ?)",
                   ((i, i % 500, f"About <{i}>", "text " * 40) for i in range(2000)))
    db.executemany("INSERT INTO tag VALUES (?, ?)",
                   ((i, name) for i in range(2000) for name in ("sql", "c", "web")[: 1 + i % 3]))
    db.commit()


def respond(db, number):
    head, *lines = REQUEST.format(number % 100, f"s{number % 500}").split("\r\n")
    path = urllib.parse.urlsplit(head.split()[1])
    query = dict(urllib.parse.parse_qsl(path.query))
    headers = dict(line.split(": ", 1) for line in lines if line)
    session = headers["Cookie"].partition("=")[2]
    user, name = db.execute("SELECT id, name FROM user WHERE session = ?", (session,)).fetchone()
    page = int(query["page"])
    articles = db.execute("SELECT a.id, a.title, a.body, u.name FROM article a JOIN user u ON u.id = a.author"
                          " WHERE a.id >= ? ORDER BY a.id LIMIT 10", (page * 10,)).fetchall()
    tags = {row[0]: [tag for (tag,) in db.execute("SELECT name FROM tag WHERE article = ?", (row[0],))]
            for row in articles}
    db.execute("INSERT INTO visit(user, path) VALUES (?, ?)", (user, path.path))
    if number % 20 == 0:
        db.commit()
    body = "".join(f"<li><h2>{html.escape(title)}</h2><p>{html.escape(text)}</p>{', '.join(tags[key])} by {author}</li>"
                   for key, title, text, author in articles)
    return f"<h1>Hello {name}</h1><ul>{body}</ul>", json.dumps({"user": user, "tags": tags})


def main():
    db = sqlite3.connect(sys.argv[1])
    fill(db)
    for number in range(int(sys.argv[2])):
        respond(db, number)
    db.commit()


main()
