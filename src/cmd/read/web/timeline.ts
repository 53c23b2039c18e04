/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time line: a lane for each thread, with its longest runs.
 */
import type { Data, Lane } from "./data.ts";
import { drawing, element, link, table } from "./dom.ts";
import { duration, moment, oneLine, words } from "./format.ts";

const WIDTH = 1200, LEFT = 170, ROW = 22, LANES_SHOWN = 60, LEAST_MS = 1;

interface Span { from: number; to: number }

const endOf = (run: Lane): number => run.at_ms + run.open_ms;
const laneOf = (run: Lane): string => `${run.process_id} ${run.thread_id}`;

/* Locks or waits count if they took at least half of its time in SQLite. */
function kindOf(run: Lane): string {
	return 2 * run.lock_ms >= run.wall_ms && run.lock_ms > 0 ? "locked" : 2 * run.wait_ms >= run.wall_ms && run.wait_ms > 0 ? "waiting" : 2 * run.wall_ms < run.open_ms ? "outside" : "running";
}

const KINDS: Record<string, string> = { running: "on CPU in SQLite", waiting: "waiting", locked: "waiting for a lock", outside: "outside SQLite, between its rows" };

function draw(runs: readonly Lane[], shown: Span, textOf: (run: Lane) => string, zoom: (span: Span) => void): SVGElement {
	const lanes = [...new Set(runs.map(laneOf))].slice(0, LANES_SHOWN), height = ROW * lanes.length + 24;
	const x = (ms: number): number => LEFT + (WIDTH - LEFT) * Math.min(1, Math.max(0, (ms - shown.from) / (shown.to - shown.from)));
	const picture = drawing("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "timeline", role: "img", "aria-label": "Runs by thread and time. The table below has the numbers." },
		...lanes.flatMap((lane, row) => {
			const own = runs.filter((run) => laneOf(run) === lane), one = own[0]!;
			return [drawing("text", { x: 0, y: ROW * row + 15 }, oneLine(`${one.process_id} ${one.thread_name} ${one.thread_id}`, 28)),
				drawing("line", { x1: LEFT, y1: ROW * (row + 1), x2: WIDTH, y2: ROW * (row + 1) }),
				...own.map((run) => {
					const made = drawing("rect", { x: x(run.at_ms), y: ROW * row + 3, width: Math.max(1.5, x(endOf(run)) - x(run.at_ms)), height: ROW - 5, class: kindOf(run) },
						drawing("title", {}, `${oneLine(textOf(run), 200)}\n${words(moment(run.at_ms), duration(run.open_ms), KINDS[kindOf(run)])}`));
					made.addEventListener("click", () => location.hash = `#statement=${run.statement}`);
					return made;
				})];
		}),
		drawing("text", { x: LEFT, y: height - 6 }, moment(shown.from)), drawing("text", { x: WIDTH, y: height - 6, "text-anchor": "end" }, `+ ${duration(shown.to - shown.from)}`));
	let begun: number | null = null;
	const at = (event: PointerEvent): number => {
		const box = picture.getBoundingClientRect(), place = (event.clientX - box.left) / box.width * WIDTH;
		return shown.from + (shown.to - shown.from) * Math.min(1, Math.max(0, (place - LEFT) / (WIDTH - LEFT)));
	};
	picture.addEventListener("pointerdown", (event) => begun = at(event));
	picture.addEventListener("pointerup", (event) => {
		const from = begun === null ? 0 : Math.min(begun, at(event)), to = begun === null ? 0 : Math.max(begun, at(event));
		begun = null;
		/* Less is a click. */
		if (to - from > (shown.to - shown.from) / 100)
			zoom({ from, to: Math.max(to, from + LEAST_MS) });
	});
	picture.addEventListener("dragstart", (event) => event.preventDefault());
	return picture;
}

let span: Span | null = null; /* null: the whole */

export function showTimeline(data: Data): HTMLElement[] {
	const title = element("h2", {}, "Time line"), place = element("div");
	if (!data.lanes.length)
		return [title, element("p", {}, "Not known: no run was logged.")];
	const ordered = [...data.lanes].sort((a, b) => a.process_id - b.process_id || a.thread_id - b.thread_id || a.at_ms - b.at_ms);
	const whole: Span = { from: Math.min(...ordered.map((run) => run.at_ms)), to: Math.max(...ordered.map(endOf)) };
	whole.to = Math.max(whole.to, whole.from + LEAST_MS);
	const textOf = (run: Lane): string => data.statements.find((one) => one.statement === run.statement)?.query ?? `statement ${run.statement.slice(0, 8)}`;
	const zoom = (wanted: Span | null): void => {
		span = wanted;
		const shown = span ?? whole, runs = ordered.filter((run) => run.at_ms <= shown.to && endOf(run) >= shown.from);
		const middle = (shown.from + shown.to) / 2, quarter = Math.max(LEAST_MS, shown.to - shown.from) / 4;
		const button = (text: string, to: Span | null): HTMLElement => {
			const made = element("button", { type: "button" }, text);
			made.addEventListener("click", () => zoom(to));
			return made;
		};
		place.replaceChildren(element("p", { class: "choices" },
			button("Closer", { from: middle - quarter, to: middle + quarter }), button("Earlier", { from: shown.from - quarter, to: shown.to - quarter }),
			button("Later", { from: shown.from + quarter, to: shown.to + quarter }), button("Whole", null), " Drag over the picture to see a part of it.",
			...Object.entries(KINDS).map(([kind, text]) => element("span", { class: "key" }, element("i", { class: kind }), ` ${text}`))),
		runs.length ? draw(runs, shown, textOf, zoom) : element("p", {}, "No logged run in this time."),
		table<Lane>("lanes", "The longest runs in this time", [
			{ title: "began (UTC)", key: (run) => run.at_ms, show: (run) => moment(run.at_ms) },
			{ title: "open for", is_number: true, key: (run) => run.open_ms, show: (run) => duration(run.open_ms) },
			{ title: "waited", is_number: true, key: (run) => run.wait_ms, show: (run) => duration(run.wait_ms) },
			{ title: "for locks", is_number: true, key: (run) => run.lock_ms, show: (run) => duration(run.lock_ms) },
			{ title: "thread", key: laneOf, show: (run) => words(String(run.process_id), run.thread_name, String(run.thread_id)) },
			{ title: "statement", kind: "text", show: (run) => link(run.statement, oneLine(textOf(run), 120)) },
		], [...runs].sort((a, b) => b.open_ms - a.open_ms).slice(0, 20)));
	};
	zoom(span);
	return [title, element("p", { class: "soft" }, `The ${data.lanes.length} longest logged runs.`), place];
}
