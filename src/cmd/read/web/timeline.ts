/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time line: the heat map of the samples, and a lane for each thread with its longest runs and the waits for locks.
 */
import { scale, timeAxis } from "./axis.ts";
import type { Data, Lane, LockWait } from "./data.ts";
import { choice, drawing, element, link, pictureWidth, table } from "./dom.ts";
import { TIME_NAMES } from "./flame.ts";
import { duration, moment, oneLine, words } from "./format.ts";
import { showHeat } from "./heat.ts";
import { nameOf, pointsOf, selectionOf, showSelection, wholeOf } from "./select.ts";
import { type Time, times, typesOf } from "./stacks.ts";
import { type Heat, makeHeat, type Selection } from "./times.ts";
import { go, shown, type Span } from "./view.ts";

const WIDTH_MOST = 1968, LEFT_MOST = 190, ROW = 22, LANES_SHOWN = 60, ARROW_WIDTH = 25, LEAST_MS = 1, BUSIEST_SHOWN = 10;

const endOf = (run: Lane): number => run.at_ms + run.open_ms;
const laneOf = (run: Lane): string => `${run.process_id}.${run.thread_id}`;

const KINDS: Record<string, string> = { running: "on CPU in SQLite", lock: "waiting for a lock", io: "reading or writing", queue: "waiting for a CPU", wait: "another wait", outside: "outside SQLite, between its rows" };

/* The lane of the thread that held the lock; undefined: it has no run here. */
function holderLane(wait: LockWait, runs: readonly Lane[]): string | undefined {
	const found = runs.find((run) => run.process_id === wait.holder_process_id && [run.thread_name, `${run.thread_name} ${run.thread_id}`].includes(wait.holder_thread));
	return found && laneOf(found);
}

/* From the holder to the thread that waited, when the wait ends. More than `most` would hide the runs. */
function drawArrows(data: Data, runs: readonly Lane[], lanes: readonly string[], shown: Span, x: (ms: number) => number, most: number): SVGElement[] {
	const arrows = data.locks.filter((wait) => wait.wait_ms > 0 && wait.at_ms + wait.wait_ms >= shown.from && wait.at_ms + wait.wait_ms <= shown.to).flatMap((wait) => {
		const from = lanes.indexOf(holderLane(wait, runs) ?? ""), to = lanes.indexOf(`${wait.process_id}.${wait.thread_id}`), at = x(wait.at_ms + wait.wait_ms);
		if (from < 0 || to < 0 || from === to)
			return [];
		const begin = ROW * from + (from < to ? ROW - 2 : 3), end = ROW * to + (from < to ? 3 : ROW - 2), back = from < to ? -5 : 5;
		return [drawing("path", { class: "arrow", d: `M${at} ${begin}V${end}M${at - 3} ${end + back}L${at} ${end}L${at + 3} ${end + back}` },
			drawing("title", {}, wait.cause ?? `The lock was held by ${wait.holder_thread}.`))];
	});
	return arrows.length <= most ? arrows : [];
}

/* about: shows the run below the pointer. */
function draw(data: Data, runs: readonly Lane[], shown: Span, about: HTMLElement): SVGElement {
	const width = pictureWidth(WIDTH_MOST), left = Math.min(LEFT_MOST, width / 4), lanes = [...new Set(runs.map(laneOf))].slice(0, LANES_SHOWN);
	const height = ROW * lanes.length + 20, x = scale(shown, left, width);
	const drawn = new WeakMap<Element, Lane>(), byLane = new Map<string, Lane[]>(lanes.map((lane) => [lane, []]));
	runs.forEach((run) => byLane.get(laneOf(run))?.push(run));
	const picture = drawing("svg", { viewBox: `0 0 ${width} ${height}`, class: "timeline", role: "img", "aria-label": "Runs by thread and time. The table below has the numbers." },
		...[...byLane.values()].flatMap((own, row) => {
			const one = own[0]!;
			return [drawing("text", { x: 0, y: ROW * row + 15 }, oneLine(left < LEFT_MOST ? `${one.thread_name} ${one.thread_id}` : `${one.process_id} ${one.thread_name} ${one.thread_id}`, Math.floor(left / 6.5))),
				drawing("line", { x1: left, y1: ROW * (row + 1), x2: width, y2: ROW * (row + 1) }),
				...own.map((run) => {
					const made = drawing("rect", { x: x(run.at_ms), y: ROW * row + 3, width: Math.max(1.5, x(endOf(run)) - x(run.at_ms)), height: ROW - 5, class: run.kind });
					drawn.set(made, run);
					return made;
				})];
		}),
		...drawArrows(data, runs, lanes, shown, x, (width - left) / ARROW_WIDTH), timeAxis(shown, left, width, ROW * lanes.length));
	/* One listener for all: there may be thousands of runs. */
	picture.addEventListener("pointermove", (event) => {
		const run = drawn.get(event.target as Element);
		about.textContent = run ? words(moment(run.at_ms, 3), duration(run.open_ms), KINDS[run.kind], nameOf(data, run.statement, 200)) : "";
	});
	picture.addEventListener("click", (event) => {
		const run = drawn.get(event.target as Element);
		if (run)
			go({ panel: "statement", statement: run.statement });
	});
	let begun: number | null = null;
	const at = (event: PointerEvent): number => {
		const box = picture.getBoundingClientRect(), place = (event.clientX - box.left) / box.width * width;
		return shown.from + (shown.to - shown.from) * Math.min(1, Math.max(0, (place - left) / (width - left)));
	};
	picture.addEventListener("pointerdown", (event) => begun = at(event));
	picture.addEventListener("pointerup", (event) => {
		const from = begun === null ? 0 : Math.min(begun, at(event)), to = begun === null ? 0 : Math.max(begun, at(event));
		begun = null;
		/* Less is a click. */
		if (to - from > (shown.to - shown.from) / 100)
			go({ from, to: Math.max(to, from + LEAST_MS) });
	});
	picture.addEventListener("dragstart", (event) => event.preventDefault());
	return picture;
}

