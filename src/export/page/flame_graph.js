/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph's page: what can be chosen, and the tree of it (tree.mjs) as
 * d3-flame-graph shows it. What is chosen, searched for and zoomed to is kept in the
 * address, after the #: who opens that address sees the same.
 */
import { select } from "d3-selection";
import flamegraph from "d3-flame-graph";
import { HOST, buildTree, changeOf, findFrames, moduleHue, nameShade, readTables } from "./tree.mjs";
import { labelChoices } from "./labels.mjs";
import { baseName, showTitle } from "./title.mjs";
import { sumOf, tablesOf, timeChoices } from "./types.mjs";
import "./flame_graph.css";

const element = (id) => document.getElementById(id);
const file = readTables(JSON.parse(element("data").textContent));
const times = timeChoices(file);
let time, tables; // what is chosen of them, and the tables of that
useTime(times[0]);
const isCompared = tables.sides.length > 1;
const form = element("controls");
const controls = form.elements;
const RUNS_SHOWN = 50; // in the menu, of each statement
const LABELS_SHOWN = 50; // of each key
const FOLDED_SHOWN = 3; // names that a search found
const GROUP = "label:"; // before a key in `by`

function useTime(choice) {
	time = choice;
	tables = tablesOf(file, choice.samples);
}

/* --- words ------------------------------------------------------------------- */

const SCALES = {
	ns: [["s", 1e9], ["ms", 1e6], ["µs", 1e3]],
	bytes: [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]],
};

function showValue(value) {
	for (const [unit, size] of SCALES[tables.unit] || [])
		if (value >= size)
			return (value / size).toPrecision(Math.max(3, String(Math.floor(value / size)).length)) + " " + unit;
	return value + " " + tables.unit;
}

function showShare(part, whole) {
	return (whole ? 100 * part / whole : 0).toFixed(1) + " %";
}

const sideNames = tables.sides.map(baseName);

/* `show` of each side's number, with the side's name where there are two. */
function showSides(show) {
	return tables.sides.map((_, side) => isCompared ? `${sideNames[side]} ${show(side)}` : show(side)).join(" → ");
}

/* --- colours ----------------------------------------------------------------- */

function isDark() {
	return document.documentElement.dataset.scheme === "dark";
}

function moduleColor(module, shade) {
	if (!module)
		return isDark() ? "hsl(0 0% 30%)" : "hsl(0 0% 82%)";
	return isDark() ? `hsl(${moduleHue(module)} 40% ${34 + shade}%)` : `hsl(${moduleHue(module)} 75% ${74 + shade}%)`;
}

/* Red for more on the second side, blue for less, from -1 to 1. */
function changeColor(change) {
	const hue = change > 0 ? 0 : 220, strength = Math.abs(change);
	return isDark() ? `hsl(${hue} ${65 * strength}% ${28 + 16 * strength}%)` : `hsl(${hue} ${85 * strength}% ${86 - 22 * strength}%)`;
}

function frameColor(node) {
	if (node.highlight)
		return isDark() ? "#a3178f" : "#f08cf0";
	const { frame } = node.data;
	return isCompared ? changeColor(changeOf(node.data, tree.weights)) : moduleColor(frame.module, nameShade(frame.name));
}

function legendItems() {
	if (isCompared)
		return [[-1, `only in ${sideNames[0]}`], [-0.5, "less"], [0, "as before"], [0.5, "more"], [1, `only in ${sideNames[1]}`]]
			.map(([change, text]) => [changeColor(change), text]);
	const total = tree.totals[0];
	return [...tree.modules].sort((a, b) => b[1] - a[1]).map(([module, value]) =>
		[moduleColor(module, 0), `${module || "(no module)"} ${showShare(value, total)}`]);
}

function showLegend() {
	element("legend").replaceChildren(...legendItems().map(([color, text]) => {
		const item = document.createElement("li"), mark = document.createElement("i");
		mark.style.background = color;
		item.append(mark, text);
		return item;
	}));
}

/* --- the chart --------------------------------------------------------------- */

let tree, options; // what is shown
let zoomed = []; // the names of the frames from the root's child to the one that is zoomed to

function describe({ data: branch }) {
	const { name, module, file } = branch.frame;
	const self = isCompared || controls.inverted.checked ? "" : ` (self ${showValue(branch.self)})`;
	const hint = branch.frame === HOST ? ["click to open them"] : [];
	return [name, module, file, ...hint].filter(Boolean).join(" · ") + " · "
		+ showSides((side) => `${showValue(branch.sides[side])}, ${showShare(branch.sides[side], tree.totals[side])}`) + self;
}

/* Which frames a search found inside those that are folded. */
function showFolded(names) {
	const rest = names.length - FOLDED_SHOWN;
	return names.length ? ["folded: " + names.slice(0, FOLDED_SHOWN).join(", ") + (rest > 0 ? ` and ${rest} more` : "")] : [];
}

