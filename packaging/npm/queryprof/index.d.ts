/** A connection of better-sqlite3, of node:sqlite (opened with `allowExtension: true`) or of bun:sqlite. */
export interface Connection {
  exec(sql: string): unknown;
  loadExtension(path: string): unknown;
}

/** Settings by name, such as `query_profiler_cpu_time_period_ns`; docs/sql-reference.md lists them. */
export type Settings = Record<string, number | bigint | string>;

/** The path of the command. Throws an Error if this system has no package. */
export const command: string;

/** The path of the SQLite extension and C library. Throws as `command` does. */
export const library: string;

/**
 * Loads the extension into a connection, changes settings, and returns the connection.
 * SQLite's error names the setting, its value and what is allowed.
 */
export function load<T extends Connection>(connection: T, settings?: Settings): T;

/** Changes settings of a connection that has the extension. */
export function set(connection: Connection, settings: Settings): void;

/** Replaces the labels of the connection's next queries. `{}` removes all labels. */
export function setLabels(connection: Connection, labels: Record<string, string | number>): void;

export interface Limits {
  /** The most rows that one run may visit in scans of whole tables. */
  maxScan?: number;
  noSort?: boolean;
  noAutoIndex?: boolean;
  /** The longest time of one run inside SQLite, in seconds. */
  maxTime?: number;
  /** The most runs of one statement, for example of one that runs for each row of another statement. */
  maxRuns?: number;
}

/** `violations`: for each statement that exceeded a limit, the limit and a sentence. */
export class LimitExceeded extends Error {
  violations: { limit: keyof Limits; message: string }[];
}

/**
 * Calls `work` and returns its result. Throws LimitExceeded, an AssertionError, at the end if a statement that the connection
 * ran meanwhile exceeded a limit. If `work` returns a promise, so does limits(). The connection needs prepare(), with get()
 * and all(). Loads the extension if the connection does not have it. While `work` runs, statements have the label
 * queryprof_limits. Afterwards limits() restores the settings.
 */
export function limits<T>(connection: Connection, allowed: Limits, work: () => T): T;
