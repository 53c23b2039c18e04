/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers in words, the order of tables, and the tree of a plan. It needs no browser, so tests run it in
 * node.
 */
import type { Known, PlanNode } from "./data.ts";

/* In the units that the command prints. */
export function duration(ms: Known): string {
	if (ms === null || !Number.isFinite(ms))
		return "not known";
	if (ms >= 1000)
		return `${(ms / 1000).toFixed(2)} s`;
	return ms >= 1 || ms === 0 ? `${ms.toFixed(1)} ms` : `${(ms * 1000).toFixed(1)} µs`;
}

export const count = (number: Known): string => number === null ? "not known" : number.toLocaleString("en");
export const percent = (number: Known): string => number === null ? "not known" : `${number.toFixed(1)} %`;

export const megabytes = (number: number): string => number >= 100 || number === 0 ? `${number.toFixed(0)} MB` : number >= 1 ? `${number.toFixed(1)} MB` : `${(number * 1000).toFixed(0)} kB`;

/* "2026-11-28 10:02:03", in UTC, like the command. digits: of the second's fraction. */
export function moment(ms: Known, digits = 0): string {
	const date = new Date(ms ?? NaN);
	if (Number.isNaN(date.getTime()))
		return "not known";
	const fraction = digits ? `.${Math.floor((ms! - Math.floor(ms! / 1000) * 1000) * 10 ** (digits - 3) + 1e-6).toString().padStart(digits, "0")}` : "";
	return date.toISOString().slice(0, 19).replace("T", " ") + fraction;
}

export const oneLine = (text: string, most: number): string => {
	const line = text.replace(/\s+/g, " ").trim();
	return line.length > most ? line.slice(0, most - 1) + "…" : line;
};

/* The parts that are not empty. */
export const words = (...parts: (string | null | false | undefined)[]): string => parts.filter(Boolean).join(", ");

export type Cell = string | number | null;

/* Sorted by one of the cells; unknown values come last in both directions, and equal ones keep their
 * order. */
export function sorted<Row>(rows: readonly Row[], cell: (row: Row) => Cell, descending: boolean): Row[] {
	return rows.map((row, place) => ({ row, place, key: cell(row) })).sort((a, b) => {
		if (a.key === null || b.key === null)
			return Number(a.key === null) - Number(b.key === null) || a.place - b.place;
		const order = a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
		return (descending ? -order : order) || a.place - b.place;
	}).map(({ row }) => row);
}

export interface TreeNode { row: PlanNode; depth: number; total_ms: number; self: number; total: number }
export interface Tree { plan: number; runs: number; seen: string; whole_ms: number; nodes: TreeNode[] }

const DEPTH_MAX = 200;

/* The nodes of one plan in the order of the tree, with the sums of those below each. A node without its
 * parent is at the top; so is, in a damaged file, a node that is its own ancestor or too deep. Shares are of
 * the time of all nodes. */
function makeTree(rows: PlanNode[]): Tree {
	const byNode = new Map(rows.map((row) => [row.node, row]));
	const children = new Map<number, PlanNode[]>();
	const isTop = (row: PlanNode): boolean => {
		const seen = new Set<number>([row.node]);
		for (let up = byNode.get(row.parent); up && up.node > 0; up = byNode.get(up.parent)) {
			if (seen.has(up.node) || seen.size > DEPTH_MAX)
				return true;
			seen.add(up.node);
		}
		return row.node <= 0 || row.parent <= 0 || !byNode.has(row.parent);
	};
	const tops = rows.filter(isTop), below = new Set(rows.filter((row) => !tops.includes(row)));
	for (const row of below)
		children.set(row.parent, [...children.get(row.parent) ?? [], row]);
	const whole = rows.reduce((sum, row) => sum + row.self_ms, 0), nodes: TreeNode[] = [];
	const share = (ms: number): number => whole > 0 ? 100 * ms / whole : 0;
	const visit = (row: PlanNode, depth: number): number => {
		const node: TreeNode = { row, depth, total_ms: row.self_ms, self: share(row.self_ms), total: 0 };
		nodes.push(node);
		for (const child of children.get(row.node) ?? [])
			node.total_ms += visit(child, depth + 1);
		node.total = share(node.total_ms);
		return node.total_ms;
	};
	for (const row of sorted(tops, (top) => top.node > 0 ? top.node : 1e15 - top.node, false))
		visit(row, 0);
	const first = rows[0]!;
	return { plan: first.plan, runs: first.runs, seen: first.seen, whole_ms: whole, nodes };
}

/* The plans of a statement, in the order of the rows. */
export function plans(rows: readonly PlanNode[], statement: string): Tree[] {
	const byPlan = new Map<number, PlanNode[]>();
	for (const row of rows)
		if (row.statement === statement)
			byPlan.set(row.plan, [...byPlan.get(row.plan) ?? [], row]);
	return [...byPlan.values()].map(makeTree);
}

/* A word of a command line, quoted for the shell. */
export const shellWord = (word: string): string => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/* A position from 0 to 1 between two limits, on a logarithmic scale. */
export function place(value: number, least: number, most: number): number {
	return most > least ? Math.log(Math.max(value, least) / least) / Math.log(most / least) : 0.5;
}
