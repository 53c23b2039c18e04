/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph of a selection, alone or compared with another time.
 */
import flamegraph, { type FlameGraph, type Frame } from "d3-flame-graph";
import { select } from "d3-selection";
import type { Data } from "./data.ts";
import { choice, element, table } from "./dom.ts";
import { duration, percent } from "./format.ts";
import { nameOf, pointsOf, selectionOf, showSelection } from "./select.ts";
import { type Branch, type FunctionSum, growth, hue, makeTree, sumFunctions, type Time, times } from "./stacks.ts";
import { selectStacks } from "./times.ts";
import { go, remember, shown } from "./view.ts";

export const TIME_NAMES: Record<Time, string> = { cpu: "CPU time", wall: "wall time", waits: "waits" };
const FUNCTIONS_SHOWN = 50, GROWTH_FULL = 0.1; /* from this change of its share on, a frame has the full color */

/* More is orange, less is blue: eyes that do not tell red from green tell these. */
function colorOfGrowth(part: number, isDark: boolean): string {
	const strength = Math.min(1, Math.abs(part) / GROWTH_FULL), hue = part > 0 ? 35 : 210;
	return strength < 0.02 ? isDark ? "hsl(0 0% 30%)" : "hsl(0 0% 84%)" : isDark ? `hsl(${hue} ${30 + 60 * strength}% ${28 + 8 * strength}%)` : `hsl(${hue} ${40 + 60 * strength}% ${88 - 28 * strength}%)`;
}

const colorIn = (root: Branch, isCompared: boolean) => ({ data, highlight }: Frame<Branch>): string => {
	const isDark = matchMedia("(prefers-color-scheme: dark)").matches, own = hue(data.module);
	if (highlight)
		return isDark ? "#a3178f" : "#f08cf0";
	if (isCompared)
		return colorOfGrowth(growth(data, root), isDark);
	return own === null ? isDark ? "hsl(0 0% 30%)" : "hsl(0 0% 84%)" : isDark ? `hsl(${own} 40% 32%)` : `hsl(${own} 70% 80%)`;
};

const signed = (part: number): string => `${part < 0 ? "−" : "+"}${percent(100 * Math.abs(part))}`;

function makeChart(root: Branch, details: HTMLElement, isCompared: boolean): FlameGraph<Branch> {
	return flamegraph<Branch>().inverted(shown().root !== "bottom").sort(true).minFrameSize(1).cellHeight(18)
		.transitionDuration(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 200)
		.getChildren((branch) => [...branch.children.values()])
		.setLabelHandler(({ data }) => [data.name, data.module, `${duration(data.value)}, ${percent(100 * data.value / root.value)}`,
			`self ${duration(data.self)}`, isCompared && `${signed(growth(data, root))} of the time`].filter(Boolean).join(" · "))
		.setDetailsElement(details)
		.setColorMapper(colorIn(root, isCompared));
}

/* The chart takes the width of its place, which is known after the page's layout. */
function drawWhenPlaced(place: HTMLElement, chart: FlameGraph<Branch>, root: Branch, search: () => void): void {
	let width = 0;
	new ResizeObserver(() => {
		if (!place.clientWidth || place.clientWidth === width)
			return;
		const isFirst = !width;
		width = place.clientWidth;
		chart.width(width);
		if (isFirst)
			select(place).datum(root).call(chart);
		else
			chart.update(root);
		search();
	}).observe(place);
}

