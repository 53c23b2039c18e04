#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes that people make when they type, and the command's answers, to the letter: golden/mistakes.txt contains the status
and the message of each. QUERYPROF_TEST_GOLDEN=write in the environment writes it again, as in test_golden.py.

usage: as tool.py"""

import os
import shlex

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tool import SOURCE, Tool, main, run

MISTAKES = """
queris app.trace
reprot
lock app.trace
--versoin
hepl
report app.trac
report ap.trace
report nowhere/app.trace
report /
report app.txt
report empty.trace
report http://127.0.0.1:1/
advise app.trace
advise app.trace --database app.trace --for 1
advise app.trace --database app.trace --for 10ms
advise app.trace --database nowhere.db
analyze
analyze app.db
analyze nowhere.db 'SELECT 1'
analyze nowhere.db 'SELECT 1' --for 10ms
analyze nowhere.db 'SELECT 1' --pragma journal_mode=wal
queries app.trace more most
queries app.trace --limit
queries app.trace --limit x
queries app.trace --limit -1
queries app.trace --last 5m
queries app.trace --last 2h
queries app.trace --last x
queries app.trace --by time
queries app.trace --by label:
queries app.trace --stament 1
queries app.trace --statements=1
queries app.trace --runs --statements
queries app.trace --runs --regressed
queries app.trace --regressed --by wall
queries app.trace --runs --by label:route
queries app.trace --format xml
queries app.trace --query 9999
queries app.trace --query 0193a5b2
queries app.trace --statement zz
queries app.trace --like nowhere.else
queries app.trace --failed --database nowhere.db
queries app.trace --process nobody
queries app.trace --label route
queries app.trace --label =users
queries app.trace --min-duration 10
queries app.trace --min-duration 5m
queries app.trace --min-duration soon
queries app.trace --since soon
queries app.trace --since 10
queries app.trace --until 2026-02-30
queries app.trace orders --like orders
report app.trace orders --like orders
plan app.trace orders --like orders
plan app.trace nowhere.else
pages app.trace --by table
pages app.trace --since soon
pages app.trace --statement zz
pages app.trace --walk nowhere.db
pages app.trace --walk app.txt
report app.trace --type sundial
report app.trace --tpye cpu
diff app.trace
diff app.trace --query a
diff app.trace --with a
diff app.trace --at soon
diff app.trace --at now --since now
trace app.trace
trace app.trace 1234
sql app.trace "SELECT * FROM qery_log"
sql app.trace "SELECT * FROM orders"
sql app.trace "SELEC 1"
sql app.trace "SELECT qery FROM query_log"
sql app.trace "SELECT customer FROM query_log"
sql app.trace "SELECT wait_ns FROM query_log"
--hepl
check app.trace --max-time 50
check app.trace --format tapp --no-sort
export app.trace
export app.trace -o out.txt
export app.trace -o out.json --fromat json
export app.trace -o out.json --format jsn
export app.trace -o out.json --root label:route
export app.trace -o out.json --diff app.trace
export app.trace --format json
record
record --cpu 10 true
record --cpu 1m true
record --cpu fast true
record --off-cpu 1x true
record --setting cpu true
record --seting a=1 true
push app.trace
pull
embed nowhere.trace
"""


class Mistakes(Tool):
    def test_messages(self):
        os.chdir(self.folder)
        open("empty.trace", "w", encoding="ascii").close()
        with open("app.txt", "w", encoding="ascii") as file:
            file.write("a text\n" * 1000)
        answers = []
        for line in MISTAKES.strip().splitlines():
            status, out, err = run(*shlex.split(line))
            self.assertIn(status, (1, 2), line)
            self.assertEqual(out, "", line)
            answers.append("$ queryprof %s\n%d  %s" % (line, status, err))
        path = os.path.join(SOURCE, "tests", "command", "golden", "mistakes.txt")
        if os.environ.get("QUERYPROF_TEST_GOLDEN") == "write":
            with open(path, "w", encoding="utf-8") as file:
                file.write("".join(answers))
        with open(path, encoding="utf-8") as file:
            self.assertEqual("".join(answers), file.read())
        self.assertGreaterEqual(len(answers), 60)


if __name__ == "__main__":
    main()
