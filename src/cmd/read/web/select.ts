/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of a time, a statement, a thread and a label, which several panels share.
 */
import type { Data } from "./data.ts";
import { button, choice, element } from "./dom.ts";
import { duration, moment, oneLine, words } from "./format.ts";
import { labelsOf, type Points, readPoints, type Selection, threadOf } from "./times.ts";
import { go, shown, type Span, spanOf } from "./view.ts";

const LAST_MS = 60000, CHOICES_MAX = 300;

const points = new WeakMap<Data, Points>();

/* null: the file has no samples. */
export function pointsOf(data: Data): Points | null {
	const known = points.get(data) ?? (data.times && readPoints(data.times));
	if (known)
		points.set(data, known);
	return known;
}

/* From the first run or sample to the last. */
export function wholeOf(data: Data): Span {
	const known = pointsOf(data), file = data.file[0], last = known && known.at.length ? known.from_ms + known.at[known.at.length - 1]! : null;
	let from = Math.min(file?.first_ms ?? Infinity, known?.from_ms ?? Infinity), to = Math.max(file?.last_ms ?? -Infinity, last ?? -Infinity);
	for (const run of data.lanes) {
		from = Math.min(from, run.at_ms);
		to = Math.max(to, run.at_ms + run.open_ms);
	}
	return Number.isFinite(from) ? { from, to: Math.max(to, from + 1) } : { from: data.made_ms, to: data.made_ms + 1 };
}

export function selectionOf(data: Data): Selection {
	const { thread, label } = shown();
	return { span: spanOf(shown(), wholeOf(data)), thread, label };
}

const names = new WeakMap<Data, Map<string, string>>();

/* The statement's text in a line; its id if the text is not known. */
export function nameOf(data: Data, id: string, most = 120): string {
	const known = names.get(data) ?? new Map(data.statements.map((one) => [one.statement, one.query === null ? `[${one.statement}]` : oneLine(one.query, 200)]));
	names.set(data, known);
	return oneLine(known.get(id) ?? (/^0+$/.test(id) ? "statement not known" : `statement ${id.slice(0, 8)}`), most);
}

export function inWords({ from, to }: Span): string {
	const digits = to - from < 10000 ? 3 : 0;
	return `${moment(from, digits)} + ${duration(to - from)}`;
}

/* The options are made when the reader reaches for them: there may be hundreds, and the panel is drawn with each change. */
function select(id: string, chosen: string, all: string, options: [string, string][], change: (value: string) => void): HTMLElement {
	const made = element("select", { id }) as HTMLSelectElement, name = options.find(([value]) => value === chosen)?.[1] ?? chosen;
	made.append(new Option(chosen ? name : all, chosen));
	made.addEventListener("focus", () => {
		const known = options.slice(0, CHOICES_MAX).filter(([value]) => value !== chosen);
		made.append(...(chosen ? [new Option(all, "")] : []), ...known.map(([value, text]) => new Option(text, value)));
	}, { once: true });
	made.addEventListener("change", () => change(made.value));
	return made;
}

/* more: choices of the panel's own. */
export function showSelection(data: Data, hasStatement: boolean, ...more: HTMLElement[]): HTMLElement {
	const view = shown(), whole = wholeOf(data), { span } = selectionOf(data), seen = span ?? whole, middle = (seen.from + seen.to) / 2, quarter = Math.max(0.5, (seen.to - seen.from) / 4);
	const to = (name: string, next: Span | null): HTMLElement => button(name, () => go(next ? { from: next.from, to: next.to } : { from: null, to: null }));
	const threads = new Map(data.origins.filter((one) => threadOf(one)).map((one) => [threadOf(one), words(String(one.process_id), one.thread_name, String(one.thread_id))]));
	const labels = [...new Set(data.origins.flatMap(labelsOf))].sort(), listed = new Set(data.stacks.map((stack) => stack.statement));
	const statements = data.statements.filter((one) => listed.has(one.statement) || one.statement === view.statement);
	return element("div", { class: "selection" },
		element("p", { class: "choices" },
			element("span", {}, `Time: ${span ? inWords(span) : `all, ${duration(whole.to - whole.from)}`}`),
			span || view.thread || view.label ? button("Whole", () => go({ from: null, to: null, thread: "", label: "" })) : null,
			whole.to - whole.from > LAST_MS ? button("Last minute", () => go({ from: -LAST_MS, to: null })) : null,
			to("Closer", { from: middle - quarter, to: middle + quarter }),
			span ? to("Wider", { from: middle - 4 * quarter, to: middle + 4 * quarter }) : null,
			span ? to("Earlier", { from: seen.from - quarter, to: seen.to - quarter }) : null,
			span ? to("Later", { from: seen.from + quarter, to: seen.to + quarter }) : null,
			span ? button("Compare with this", () => go({ base: span, from: null, to: null })) : null,
			view.base ? element("span", {}, `Compared with ${inWords(view.base)}`) : null,
			view.base ? button("Do not compare", () => go({ base: null })) : null),
		element("p", { class: "choices" },
			hasStatement ? choice("Statement", select("flame-statement", view.statement, "all statements", statements.map((one) => [one.statement, nameOf(data, one.statement)]), (statement) => go({ statement }))) : null,
			threads.size > 1 || view.thread ? choice("Thread", select("thread", view.thread, "all threads", [...threads], (thread) => go({ thread }))) : null,
			labels.length || view.label ? choice("Label", select("label", view.label, "all labels", labels.map((one) => [one, one]), (label) => go({ label }))) : null,
			...more),
		data.times?.thinned && (span || view.thread || view.label) ? element("p", { class: "soft" }, "Times of a selection are estimates: the page has about 100,000 of the file's samples, chosen evenly by time.") : null);
}