export function showFlame(data: Data): HTMLElement[] {
	const { statement, base, time: wantedTime, frames, root: rootAt } = shown(), known = times(data.stacks);
	const title = element("h2", {}, statement ? "Flame graph of a statement" : "Flame graph");
	if (!known.length)
		return [title, element("p", {}, "Not known: none of these queries has a sample.")];
	const time = known.find((one) => one === wantedTime) ?? known[0]!, selection = selectionOf(data), points = pointsOf(data);
	const timeInput = element("select", { id: "flame-time" }) as HTMLSelectElement, search = element("input", { type: "search", id: "flame-search" }) as HTMLInputElement;
	const box = (isChecked: boolean, change: (isChecked: boolean) => void): HTMLInputElement => {
		const made = element("input", { type: "checkbox" }) as HTMLInputElement;
		made.checked = isChecked;
		made.addEventListener("change", () => change(made.checked));
		return made;
	};
	timeInput.append(...known.map((one) => new Option(TIME_NAMES[one], one)));
	timeInput.value = time;
	timeInput.addEventListener("change", () => go({ time: timeInput.value }));
	search.value = shown().find;
	const found = element("span", { role: "status" }), details = element("p", { class: "details" }), place = element("div", { class: "flame", role: "img" });
	const stacks = selectStacks(data, points, selection), others = base ? selectStacks(data, points, { ...selection, span: base }) : [];
	const chosen = { time, statement, all: frames === "all" }, root = makeTree(stacks, data.functions, chosen, (id) => nameOf(data, id), others);
	const chart = makeChart(root, details, base !== null);
	const find = (): void => {
		const wanted = search.value.toLowerCase(), isFound = (branch: Branch): boolean => branch.name.toLowerCase().includes(wanted);
		const sum = (branch: Branch): number => isFound(branch) ? branch.value : [...branch.children.values()].reduce((all, one) => all + sum(one), 0);
		chart.clear();
		found.textContent = wanted ? ` ${percent(root.value ? 100 * sum(root) / root.value : 0)}` : "";
		if (!wanted)
			return;
		chart.setSearchMatch((frame) => isFound(frame.data));
		chart.search(wanted);
	};
	search.addEventListener("input", () => {
		remember({ find: search.value });
		find();
	});
	place.setAttribute("aria-label", `Flame graph of ${root.name}: ${duration(root.value)} of ${TIME_NAMES[time]}. The table below has the functions.`);
	if (root.value > 0)
		drawWhenPlaced(place, chart, root, find);
	const functionsOf = (some: typeof stacks): FunctionSum[] => sumFunctions(some, data.functions, chosen);
	const sums = functionsOf(stacks), before = new Map(functionsOf(others).map((one) => [`${one.module}\n${one.function}`, one]));
	const change = (one: FunctionSum): number => one.self / (root.value || 1) - (before.get(`${one.module}\n${one.function}`)?.self ?? 0) / (root.base || 1);
	const gone = base ? [...before.values()].filter((one) => !sums.some((other) => other.function === one.function && other.module === one.module)).map((one) => ({ ...one, self: 0, total: 0 })) : [];
	const rows = base ? [...sums, ...gone].sort((a, b) => Math.abs(change(b)) - Math.abs(change(a))) : sums;
	return [title, showSelection(data, true, choice("Time", timeInput), choice("Search", search), found,
		choice("Root at the top", box(rootAt !== "bottom", (isTop) => go({ root: isTop ? "" : "bottom" }))), choice("All frames", box(chosen.all, (isAll) => go({ frames: isAll ? "all" : "" })))),
	root.value > 0 ? null : element("p", {}, "No sample in this selection."),
	base ? element("p", { class: "soft" }, `Orange: a larger share of the time than in the time that it is compared with (${duration(root.base)}). Blue: a smaller one.`) : null, place, details,
	table<FunctionSum>("functions", `Functions by ${base ? "the change of " : ""}their own time, of ${duration(root.value)} of ${TIME_NAMES[time]} in the stacks that are shown`, [
		{ title: "self", is_number: true, key: (one) => one.self, show: (one) => duration(one.self) },
		{ title: "total", is_number: true, key: (one) => one.total, show: (one) => duration(one.total) },
		...base ? [{ title: "change", is_number: true, key: change, show: (one: FunctionSum) => signed(change(one)) }] : [],
		{ title: "function", kind: "text", show: (one) => one.function },
		{ title: "module", show: (one) => one.module },
	], rows.slice(0, FUNCTIONS_SHOWN))].filter((part) => part !== null);
}
