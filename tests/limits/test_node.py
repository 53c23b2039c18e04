#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The limits of the npm package, under node:test: for each limit an example that keeps it and one that exceeds it.

    test_node.py SOURCE_DIR LIBRARY NODE...

The first NODE that has node:sqlite is used. Exit status 77: none has."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, LIBRARY, *NODES = sys.argv[1:]

OPEN = """
const { DatabaseSync } = require('node:sqlite');
const queryprof = require('queryprof');
const db = new DatabaseSync(':memory:', { allowExtension: true });
db.exec('CREATE TABLE t(a INTEGER PRIMARY KEY, b);'
  + ' INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) SELECT i, i FROM n');
"""

# Assertions that must hold.
KEPT = OPEN + """
const { test } = require('node:test');
const assert = require('node:assert');
const run = (sql, times = 1) => () => { for (let i = 0; i < times; i++) db.prepare(sql).all(); };
const scan = 'SELECT count(*) FROM t WHERE b = 5', one = 'SELECT * FROM t WHERE a = 5';
const exceeded = (allowed, work) => {
  try {
    queryprof.limits(db, allowed, work);
  } catch (error) {
    assert.ok(error instanceof queryprof.LimitExceeded, error);
    return error.violations.map((violation) => violation.limit);
  }
  return [];
};

for (const [work, allowed, found] of [
  [run(scan), { maxScan: 998 }, ['maxScan']], [run(scan), { maxScan: 999 }, []],
  [run(one), { maxScan: 0, noSort: true, noAutoIndex: true }, []],
  [run('SELECT * FROM t ORDER BY b'), { noSort: true }, ['noSort']], [run('SELECT * FROM t ORDER BY b'), { noSort: false }, []],
  [run('SELECT * FROM t ORDER BY a'), { noSort: true }, []],
  [run('SELECT count(*) FROM t AS x JOIN t AS y ON x.b = y.b'), { noAutoIndex: true }, ['noAutoIndex']],
  [run('SELECT * FROM t'), { maxTime: 0 }, ['maxTime']], [run('SELECT * FROM t'), { maxTime: 3600 }, []],
  [run(one, 6), { maxRuns: 5 }, ['maxRuns']], [run(one, 5), { maxRuns: 5 }, []],
])
  test(JSON.stringify(allowed) + found, () => assert.deepEqual(exceeded(allowed, work), found));

test('what is checked', async () => {
  const label = () => db.prepare('PRAGMA query_profiler_labels').get()?.query_profiler_labels || '{}';
  queryprof.set(db, { log_queries_min_query_duration_ns: 12345 });
  queryprof.setLabels(db, { route: 'a' });
  run(scan)();
  assert.equal(queryprof.limits(db, { maxScan: 0 }, () => 7), 7);
  await assert.rejects(queryprof.limits(db, { maxScan: 10 }, async () => { await null; run(scan)(); }), {
    name: 'LimitExceeded', message: 'maxScan: a run visited 999 rows of whole tables: ' + scan });
  assert.equal(await queryprof.limits(db, { maxScan: 10 }, async () => 8), 8);
  await assert.rejects(queryprof.limits(db, { maxScan: 10 }, async () => { run(scan)(); throw new RangeError(); }), RangeError);
  assert.throws(() => queryprof.limits(db, { maxScan: 10 }, () => { run(scan)(); throw new RangeError(); }), RangeError);
  assert.throws(() => queryprof.limits(db, { maxScans: 10 }, () => {}), /^TypeError: maxScans is not a limit; expected maxScan, /);
  assert.equal(String(db.prepare("SELECT get_setting('log_queries_min_query_duration_ns') AS v").get().v), '12345');
  assert.deepEqual(JSON.parse(label()), { route: 'a' });
});
"""

# README's example.
EXAMPLE = OPEN + """
const { test } = require('node:test');
test('kept', () => queryprof.limits(db, { maxScan: 500 }, () => db.prepare('SELECT * FROM t WHERE a = 7').all()));
test('exceeded', () => queryprof.limits(db, { maxScan: 500 }, () => db.prepare('SELECT * FROM t WHERE b = 7').all()));
"""


def has_sqlite(node):
    return shutil.which(node) and not subprocess.run([node, "-e", "require('node:sqlite')"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                                     check=False).returncode


def main():
    node = next((node for node in NODES if has_sqlite(node)), None)
    if not node:
        print("no node with node:sqlite: tools/static-hosts --install gets one")
        return 77
    with tempfile.TemporaryDirectory(prefix="queryprof-limits-") as folder:
        platform = os.path.join(folder, "node_modules", "queryprof-linux-x64-glibc")
        shutil.copytree(os.path.join(SOURCE, "packaging/npm/queryprof"), os.path.join(folder, "node_modules", "queryprof"))
        os.makedirs(os.path.join(platform, "lib"))
        shutil.copy(os.path.join(SOURCE, "packaging/npm/platform.json"), os.path.join(platform, "package.json"))
        os.symlink(LIBRARY, os.path.join(platform, "lib", "libqueryprof.so"))
        said = []
        for name, program in ("kept", KEPT), ("example", EXAMPLE):
            path = os.path.join(folder, name + ".test.cjs")
            with open(path, "w", encoding="utf-8") as file:
                file.write(program)
            said.append(subprocess.run([node, "--no-warnings", "--test", "--test-reporter", "tap", path], cwd=folder, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, timeout=300, check=False))
    kept, example = said
    assert kept.returncode == 0 and re.search(r"^# pass 12$", kept.stdout, re.M) and "# skipped 0" in kept.stdout, kept.stdout
    assert example.returncode == 1 and re.search(r"^# pass 1$\n# fail 1$", example.stdout, re.M), example.stdout
    assert "maxScan: a run visited 999 rows of whole tables: SELECT * FROM t WHERE b = 7" in example.stdout, example.stdout
    return 0


sys.exit(main())
