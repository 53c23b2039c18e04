// SPDX-License-Identifier: Apache-2.0
'use strict';
const { AssertionError } = require('assert');
const { randomUUID } = require('crypto');
const { load, set, setLabels } = require('./index.js');

const WHILE = { log_queries: 1, log_queries_min_query_duration_ns: 0 };

const FOUND = `SELECT query, max(fullscan_steps) AS scanned, sum(sorts) AS sorts, sum(autoindexes) AS indexed,
  max(execution_time_ns) / 1e6 AS ms, count(*) AS runs FROM system.query_log
  WHERE labels ->> 'queryprof_limits' = ? AND type <> 'QueryStart' GROUP BY normalized_query_hash`;

// For each limit: a sentence if a row of FOUND exceeds it.
const LIMITS = {
  maxScan: (row, limit) => row.scanned > limit && `a run visited ${row.scanned} rows of whole tables`,
  noSort: (row, limit) => limit && row.sorts > 0 && `${row.sorts} sorts in ${row.runs} runs`,
  noAutoIndex: (row, limit) => limit && row.indexed > 0 && `${row.indexed} rows put into automatic indexes`,
  maxTime: (row, limit) => row.ms > limit * 1000 && `the longest run took ${row.ms.toFixed(3)} ms`,
  maxRuns: (row, limit) => row.runs > limit && `${row.runs} runs`,
};

class LimitExceeded extends AssertionError {
  constructor(violations) {
    super({ message: violations.map((one) => `${one.limit}: ${one.message}`).join('\n') });
    this.name = 'LimitExceeded';
    this.violations = violations;
  }
}

function settings(connection) {
  const read = (name) => connection.prepare('SELECT get_setting(?) AS value').get(name).value;
  return Object.fromEntries(Object.keys(WHILE).map((name) => [name, String(read(name))]));
}

/** Returns the connection's settings. Loads the extension if the connection does not have it. */
function loaded(connection) {
  try {
    return settings(connection);
  } catch {
    return settings(load(connection));
  }
}

function check(connection, allowed, mark) {
  const violations = [];
  for (const row of connection.prepare(FOUND).all(mark)) {
    for (const [limit, value] of Object.entries(allowed)) {
      const message = value != null && LIMITS[limit](row, value);
      if (message)
        violations.push({ limit, message: `${message}: ${row.query.trim().split(/\s+/).join(' ')}` });
    }
  }
  if (violations.length)
    throw new LimitExceeded(violations);
}

function limits(connection, allowed, work) {
  const unknown = Object.keys(allowed).find((name) => !Object.hasOwn(LIMITS, name));
  if (unknown !== undefined)
    throw new TypeError(`${unknown} is not a limit; expected ${Object.keys(LIMITS).join(', ')}`);
  const before = loaded(connection);
  const labels = JSON.parse(Object.values(connection.prepare('PRAGMA query_profiler_labels').get() ?? {})[0] || '{}');
  const mark = randomUUID();
  const restore = () => {
    setLabels(connection, labels);
    set(connection, before);
  };
  const done = (result) => {
    restore();
    check(connection, allowed, mark);
    return result;
  };
  const failed = (error) => {
    restore();
    throw error;
  };
  set(connection, WHILE);
  setLabels(connection, { ...labels, queryprof_limits: mark });
  let result;
  try {
    result = work();
  } catch (error) {
    failed(error);
  }
  return typeof result?.then === 'function' ? result.then(done, failed) : done(result);
}

module.exports = { limits, LimitExceeded };
