/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When samples were taken: sums of a part of the time, of a thread or a label, and the cells of the heat map. It needs no browser.
 */
import type { Data, Origin, Stack, Times } from "./data.ts";
import type { Span } from "./view.ts";

/* Of each point, in the order of time. at: ms since from_ms; a wait's is its end. */
export interface Points { from_ms: number; at: Float64Array; stack: Uint16Array; origin: Uint16Array; ms: Float64Array }

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const VALUES = new Int8Array(128).fill(-1);
[...DIGITS].forEach((digit, value) => VALUES[digit.charCodeAt(0)] = value);

/* See page_times.h. */
export function readPoints({ from_ms, unit_ms, points: text }: Times): Points {
	const numbers: number[] = [];
	for (let at = 0, number = 0, scale = 1; at < text.length; at++) {
		const digit = VALUES[text.charCodeAt(at)]!;
		number += (digit & 31) * scale;
		scale *= 32;
		if (digit < 32) {
			numbers.push(number);
			number = 0;
			scale = 1;
		}
	}
	const count = numbers.length >> 2;
	const points: Points = { from_ms, at: new Float64Array(count), stack: new Uint16Array(count), origin: new Uint16Array(count), ms: new Float64Array(count) };
	for (let i = 0, at = 0; i < count; i++) {
		at += numbers[4 * i]!;
		points.at[i] = at;
		points.stack[i] = numbers[4 * i + 1]!;
		points.origin[i] = numbers[4 * i + 2]!;
		points.ms[i] = numbers[4 * i + 3]! * unit_ms;
	}
	return points;
}

export const threadOf = (origin: Origin): string => origin.process_id === null ? "" : `${origin.process_id}.${origin.thread_id}`;

export function labelsOf(origin: Origin): string[] {
	try {
		return Object.entries(JSON.parse(origin.labels) as Record<string, unknown>).map(([key, value]) => `${key}=${String(value)}`);
	} catch {
		return [];
	}
}

export interface Selection { span: Span | null; thread: string; label: string }

export const isWhole = ({ span, thread, label }: Selection): boolean => !span && !thread && !label;

function originsOf(data: Data, { thread, label }: Selection): Uint8Array {
	return Uint8Array.from(data.origins, (one) => Number((!thread || threadOf(one) === thread) && (!label || labelsOf(one).includes(label))));
}

/* The stacks with the time that they have in the selection. */
export function selectStacks(data: Data, points: Points | null, selection: Selection): Stack[] {
	if (isWhole(selection) || !points)
		return isWhole(selection) ? data.stacks : [];
	const origins = originsOf(data, selection), waits = Uint8Array.from(data.stacks, (stack) => Number(stack.trace_type === "OffCPU"));
	const from = (selection.span?.from ?? -Infinity) - points.from_ms, to = (selection.span?.to ?? Infinity) - points.from_ms;
	const sums = new Float64Array(data.stacks.length), counts = new Uint32Array(data.stacks.length);
	for (let i = 0; i < points.at.length; i++) {
		const at = points.at[i]!, stack = points.stack[i]!, ms = points.ms[i]!;
		if (!origins[points.origin[i]!])
			continue;
		const part = !waits[stack] ? at >= from && at < to ? ms : 0 : Math.max(0, Math.min(at, to) - Math.max(at - ms, from));
		if (part > 0) {
			sums[stack]! += part;
			counts[stack]!++;
		}
	}
	return data.stacks.map((stack, at) => ({ ...stack, ms: sums[at]!, samples: counts[at]! })).filter((stack) => stack.ms > 0);
}

/* Columns of column_ms, each with `rows` cells, the first at the top. */
export interface Heat { from: number; column_ms: number; columns: number; rows: number; cells: Float64Array; most: number }

const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000, 86400000];
const CELLS_OF_COLUMN = 50, COLUMNS_LEAST = 40, COLUMNS_MOST = 400, CELL_LEAST_MS = 1;

/* A column is a second, unless the time is much shorter or longer than a minute. A cell is at least 1 ms. */
function columnOf(lasts: number): number {
	const fine = STEPS_MS.find((step) => lasts / step <= COLUMNS_LEAST) ?? 86400000;
	return fine <= 1000 ? fine : Math.max(1000, STEPS_MS.find((step) => lasts / step <= COLUMNS_MOST) ?? 86400000);
}

/* isShown: by the number of the stack. */
export function makeHeat(data: Data, points: Points, selection: Selection, shown: Span, isShown: (stack: Stack) => boolean): Heat {
	const column_ms = columnOf(shown.to - shown.from), rows = Math.max(1, Math.min(CELLS_OF_COLUMN, Math.floor(column_ms / CELL_LEAST_MS)));
	const from = Math.floor(shown.from / column_ms) * column_ms, columns = Math.max(1, Math.ceil((shown.to - from) / column_ms)), cell_ms = column_ms / rows;
	const cells = new Float64Array(columns * rows), origins = originsOf(data, { ...selection, span: null }), begin = points.from_ms - from;
	const stacks = Uint8Array.from(data.stacks, (stack) => !isShown(stack) ? 0 : stack.trace_type === "OffCPU" ? 2 : 1);
	for (let i = 0; i < points.at.length; i++) {
		const kind = stacks[points.stack[i]!]!, end = begin + points.at[i]!, ms = points.ms[i]!;
		if (!kind || !origins[points.origin[i]!])
			continue;
		if (kind === 1) {
			const cell = Math.floor(end / cell_ms);
			if (cell >= 0 && cell < cells.length)
				cells[cell]! += ms;
			continue;
		}
		const first = Math.max(0, Math.floor((end - ms) / cell_ms)), last = Math.min(cells.length - 1, Math.floor(end / cell_ms));
		for (let cell = first; cell <= last; cell++)
			cells[cell]! += Math.min(end, (cell + 1) * cell_ms) - Math.max(end - ms, cell * cell_ms);
	}
	return { from, column_ms, columns, rows, cells, most: cells.reduce((most, one) => Math.max(most, one), 0) };
}
