#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exports of a file with so many samples that they write ended runs while they read later ones. The file has simultaneous
runs of several threads, a run that lasts as long as the file, and samples without a run.

usage: test_many.py QUERYPROF SOURCE_DIR FIXTURE [unittest arguments]"""

import json
import os
import re
import sqlite3
import struct
import unittest
from collections import Counter

import support
from pprof_profile import Profile, fields
from pprof_profile import numbers as packed

SAMPLES = 300_000
OTLP_SAMPLES = 1_150_000
STEP = 1000
RUN = 4000  # samples from the beginning of a run to the beginning of its thread's next run
THREADS = 4


def sql(samples):
    return f"""
DELETE FROM samples; DELETE FROM queries WHERE id; DELETE FROM series; DELETE FROM threads;
INSERT INTO label_sets VALUES (1, 1, 1, '{{"route":"/a"}}', '', '', ''), (2, 2, 1, '{{"route":"/b","size":7}}', '', '', '');
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {THREADS})
INSERT INTO threads SELECT i, 1, 100 + i, 'worker ' || i FROM n;
INSERT INTO series (id, thread, trace_type, period_ns, epoch) SELECT id, id, 'CPU', 1000, 1 FROM threads;
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {samples} - 1)
INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size, labels)
SELECT {support.START} + i * {STEP}, thread, CASE WHEN thread = 4 THEN 1 WHEN i % 7 = 0 THEN 0 ELSE 2 + i / {RUN} * 3 + thread END,
       1 + i * 7919 % 4, 0, 1 + i % 3, 0, 0, i % 11 % 3
FROM (SELECT i, 1 + i * 104729 % {THREADS} AS thread FROM n);
INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial, statement, query_start_ns, query_duration_ns,
    cpu_time_ns, database, thread_id, samples_cpu)
SELECT query, iif(query % 10, printf('%08x-77c1-7aaa-8000-000000000001', query), 'an id of several'), 1, min(timestamp_ns), max(timestamp_ns), 1,
       query, 1 + query % 4, min(timestamp_ns), {RUN} * {STEP}, 1000, '/data/' || query % 3 || '.db', 101, count(*)