function search() {
	const text = controls.search.value;
	let pattern = null, message = "";
	try {
		pattern = text && new RegExp(text, "i");
	} catch (error) {
		message = error.message;
	}
	controls.search.classList.toggle("bad", message !== "");
	element("found").textContent = message;
	chart.clear();
	if (!pattern)
		return;
	const found = findFrames(tables, options, tree, (name) => pattern.test(name));
	chart.setSearchMatch((node) => found.branches.has(node.data));
	chart.setSearchHandler(() => {
		element("found").textContent = [`${found.branches.size} frames`, showShare(found.value, tree.root.value), ...showFolded(found.folded)].join(", ");
	});
	chart.search(text);
}

/* Also when the page itself has zoomed. */
function onZoom(node) {
	if (node.data.frame === HOST) {
		controls.host.checked = true;
		show();
		return;
	}
	zoomed = node.ancestors().reverse().slice(1).map((ancestor) => ancestor.data.name);
	writeAddress();
}

function zoomAgain() {
	let node = select("#chart").datum();
	for (const name of zoomed)
		node = node?.children?.find((child) => child.data.name === name);
	if (node && zoomed.length)
		chart.zoomTo(node);
	else
		zoomed = [];
}

const chart = flamegraph().inverted(true).sort(true).minFrameSize(0.5).cellHeight(19)
	.getChildren((branch) => branch.children.values())
	.setLabelHandler(describe)
	.setDetailsElement(element("details"))
	.setColorMapper(frameColor)
	.onClick(onZoom);

/* "CPU 1.20 s · wall 9.80 s (12.2 % on CPU)", of what is chosen. */
function showTimes() {
	if (times.length < 2)
		return;
	const sums = new Map(times.map(({ text, samples }) => [text, tables.sides.map((_, side) =>
		sumOf(tables, samples, (query, set) => query.side === side && options.wanted(query, set)))]));
	const showSum = (text, side) => {
		const [sum, cpu] = [sums.get(text)[side], sums.get("CPU")?.[side]];
		return showValue(sum) + (text === "wall" && sum >= cpu ? ` (${showShare(cpu, sum)} on CPU)` : "");
	};
	element("times").textContent = ["CPU", "wall", "waits"].filter((text) => sums.has(text)).map((text) =>
		`${text} ${showSides((side) => showSum(text, side))}`).join(" · ");
}

/* What is chosen. */
function show() {
	const { name, wanted } = choices[Number(controls.query.value)];
	const label = labels.get(controls.label.value), by = controls.by.value;
	options = {
		name: label ? `${name}, ${label.name}` : name,
		wanted: (query, set) => wanted(query) && (!label || label.wanted(set)),
		groupKey: by ? by.slice(GROUP.length) : undefined,
		isInverted: controls.inverted.checked,
		showsHost: controls.host.checked,
		showsOwn: controls.own.checked,
		showsShares: controls.compare.value === "shares",
	};
	tree = buildTree(tables, options);
	element("totals").textContent = showSides((side) =>
		`${showValue(tree.totals[side])} of ${time.what} in ${tree.counts[side]} samples`);
	showTimes();
	// What moves is zooming; what is new is there at once.
	chart.transitionDuration(0).height(null).width(element("chart").clientWidth);
	if (select("#chart svg").empty())
		select("#chart").datum(tree.root).call(chart);
	else
		chart.update(tree.root);
	showLegend();
	search();
	zoomAgain();
	chart.transitionDuration(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 200);
	writeAddress();
}

/* --- what can be chosen -------------------------------------------------------- */

const choices = []; // by the value of the menu's option
const labels = new Map(); // likewise

/* key: the same in the menu of another time. */
function addChoice(menu, text, name, key, wanted) {
	const option = new Option(text, choices.length);
	choices.push({ name, key, wanted });
	menu.append(option);
	return option;
}

function showTime(queries) {
	return tables.sides.map((_, side) => showValue(queries.reduce((sum, query) =>
		sum + (query.side === side ? query.value : 0), 0))).join(" → ");
}

/* Those that have samples, and how many there were, where the file has counted them. */
function showRuns(runs, statement) {
	const all = tables.sides.map((_, side) => tables.runs[2 * statement + side]);
	const name = runs.length === 1 ? `run ${runs[0].id}` : `${runs.length} runs`;
	if (!all.some(Boolean))
		return name;
	const numbers = all.map((number) => number.toLocaleString("en")).join(" → ");
	return `${name} with samples, of ${numbers}`;
}

function addRuns(group, runs) {
	for (const run of runs.slice(0, RUNS_SHOWN)) {
		const text = [showTime([run]), run.id, run.database].filter(Boolean).join(" · ");
		addChoice(group, text, `run ${run.id}`, JSON.stringify([run.statement, run.id, run.database]), (query) => query === run);
	}
	const rest = runs.slice(RUNS_SHOWN);
	if (rest.length) {
		const option = new Option(`${showTime(rest)} · ${rest.length} more runs, not listed`);
		option.disabled = true;
		group.append(option);
	}
}

