/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of the page: the rows of the files in sql/page, by the names of their columns. null: not known.
 */

export type Known = number | null;

export interface Statement {
	statement: string; query: string | null; is_cut: number; share: Known; wall_ms: Known; cpu_ms: Known; runs: Known; logged: Known;
	each_ms: Known; p50_ms: Known; p99_ms: Known; max_ms: Known; rows: Known; failed: Known; is_unfinished: number; waits: string; notes: string;
}

export interface PlanNode {
	statement: string; plan: number; runs: number; seen: string; node: number; parent: number; detail: string; compared: string;
	self_ms: number; error_ms: number; loops: Known; rows: Known;
}

export interface Caller { statement: string; caller: string; function: string; logged: number; wall_ms: number }

export interface Run { statement: string; at_ms: number; wall_ms: number; rows: Known; failed: number; finished: number }

export interface Func { function: string; module: string }

/* frames: numbers of functions with commas between them, leaf first; null: a wait without a stack, or the rest of the statement's time. */
export interface Stack { statement: string; trace_type: string; wait: string; samples: number; ms: number; frames: string | null }

/* points: see page_times.h; thinned: a point may stand for several samples. */
export interface Times { from_ms: number; unit_ms: number; thinned: boolean; points: string }

/* labels: JSON. null: not known. */
export interface Origin { process_id: Known; thread_id: Known; thread_name: string; labels: string }

export interface PlanPeriod { statement: string; plan: Known; database: string | null; from_ms: number; to_ms: number; runs: number; each_ms: number; changes: string | null }

export interface Lane {
	statement: string; process_id: number; thread_id: number; thread_name: string; at_ms: number; open_ms: number; wall_ms: number; lock_ms: number;
	wait_ms: number; kind: string; finished: number;
}

export interface LockWait {
	at_ms: number; wait_ms: number; process_id: number; thread_id: number; outcome: string; reason: string; holder_process_id: number;
	holder_thread: string; cause: string | null; cure: string;
}

export interface LockChain { waited_ms: number; longest_ms: number; waits: number; links: number; cause: string | null }
export interface Wal { database: string; frames: number; story: string | null }
export interface WalPoint { database: string; at_ms: number; frames: number; checkpoint: number }

export interface Finding {
	finding: string; share: Known; saved_ms: Known; error_ms: Known; title: string; evidence: string; cure: string; sure: string; see: string;
	statement: string; caller: string; caller_function: string;
}

export interface PageTree {
	tree: number; btree: string; database: string | null; share: number; wal_mb: number; database_mb: number; journal_mb: number; read_mb: number;
	pages_written: number; times: Known; texts_reading: Known; texts: Known; cells: string; most: Known; first_ms: number; part_ms: number;
}

export interface Data {
	version: string; made_ms: number; no_text: boolean; is_plan: boolean; name: string;
	file: { programs: string | null; processes: number; first_ms: Known; last_ms: Known }[];
	statements: Statement[]; plans: PlanNode[]; history: PlanPeriod[]; callers: Caller[]; runs: Run[]; functions: Func[]; stacks: Stack[];
	times: Times | null; origins: Origin[]; lanes: Lane[];
	locks: LockWait[]; chains: LockChain[]; wals: Wal[]; wal_points: WalPoint[]; pages: PageTree[]; findings: Finding[];
	losses: { reason: string; samples: Known; refusals: number }[];
	sampling: { trace_type: string; unit: string; threads: number; period_ms: number; shortest_ms: number; longest_ms: number }[];
	unplanned: { statement: string; reason: string }[];
}

export interface OpenRun {
	process_id: number; program: string | null; thread_id: number; thread_name: string | null; is_running: number; elapsed_ms: Known;
	outside_ms: Known; state: string | null; wait_cause: string | null; wait_object: string | null; wait_ms: Known; holder_process_id: Known;
	holder_program: string | null; holder_thread_name: string | null; holder_transaction_ms: Known; holder_first_query: string | null;
	query: string | null; database: string | null; plan_node: string | null; sample_age_ms: Known; caller: string | null; caller_function: string | null;
}

export interface OpenTransaction {
	process_id: number; program: string | null; thread_id: number; thread_name: string | null; state: string | null; database: string | null;
	age_ms: Known; write_lock_ms: Known; statements: number; first_query: string | null; query: string | null; is_oldest_reader: number;
}

export interface Now {
	known: boolean; at_ms?: number; processes?: number; unread?: number; changed?: number; runs?: OpenRun[]; transactions?: OpenTransaction[];
}