FROM samples WHERE query GROUP BY query;
"""


class Many(support.Exports):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.many = support.changed_copy(cls.trace, os.path.join(cls.folder, "many.trace"), sql(SAMPLES))
        db = sqlite3.connect(cls.many)
        # By run, because two runs have one id.
        cls.sums = Counter({(query or "", f"{name} ({thread_id})", database or "", (statement or "").strip(), labels or "", stack): (samples, value)
                            for query, name, thread_id, database, statement, labels, stack, samples, value in db.execute(
            "SELECT q.query_id, thread_name, t.thread_id, database, x.query, l.labels, s.stack, count(*), sum(weight * period_ns)"
            " FROM samples AS s JOIN series AS r ON r.id = s.series JOIN threads AS t ON t.id = r.thread"
            " LEFT JOIN queries AS q ON q.id = s.query AND q.id LEFT JOIN statements AS x ON x.id = q.statement"
            " LEFT JOIN label_sets AS l ON l.id = s.labels AND s.labels GROUP BY 1, 2, 3, 4, 5, 6, 7")})
        db.close()
        # The stacks by their leaves, which are unique in the file.
        cls.leaves = {"fixture_static": 1, support.HOLE: 2, support.WALK: 3, "0x1234": 4}

    def check(self, found, count):
        """Each stack of each run, thread and set of labels occurs once, with its sums."""
        sums = {}
        for key, (samples, value) in found:
            before = sums.get(key, (0, 0))
            sums[key] = before[0] + samples, before[1] + value
        self.assertEqual(sums, dict(self.sums))
        self.assertEqual(len(found), count)

    def count(self):
        db = sqlite3.connect(self.many)
        try:
            return db.execute("SELECT count(*) FROM (SELECT DISTINCT query, series, labels, stack FROM samples)").fetchone()[0]
        finally:
            db.close()

    def test_json(self):
        document = json.loads(self.export(self.many, "json"))
        labels, statements = document["labels"], document["statements"]
        found = []
        for sample in document["samples"]:
            of = labels[sample["labels"]]
            stack = self.leaves[document["frames"][document["stacks"][sample["stack"]]["frames"][0]]["lines"][0]["function"]]
            found.append(((of["query_id"], of["thread"], of["database"], statements[of["statement"]],
                           json.dumps(of["labels"], separators=(",", ":")) if "labels" in of else "", stack),
                          (sample["samples"], sample["value"])))
        self.check(found, self.count())
        self.assertEqual(len(labels), len({sample["labels"] for sample in document["samples"]}))
        self.assertEqual(len(statements), 5)

    def test_pprof(self):
        profile = Profile(self.export_bytes(self.many, "pprof"), unique=False)
        known = ("query_id", "thread", "database", "statement")
        found = []
        for frames, values, labels in profile.samples:
            own = {name: text for name, text in labels.items() if name not in known}
            if "size" in own:
                own["size"] = 7
            found.append(((*(labels.get(name, "") for name in known),
                           json.dumps(own, separators=(",", ":")) if own else "", self.leaves[frames[0][0]]), tuple(values)))
        self.check(found, self.count())
        self.assertEqual(profile.duration_nanos, (SAMPLES - 1) * STEP)

    def test_otlp(self):
        """The file has more samples than a profile can contain. Each sample has its own time and labels."""
        path = support.changed_copy(self.trace, os.path.join(self.folder, "otlp.trace"), sql(OTLP_SAMPLES))
        message = list(fields(self.export_bytes(path, "otlp")))
        strings, items = [], []
        for number, item in fields(message[-1][1]):
            if number == 5:
                strings.append(item.decode())
            elif number == 6:
                items.append(dict(fields(item)))
        named = [(strings[item.get(1, 0)], dict(fields(item[2])) if 2 in item else {}) for item in items]
        named = [(name, value[1].decode() if 1 in value else value.get(3)) for name, value in named]
        profiles = [dict(fields(dict(fields(resource))[2]))[2] for number, resource in message if number == 1]
        self.assertEqual(len(profiles), 2)
        times, sums, known = [], Counter(), {}
        for sample in (dict(fields(item)) for profile in profiles for number, item in fields(profile) if number == 2):
            if sample[2] not in known:
                own = dict(named[i] for i in packed([sample[2]]))
                known[sample[2]] = own["thread.id"], own.get("query_id", ""), own.get("route", "")
            values = list(packed([sample[4]]))
            self.assertEqual(8 * len(values), len(sample[5]))
            times += struct.unpack(f"<{len(values)}Q", sample[5])
            sums[known[sample[2]]] += sum(values)
        db = sqlite3.connect(path)
        rows = db.execute("SELECT t.thread_id, coalesce(q.query_id, ''), coalesce(l.labels ->> 'route', ''), sum(weight * period_ns)"
                          " FROM samples AS s JOIN series AS r ON r.id = s.series JOIN threads AS t ON t.id = r.thread"
                          " LEFT JOIN queries AS q ON q.id = s.query AND q.id LEFT JOIN label_sets AS l ON l.id = s.labels AND s.labels"
                          " GROUP BY 1, 2, 3").fetchall()
        db.close()
        self.assertEqual(sums, {(thread, query, route): value for thread, query, route, value in rows})
        self.assertEqual(sorted(times), [support.START + i * STEP for i in range(OTLP_SAMPLES)])

    def group(self, statement):
        """A name for statements that differ only in a literal."""
        return re.sub(r"id = \d", "id = 1", re.sub(r"[\0- ]+", " ", statement))

    @unittest.skipIf("not in this build" in support.HELP, "this build has no page")
    def test_flamegraph(self):
        page = self.export(self.many, "flamegraph")
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
        wanted, found = Counter(), Counter()
        for (query, _, database, statement, labels, stack), (samples, _) in self.sums.items():
            wanted[query, self.group(statement) if query else "no query", labels, stack] += samples
        for node, query, labels, samples, _ in zip(*(data["samples"][i::5] for i in range(5))):
            statement, name = data["queries"][query][:2]
            found[name, self.group(data["statements"][statement]), data["labels"][labels],
                  self.leaves[data["functions"][data["nodes"][2 * node + 1]][0]]] += samples
        self.assertEqual(found, wanted)
        self.assertEqual(sum(count for _, count in data["types"]), len(data["samples"]) // 5)
        self.assertGreater(len(data["types"]), 1)
        self.assertEqual(sum(value for *_, value, _ in data["queries"]), sum(value for _, value in self.sums.values()))
        self.assertEqual(len({(name, statement) for statement, name, *_ in data["queries"]}), len(data["queries"]))

    def test_perfetto(self):
        # json.loads() would take longer than everything else.
        events = re.findall(rb'"tid":(\d+),"cat":"sample"[^\n]*?(?:,"query_id":"([^"]*)")?}}', self.export_bytes(self.many, "perfetto"))
        wanted = Counter()
        for (query, thread, *_), (count, _) in self.sums.items():
            wanted[thread.split("(")[1][:-1].encode(), query.encode()] += count
        self.assertEqual(Counter(events), wanted)


support.main()