function fillMenu() {
	const runs = tables.statements.map(() => []), sampled = tables.queries.filter(({ samples }) => samples !== 0);
	sampled.forEach((query) => runs[query.statement].push(query));
	addChoice(controls.query, `all: ${sampled.length} runs with samples`, "all queries", "all", () => true);
	const values = runs.map((mine) => mine.reduce((sum, { value }) => sum + value, 0));
	const order = [...tables.statements.keys()].filter((statement) => runs[statement].length).sort((a, b) => values[b] - values[a]);
	order.forEach((statement) => {
		const text = tables.statements[statement];
		const mine = runs[statement].sort((a, b) => b.value - a.value);
		const isMine = (query) => query.statement === statement;
		const name = mine.length === 1 ? `run ${mine[0].id}` : `${mine.length} runs`;
		const counted = showRuns(mine, statement);
		if (mine.length === 1 || isCompared) {
			addChoice(controls.query, `${showTime(mine)} · ${text}`, name, "statement" + statement, isMine).title = counted;
			return;
		}
		const group = document.createElement("optgroup");
		group.label = text;
		addChoice(group, `${showTime(mine)} · all ${counted}`, name, "statement" + statement, isMine);
		addRuns(group, mine);
		controls.query.append(group);
	});
}

/* Without labels there is nothing to choose. */
function fillLabels() {
	for (const { key, choices: values } of labelChoices(tables)) {
		const group = document.createElement("optgroup"), rest = values.length - LABELS_SHOWN;
		group.label = key;
		for (const { text, value, sides, wanted } of values.slice(0, LABELS_SHOWN)) {
			labels.set(value, { name: value.includes("=") ? `${key}=${text}` : text, wanted });
			group.append(new Option(`${tables.sides.map((_, side) => showValue(sides[side])).join(" → ")} · ${text}`, value));
		}
		if (rest > 0) {
			const option = new Option(`${rest} more, not listed`);
			option.disabled = true;
			group.append(option);
		}
		controls.label.append(group);
		controls.by.append(new Option(`label ${key}`, GROUP + key));
	}
	for (const control of document.querySelectorAll(".labels"))
		control.hidden = !labels.size;
}

/* The menus of the chosen time. */
function fillMenus() {
	useTime(times[controls.type.selectedIndex]);
	controls.query.replaceChildren();
	controls.label.replaceChildren(controls.label.options[0]);
	controls.by.replaceChildren(controls.by.options[0]);
	choices.length = 0;
	labels.clear();
	fillMenu();
	fillLabels();
}

/* Another time, and what was chosen of the one before, where it has samples. */
function changeTime() {
	const { key } = choices[Number(controls.query.value)], label = controls.label.value, by = controls.by.value;
	fillMenus();
	const find = (control, value) => control.value = [...control.options].some((option) => option.value === value) ? value : control.options[0].value;
	find(controls.query, String(choices.findIndex((choice) => choice.key === key)));
	find(controls.label, label);
	find(controls.by, by);
	show();
	writeAddress();
}

function useScheme() {
	const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
	document.documentElement.dataset.scheme = controls.scheme.value || system;
	if (tree) {
		chart.update();
		showLegend();
	}
}

/* --- the address --------------------------------------------------------------- */

function writeAddress() {
	const state = new URLSearchParams([...new FormData(form)].filter(([, value]) => value && value !== "0"));
	zoomed.forEach((name) => state.append("zoom", name));
	history.replaceState(null, "", "#" + state);
}

function readAddress() {
	const state = new URLSearchParams(location.hash.slice(1));
	for (const control of [...controls].filter(({ name }) => name)) { // the time comes first: the menus are of it
		const value = state.get(control.name) ?? "";
		if (control.type === "checkbox")
			control.checked = value === control.value;
		else
			control.value = value;
		if (control.selectedIndex < 0)
			control.selectedIndex = 0;
		if (control === controls.type)
			fillMenus();
	}
	zoomed = state.getAll("zoom");
	useScheme();
	show();
}

element("title").textContent = showTitle(tables);
element("files").textContent = tables.sides.join(" → ");
document.title = showTitle(tables) + " · queryprof";
element("compare").hidden = !isCompared;
times.forEach(({ value, text }) => controls.type.append(new Option(text, value)));
for (const control of document.querySelectorAll(".times"))
	control.hidden = times.length < 2;
readAddress();
form.addEventListener("submit", (event) => event.preventDefault());
for (const name of ["query", "label", "by", "inverted", "host", "own", "compare"])
	controls[name].addEventListener("change", show);
controls.type.addEventListener("change", changeTime);
controls.search.addEventListener("input", search);
controls.scheme.addEventListener("change", useScheme);
form.addEventListener("input", writeAddress);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", useScheme);
element("reset").addEventListener("click", () => chart.resetZoom());
addEventListener("keydown", (event) => event.key === "Escape" && chart.resetZoom());
addEventListener("resize", () => chart.width(element("chart").clientWidth).update());
addEventListener("hashchange", readAddress);
