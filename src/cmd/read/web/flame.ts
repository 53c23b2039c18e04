/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph of one or all statements. Choices are kept when the panel is drawn again.
 */
import flamegraph, { type FlameGraph, type Frame } from "d3-flame-graph";
import { select } from "d3-selection";
import type { Data } from "./data.ts";
import { element, table } from "./dom.ts";
import { duration, oneLine, percent } from "./format.ts";
import { type Branch, type FunctionSum, hue, makeTree, sumFunctions, type Time, times } from "./stacks.ts";

const NAMES: Record<Time, string> = { cpu: "CPU time", wall: "wall time", waits: "waits" };
const FUNCTIONS_SHOWN = 50;

const chosen = { time: "wall" as Time, icicle: true, all: false, search: "" };

function color({ data, highlight }: Frame<Branch>): string {
	const isDark = matchMedia("(prefers-color-scheme: dark)").matches, own = hue(data.module);
	if (highlight)
		return isDark ? "#a3178f" : "#f08cf0";
	return own === null ? isDark ? "hsl(0 0% 30%)" : "hsl(0 0% 84%)" : isDark ? `hsl(${own} 40% 32%)` : `hsl(${own} 70% 80%)`;
}

function choice(label: string, control: HTMLElement): HTMLElement {
	return element("label", {}, `${label} `, control);
}

function makeChart(root: Branch, details: HTMLElement): FlameGraph<Branch> {
	return flamegraph<Branch>().inverted(chosen.icicle).sort(true).minFrameSize(1).cellHeight(18)
		.transitionDuration(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 200)
		.getChildren((branch) => [...branch.children.values()])
		.setLabelHandler(({ data }) => [data.name, data.module, `${duration(data.value)}, ${percent(100 * data.value / root.value)}`,
			`self ${duration(data.self)}`].filter(Boolean).join(" · "))
		.setDetailsElement(details)
		.setColorMapper(color);
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

/* statement: "": all. */
export function showFlame(data: Data, statement: string): HTMLElement[] {
	const known = times(data.stacks), nameOf = (id: string): string => {
		const found = data.statements.find((one) => one.statement === id);
		return oneLine(found?.query ?? (/^0+$/.test(id) ? "statement not known" : `statement ${id.slice(0, 8)}`), 120);
	};
	const title = element("h2", {}, statement ? "Flame graph of a statement" : "Flame graph");
	if (!known.length)
		return [title, element("p", {}, "Not known: none of these queries has a sample.")];
	if (!known.includes(chosen.time))
		chosen.time = known[0]!;
	const which = element("select", { id: "flame-statement" }) as HTMLSelectElement, time = element("select", { id: "flame-time" }) as HTMLSelectElement;
	const box = (key: "icicle" | "all"): HTMLInputElement => {
		const made = element("input", { type: "checkbox" }) as HTMLInputElement;
		made.checked = chosen[key];
		made.addEventListener("change", () => {
			chosen[key] = made.checked;
			draw();
		});
		return made;
	};
	const search = element("input", { type: "search", id: "flame-search" }) as HTMLInputElement;
	const found = element("span", { role: "status" }), details = element("p", { class: "details" }), place = element("div", { class: "flame" }), rest = element("div");
	const listed = [...new Set(data.stacks.map((stack) => stack.statement))].filter((id) => !/^0+$/.test(id));
	which.append(new Option("all statements", ""), ...listed.map((id) => new Option(nameOf(id), id)));
	which.value = statement;
	time.append(...known.map((one) => new Option(NAMES[one], one)));
	time.value = chosen.time;
	search.value = chosen.search;
	const draw = (): void => {
		const root = makeTree(data.stacks, data.functions, { ...chosen, statement }, nameOf), chart = makeChart(root, details), fresh = element("div");
		const find = (): void => {
			const wanted = chosen.search.toLowerCase(), isFound = (branch: Branch): boolean => branch.name.toLowerCase().includes(wanted);
			const sum = (branch: Branch): number => isFound(branch) ? branch.value : [...branch.children.values()].reduce((all, one) => all + sum(one), 0);
			chart.clear();
			found.textContent = wanted ? ` ${percent(root.value ? 100 * sum(root) / root.value : 0)}` : "";
			if (!wanted)
				return;
			chart.setSearchMatch((frame) => isFound(frame.data));
			chart.search(wanted);
		};
		search.oninput = (): void => {
			chosen.search = search.value;
			find();
		};
		place.replaceChildren(fresh);
		place.setAttribute("aria-label", `Flame graph of ${root.name}: ${duration(root.value)} of ${NAMES[chosen.time]}. The table below has the functions.`);
		drawWhenPlaced(fresh, chart, root, find);
		const sums = sumFunctions(data.stacks, data.functions, { ...chosen, statement });
		rest.replaceChildren(table<FunctionSum>("functions", `Functions by their own time, of ${duration(root.value)} of ${NAMES[chosen.time]} in the stacks that are shown`, [
			{ title: "self", is_number: true, key: (one) => one.self, show: (one) => duration(one.self) },
			{ title: "total", is_number: true, key: (one) => one.total, show: (one) => duration(one.total) },
			{ title: "function", kind: "text", show: (one) => one.function },
			{ title: "module", show: (one) => one.module },
		], sums.slice(0, FUNCTIONS_SHOWN)));
	};
	which.addEventListener("change", () => location.hash = which.value ? `#flame=${which.value}` : "#flame");
	time.addEventListener("change", () => {
		chosen.time = time.value as Time;
		draw();
	});
	place.setAttribute("role", "img");
	draw();
	return [title, element("p", { class: "choices" }, choice("Statement", which), choice("Time", time), choice("Search", search), found, choice("Root at the top", box("icicle")), choice("All frames", box("all"))), place, details, rest];
}