function showSamples(data: Data, seen: Span, selection: Selection, time: Time): (Node | null)[] {
	const width = pictureWidth(WIDTH_MOST), points = pointsOf(data), types = typesOf(time, data.stacks), { statement } = shown();
	if (!points)
		return [element("p", {}, "Not known: none of these queries has a sample.")];
	const heat: Heat = makeHeat(data, points, selection, seen, (stack) => types.includes(stack.trace_type) && (!statement || stack.statement === statement));
	const columns = Array.from({ length: heat.columns }, (_, at) => ({ at_ms: heat.from + at * heat.column_ms, ms: heat.cells.subarray(at * heat.rows, (at + 1) * heat.rows).reduce((sum, one) => sum + one, 0) }));
	return [
		showHeat(heat, TIME_NAMES[time], drawing("svg", { viewBox: `0 0 ${width} 18`, class: "timeline", "aria-hidden": "true" },
			timeAxis({ from: heat.from, to: heat.from + heat.columns * heat.column_ms }, 0, width, 0)), (span) => go(span)),
		element("p", { class: "soft" }, `Each column is ${duration(heat.column_ms)}, from top to bottom; a cell is ${duration(heat.column_ms / heat.rows)}; the stronger the color, the more ${TIME_NAMES[time]}. Drag from cell to cell to select a time; the other panels show it, too.`),
		element("details", {}, element("summary", {}, "The busiest columns"), table<{ at_ms: number; ms: number }>("busiest", "The columns with most of the time", [
			{ title: "from (UTC)", key: (one) => one.at_ms, show: (one) => moment(one.at_ms, heat.column_ms < 1000 ? 3 : 0) },
			{ title: TIME_NAMES[time], is_number: true, key: (one) => one.ms, show: (one) => duration(one.ms) },
		], columns.filter((one) => one.ms > 0).sort((a, b) => b.ms - a.ms).slice(0, BUSIEST_SHOWN)))];
}

function showLanes(data: Data, seen: Span, thread: string): (Node | null)[] {
	const { statement } = shown();
	const ordered = [...data.lanes].sort((a, b) => a.process_id - b.process_id || a.thread_id - b.thread_id || a.at_ms - b.at_ms);
	const runs = ordered.filter((run) => run.at_ms <= seen.to && endOf(run) >= seen.from && (!thread || laneOf(run) === thread) && (!statement || run.statement === statement));
	if (!runs.length)
		return [element("p", {}, data.lanes.length ? "None of the longest logged runs is in this selection." : "Not known: no run was logged.")];
	const about = element("p", { class: "details" });
	return [
		element("p", { class: "choices" }, ...Object.entries(KINDS).filter(([kind]) => runs.some((run) => run.kind === kind))
			.map(([kind, text]) => element("span", { class: "key" }, element("i", { class: kind }), ` ${text}`)), data.locks.length ? "Arrows, once few are in sight: from the holder of a lock to the thread that waited for it." : null),
		draw(data, runs, seen, about), about,
		table<Lane>("lanes", "The longest runs in this time", [
			{ title: "began (UTC)", key: (run) => run.at_ms, show: (run) => moment(run.at_ms, 3) },
			{ title: "open for", is_number: true, key: (run) => run.open_ms, show: (run) => duration(run.open_ms) },
			{ title: "waited", is_number: true, key: (run) => run.wait_ms, show: (run) => duration(run.wait_ms) },
			{ title: "for locks", is_number: true, key: (run) => run.lock_ms, show: (run) => duration(run.lock_ms) },
			{ title: "most of it", key: (run) => run.kind, show: (run) => KINDS[run.kind] ?? "" },
			{ title: "thread", key: laneOf, show: (run) => words(String(run.process_id), run.thread_name, String(run.thread_id)) },
			{ title: "statement", kind: "text", show: (run) => link(run.statement, nameOf(data, run.statement)) },
		], [...runs].sort((a, b) => b.open_ms - a.open_ms).slice(0, 20))];
}

export function showTimeline(data: Data): Node[] {
	const known = times(data.stacks), time = known.find((one) => one === shown().time) ?? known[0] ?? "wall", selection = selectionOf(data), seen = selection.span ?? wholeOf(data);
	const input = element("select", { id: "time" }) as HTMLSelectElement;
	input.append(...known.map((one) => new Option(TIME_NAMES[one], one)));
	input.value = time;
	input.addEventListener("change", () => go({ time: input.value }));
	return [element("h2", {}, "Time line"), showSelection(data, true, ...known.length > 1 ? [choice("Time", input)] : []),
		element("h3", {}, "Samples"), ...showSamples(data, seen, selection, time),
		element("h3", {}, `Threads: the ${data.lanes.length} longest logged runs`), ...showLanes(data, seen, selection.thread)].filter((part) => part !== null);
}
