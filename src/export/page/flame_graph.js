/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph's page: turns the tables that flamegraph.c writes into the tree of
 * the query that is selected, and gives it to d3-flame-graph.
 *
 * Of the tables, `nodes` is one tree for all queries: pairs of the parent's number (-1:
 * the root) and the function's, parents before their children. `samples` are, four by
 * four, a node in which time was spent itself, the query, samples, and ns.
 */
import { select } from "d3-selection";
import flamegraph from "d3-flame-graph";
import "./flame_graph.css";

const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const RUNS_SHOWN = 50; // in the menu, of each statement

/* --- words ------------------------------------------------------------------- */

const SCALES = {
	ns: [["s", 1e9], ["ms", 1e6], ["µs", 1e3]],
	bytes: [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]],
};

function showValue(value) {
	for (const [unit, size] of SCALES[data.unit] || [])
		if (value >= size)
			return (value / size).toPrecision(Math.max(3, String(Math.floor(value / size)).length)) + " " + unit;
	return value + " " + data.unit;
}

function showShare(part, whole) {
	return (whole ? 100 * part / whole : 0).toFixed(1) + " %";
}

const what = { CPU: "CPU time", Real: "wall time" }[data.trace_type] || data.trace_type;

/* --- trees ------------------------------------------------------------------- */

/* Of the samples of the queries for which `wanted` says so. */
function buildTree(name, wanted) {
	const count = data.nodes.length / 2;
	const self = new Float64Array(count + 1); // the root is the last
	let samples = 0;
	for (let i = 0; i < data.samples.length; i += 4) {
		if (!wanted(data.samples[i + 1]))
			continue;
		const node = data.samples[i];
		self[node < 0 ? count : node] += data.samples[i + 3];
		samples += data.samples[i + 2];
	}
	const total = self.slice();
	for (let i = count - 1; i >= 0; i--)
		total[data.nodes[2 * i] < 0 ? count : data.nodes[2 * i]] += total[i];
	const root = { name, value: total[count], self: self[count], samples, children: [] };
	const made = [];
	for (let i = 0; i < count; i++) {
		if (!total[i])
			continue;
		const [functionName, module, file] = data.functions[data.nodes[2 * i + 1]];
		made[i] = { name: functionName, module, file, value: total[i], self: self[i], children: [] };
		const parent = data.nodes[2 * i];
		(parent < 0 ? root : made[parent]).children.push(made[i]);
	}
	return root;
}

/* --- colours: a hue a module, the one with the most self time first ------------ */

const HUES = [28, 205, 130, 280, 350, 60, 170, 240];
const hues = new Map();

function rankModules() {
	const times = new Map();
	for (let i = 0; i < data.samples.length; i += 4) {
		const node = data.samples[i];
		const module = node < 0 ? -1 : data.functions[data.nodes[2 * node + 1]][1];
		times.set(module, (times.get(module) || 0) + data.samples[i + 3]);
	}
	data.modules.forEach((_, module) => times.has(module) || times.set(module, 0));
	for (const [module] of [...times].filter(([module]) => module >= 0).sort((a, b) => b[1] - a[1]))
		hues.set(module, HUES[hues.size % HUES.length] + 11 * Math.floor(hues.size / HUES.length));
}

function isDark() {
	return document.documentElement.dataset.scheme === "dark";
}

/* Neighbours of one module differ a little, always in the same way. */
function color(module, name) {
	let shade = 0;
	for (let i = 0; i < name.length; i++)
		shade = (shade * 31 + name.charCodeAt(i)) & 0xffff;
	shade = shade % 9 - 4;
	if (!hues.has(module))
		return isDark() ? "hsl(0 0% 30%)" : "hsl(0 0% 82%)";
	return isDark() ? `hsl(${hues.get(module)} 40% ${34 + shade}%)` : `hsl(${hues.get(module)} 75% ${74 + shade}%)`;
}

function showLegend(root) {
	const times = new Map();
	const visit = (node) => {
		times.set(node.module, (times.get(node.module) || 0) + node.self);
		node.children.forEach(visit);
	};
	root.children.forEach(visit);
	element("legend").replaceChildren(...[...times].sort((a, b) => b[1] - a[1]).map(([module, ns]) => {
		const item = document.createElement("li"), mark = document.createElement("i");
		mark.style.background = color(module, "");
		item.append(mark, `${module >= 0 ? data.modules[module] : "(no module)"} ${showShare(ns, root.value)}`);
		return item;
	}));
}

