# SPDX-License-Identifier: Apache-2.0
"""Endlessly creates stacks of all kinds in the interpreter, for inspection from outside."""
import json
import re
import sqlite3

def walk(n, text):
    if n:
        return walk(n - 1, text)
    data = json.loads(text)
    data.sort(key=lambda row: json.dumps(row))
    return len(re.sub(r"(\d+)x(\w+?)y", lambda m: m.group(1), text * 5)) + hash(str(data))

db = sqlite3.connect(":memory:")
db.create_function("twice", 1, lambda n: sum(sorted([n, n], key=lambda x: -x)))
text = json.dumps([{"a": i, "b": "%dxabcy" % (i * 7919 % 97)} for i in range(200)])
while True:
    walk(8, text)
    db.execute("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 300)"
               " SELECT twice(n), printf('%d-%s', n, n) FROM c ORDER BY 2").fetchall()
