/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the page shows: a panel, and what is selected in it. All of it is in the address after "#", so a link keeps it. It needs
 * no browser, except address() and what follows.
 */
export interface Span { from: number; to: number }

export interface View {
	panel: string;
	statement: string; /* "": all */
	from: number | null; /* ms since 1970; below 0: before the end; null: from the beginning */
	to: number | null;
	base: Span | null; /* what the time is compared with */
	thread: string; /* PROCESS.THREAD; "": all */
	label: string; /* KEY=VALUE; "": all */
	time: string;
	find: string;
	root: string; /* "bottom" or "" */
	frames: string; /* "all" or "" */
}

const NONE: View = { panel: "", statement: "", from: null, to: null, base: null, thread: "", label: "", time: "", find: "", root: "", frames: "" };
const OF_STATEMENT = ["statement", "flame", "timeline"];
const TEXTS = ["thread", "label", "time", "find", "root", "frames"] as const;

const numberOf = (text: string | null): number | null => text !== null && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : null;

/* `panels`: the first one is shown if the address names none of them. */
export function parseView(hash: string, panels: readonly string[]): View {
	const [head = "", ...rest] = hash.replace(/^#/, "").split("&"), [name = "", value = ""] = head.split("=", 2), given = new URLSearchParams(rest.join("&"));
	const isOne = OF_STATEMENT.includes(name) && /^[0-9a-f]{16}$/.test(value), from2 = numberOf(given.get("from2")), to2 = numberOf(given.get("to2"));
	const view: View = { ...NONE, panel: isOne || (panels.includes(name) && !value) ? name : panels[0]!, statement: isOne ? value : "",
		from: numberOf(given.get("from")), to: numberOf(given.get("to")), base: from2 !== null && to2 !== null && from2 < to2 ? { from: from2, to: to2 } : null };
	for (const key of TEXTS)
		view[key] = given.get(key) ?? "";
	return view;
}

const short = (ms: number): string => String(Math.round(ms * 1000) / 1000);

export function formatView(view: View): string {
	const given = new URLSearchParams();
	if (view.from !== null)
		given.set("from", short(view.from));
	if (view.to !== null)
		given.set("to", short(view.to));
	if (view.base) {
		given.set("from2", short(view.base.from));
		given.set("to2", short(view.base.to));
	}
	for (const key of TEXTS)
		if (view[key])
			given.set(key, view[key]);
	const rest = given.toString();
	return `#${view.panel}${view.statement ? `=${view.statement}` : ""}${rest ? `&${rest}` : ""}`;
}

/* The part of `whole` that the view selects; null: all of it. */
export function spanOf({ from, to }: View, whole: Span): Span | null {
	if (from === null && to === null)
		return null;
	const place = (ms: number | null, otherwise: number): number => ms === null ? otherwise : ms < 0 ? whole.to + ms : ms;
	const begin = place(from, whole.from);
	return { from: begin, to: Math.max(place(to, whole.to), begin + 1) };
}

let current: View = NONE;

export const shown = (): View => current;
export function read(panels: readonly string[]): View {
	current = parseView(location.hash, panels);
	return current;
}

/* The address of another view, with the same time, thread and label. */
export const address = (changes: Partial<View>): string => formatView({ ...current, find: "", ...changes });

export function go(changes: Partial<View>): void {
	location.hash = formatView({ ...current, ...changes });
}

/* Keeps a choice that the panel has already drawn. */
export function remember(changes: Partial<View>): void {
	current = { ...current, ...changes };
	history.replaceState(null, "", formatView(current));
}