/* --- the chart --------------------------------------------------------------- */

let root, chart;

function describe(node) {
	const at = node.data;
	const words = [at.name];
	if (at.module >= 0)
		words.push(data.modules[at.module]);
	if (at.file)
		words.push(at.file);
	return `${words.join(" · ")} · ${showValue(at.value)}, ${showShare(at.value, root.value)}`
		+ ` (self ${showValue(at.self)})`;
}

function search() {
	const text = element("search").value;
	let pattern = null;
	try {
		pattern = text && new RegExp(text, "i");
	} catch {
		// Not yet a regular expression.
	}
	element("search").classList.toggle("bad", Boolean(text) && !pattern);
	element("found").textContent = "";
	chart.clear();
	if (!pattern)
		return;
	chart.setSearchMatch((node) => Boolean(node.parent) && pattern.test(node.data.name));
	chart.search(text);
}

function makeChart() {
	chart = flamegraph().inverted(true).sort(true).minFrameSize(0.5).cellHeight(19)
		.width(element("chart").clientWidth)
		.setLabelHandler(describe)
		.setDetailsElement(element("details"))
		.setSearchHandler((found, sum, total) => {
			element("found").textContent = `${found.length} frames, ${showShare(sum, total)}`;
		})
		.setColorMapper((node) => node.highlight ? (isDark() ? "#a3178f" : "#f08cf0")
			: color(node.parent ? node.data.module : -1, node.data.name));
	select("#chart").datum(root).call(chart.transitionDuration(0));
}

function show(name, wanted) {
	root = buildTree(name, wanted);
	element("totals").textContent = `${showValue(root.value)} of ${what} in ${root.samples} samples`;
	showLegend(root);
	if (!chart)
		makeChart();
	// What moves is zooming; what is new is there at once.
	chart.transitionDuration(0).height(null).update(root);
	search();
	chart.transitionDuration(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 200);
}

/* --- what can be chosen -------------------------------------------------------- */

function fillMenu() {
	const menu = element("query"), choices = [];
	const add = (to, text, name, wanted) => {
		const option = new Option(text, String(choices.length));
		choices.push([name, wanted]);
		to.append(option);
	};
	const runs = data.statements.map(() => []);
	data.queries.forEach(([statement], query) => runs[statement].push(query));
	const time = (query) => data.queries[query][3];
	add(menu, `all: ${data.queries.length} queries`, "all queries", () => true);
	data.statements.forEach((text, statement) => {
		const mine = runs[statement].sort((a, b) => time(b) - time(a));
		const sum = mine.reduce((ns, query) => ns + time(query), 0);
		if (mine.length === 1) {
			add(menu, `${showValue(sum)} · ${text}`, text, (query) => query === mine[0]);
			menu.lastChild.title = data.queries[mine[0]][1];
			return;
		}
		const group = document.createElement("optgroup");
		group.label = text;
		add(group, `${showValue(sum)} · all ${mine.length} runs`, text, (query) => data.queries[query][0] === statement);
		for (const run of mine.slice(0, RUNS_SHOWN)) {
			const [, id, database] = data.queries[run];
			add(group, `${showValue(time(run))} · ${id}${database ? " · " + database : ""}`, `${text} · ${id}`,
				(query) => query === run);
		}
		menu.append(group);
	});
	menu.addEventListener("change", () => show(...choices[menu.value]));
	show(...choices[0]);
}

function useScheme() {
	const chosen = element("scheme").value;
	const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
	document.documentElement.dataset.scheme = chosen || system;
	if (chart) {
		chart.update();
		showLegend(root);
	}
}

rankModules();
element("title").textContent = data.title;
document.title = data.title + " · queryprof";
element("scheme").addEventListener("change", useScheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", useScheme);
useScheme();
fillMenu();
element("search").addEventListener("input", search);
element("reset").addEventListener("click", () => chart.resetZoom());
addEventListener("keydown", (event) => event.key === "Escape" && chart.resetZoom());
addEventListener("resize", () => chart.width(element("chart").clientWidth).update());
