/** A connection of better-sqlite3, of node:sqlite (opened with `allowExtension: true`) or of bun:sqlite. */
export interface Connection {
  exec(sql: string): unknown;
  loadExtension(path: string): unknown;
}

/** Settings by their names in docs/sql-reference.md, such as `query_profiler_cpu_time_period_ns`. */
export type Settings = Record<string, number | bigint | string>;

/** The command. Throws an Error if this system has no package. */
export const command: string;

/** The SQLite extension and C library. Throws as `command` does. */
export const library: string;

/**
 * Loads the extension into a connection, changes settings, and returns the connection.
 * Errors are SQLite's, and name the setting, its value and what is allowed.
 */
export function load<T extends Connection>(connection: T, settings?: Settings): T;

/** Changes settings of a connection that has the extension. */
export function set(connection: Connection, settings: Settings): void;

/** Labels of the connection's queries from the next one on, in place of those that it had. `{}` removes all. */
export function setLabels(connection: Connection, labels: Record<string, string | number>): void;

export interface Limits {
  /** Rows of whole tables that one run visits. */
  maxScan?: number;
  noSort?: boolean;
  noAutoIndex?: boolean;
  /** Seconds inside SQLite of one run. */
  maxTime?: number;
  /** Runs of one statement, as of one that runs for each row of another one. */
  maxRuns?: number;
}

/** `violations`: the limit and a sentence for each statement that exceeded it. */
export class LimitExceeded extends Error {
  violations: { limit: keyof Limits; message: string }[];
}

/**
 * Calls `work` and returns what it returns. The statements that the connection runs meanwhile keep these limits, or
 * LimitExceeded is thrown at the end, which is an AssertionError. If `work` returns a promise, so does limits(). Needs
 * prepare(), with get() and all(). Loads the extension if the connection does not have it. Meanwhile the statements have the
 * label queryprof_limits. The settings are as before afterwards.
 */
export function limits<T>(connection: Connection, allowed: Limits, work: () => T): T;
