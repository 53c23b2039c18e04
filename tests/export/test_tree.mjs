/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph's trees, from tables as flamegraph.c writes them.
 *
 *   node --test tests/export/test_tree.mjs
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HOST, buildTree, changeOf, findFrames, moduleHue, readTables } from "../../src/export/page/tree.mjs";
import { labelChoices } from "../../src/export/page/labels.mjs";
import { showTitle } from "../../src/export/page/title.mjs";
import { sumOf, tablesOf, timeChoices } from "../../src/export/page/types.mjs";

const MODULES = ["app", "libsqlite3.so.0", "libqueryprof.so.0", "libc.so.6"];

/* Tables of samples: [side, statement, query, value, function…], root first; a function is
 * "name" or "name@module", with a file after a blank. `sets`: the labels of each, else none. */
function makeTables(sides, samples, modules = MODULES, sets = []) {
	const data = { sides, modules, trace_type: "CPU", unit: "ns", samples: [], nodes: [], functions: [], statements: [], queries: [], labels: [] };
	const numberOf = (list, item) => {
		const found = list.findIndex((other) => JSON.stringify(other) === JSON.stringify(item));
		return found < 0 ? list.push(item) - 1 : found;
	};
	for (const [at, [side, statement, id, value, ...path]] of samples.entries()) {
		const query = numberOf(data.queries, [numberOf(data.statements, statement), id, "", 0, side]);
		let node = -1;
		for (const text of path) {
			const [, name, module, file] = /^([^@ ]+(?: \([^)]+:\d+\))?)@?(\S*) ?(.*)$/.exec(text);
			const func = numberOf(data.functions, [name, modules.indexOf(module), file]);
			let next = -1;
			for (let i = 0; i < data.nodes.length; i += 2)
				if (data.nodes[i] === node && data.nodes[i + 1] === func)
					next = i / 2;
			node = next < 0 ? data.nodes.push(node, func) / 2 - 1 : next;
		}
		data.samples.push(node, query, numberOf(data.labels, sets[at] ? JSON.stringify(sets[at]) : ""), 1, value);
	}
	data.types = [["CPU", samples.length]];
	return readTables(data);
}

/* { name: [value, { name: … }] } of what is on top. */
function shape(branch) {
	return Object.fromEntries([...branch.children.values()].map((child) =>
		[child.name, child.children.size ? [child.value, shape(child)] : child.value]));
}

function treeOf(tables, options = {}) {
	return buildTree(tables, { name: "all", wanted: () => true, ...options });
}

const HOST_PATH = ["main@app", "run@app", "queryprof_step@libqueryprof.so.0", "sqlite3_step@libsqlite3.so.0"];
const one = makeTables(["a.trace"], [
	[0, "SELECT 1", "q1", 5, ...HOST_PATH, "sort@libsqlite3.so.0"],
	[0, "SELECT 1", "q2", 3, ...HOST_PATH, "memcpy@libc.so.6"],
	[0, "SELECT 2", "q3", 2, ...HOST_PATH, "memcpy@libc.so.6"],
	[0, "SELECT 2", "q3", 1, ...HOST_PATH.slice(0, 3)],
	[0, "SELECT 3", "q4", 4, "engine@app", "scan@app"],
	[0, "SELECT 3", "q4", 6],
]);

test("statements are frames under the root, the host is folded, the wrapper hidden", () => {
	const { root, totals, counts } = treeOf(one);
	assert.deepEqual(shape(root), {
		"SELECT 1": [8, { "host frames": [8, { sqlite3_step: [8, { sort: 5, memcpy: 3 }] }] }],
		"SELECT 2": [3, { "host frames": [3, { sqlite3_step: [2, { memcpy: 2 }] }] }],
		"SELECT 3": [10, { engine: [4, { scan: 4 }] }],
	});
	assert.equal(root.value, 21);
	assert.deepEqual([totals, counts], [[21, 0], [6, 0]]);
	assert.ok([...root.children.values()][0].children.has(HOST));
});

test("the program's own frames are not folded", () => {
	const tables = makeTables(["a"], [[0, "SELECT 1", "q1", 5, "start@libc.so.6", "find (app.py:31)", "step@_sqlite3.so", "sqlite3_step@libsqlite3.so.0"]],
		["libc.so.6", "_sqlite3.so", "libsqlite3.so.0"]);
	assert.deepEqual(shape(treeOf(tables).root), { "SELECT 1": [5, { "host frames": [5, { "find (app.py:31)": [5, { step: [5, { sqlite3_step: 5 }] }] }] }] });
});

test("host frames and the wrapper are there when they are requested", () => {
	const wanted = ({ id }) => id === "q1";
	const inside = { sqlite3_step: [5, { sort: 5 }] };
	assert.deepEqual(shape(treeOf(one, { wanted, showsHost: true }).root),
		{ "SELECT 1": [5, { main: [5, { run: [5, inside] }] }] });
	assert.deepEqual(shape(treeOf(one, { wanted, showsOwn: true }).root),
		{ "SELECT 1": [5, { "host frames": [5, { queryprof_step: [5, inside] }] }] });
	assert.deepEqual(shape(treeOf(one, { wanted, showsHost: true, showsOwn: true }).root),
		{ "SELECT 1": [5, { main: [5, { run: [5, { queryprof_step: [5, inside] }] }] }] });
});

test("a search looks into folded frames, and counts the samples that have what it found", () => {
	const two = makeTables(["a.trace"], [
		[0, "q", "q1", 6, "main@app", "load@app", "sqlite3_step@libsqlite3.so.0", "sort@libsqlite3.so.0"],
		[0, "q", "q1", 4, "main@app", "save@app", "sqlite3_step@libsqlite3.so.0", "scan@libsqlite3.so.0"],
	]);
	const find = (pattern, options = {}) => {
		const tree = treeOf(two, options);
		const { branches, folded, value } = findFrames(two, { wanted: () => true, ...options }, tree, (name) => pattern.test(name));
		return [[...branches].map(({ name }) => name), folded, value];
	};
	for (const isInverted of [false, true]) {
		const hosts = isInverted ? ["host frames", "host frames"] : ["host frames"];
		assert.deepEqual(find(/load/, { isInverted }), [["host frames"], ["load"], 6]);
		assert.deepEqual(find(/main/, { isInverted }), [hosts, ["main"], 10]);
		assert.deepEqual(find(/load|scan/, { isInverted }).slice(1), [["load"], 10]);
		assert.deepEqual(find(/load/, { isInverted, showsHost: true }), [["load"], [], 6]);
	}
	assert.deepEqual(find(/scan/), [["scan"], [], 4]);
	assert.deepEqual(find(/q/).slice(1), [[], 10]);
	assert.deepEqual(find(/all|none/), [[], [], 0]);
});

test("what the host does inside SQLite is not folded", () => {
	const nested = makeTables(["a.trace"], [[0, "q", "q", 1, ...HOST_PATH, "callback@app", ...HOST_PATH]]);
	assert.deepEqual(shape(treeOf(nested).root), { q: [1, { "host frames": [1, { sqlite3_step: [1, {
		callback: [1, { main: [1, { run: [1, { sqlite3_step: 1 }] }] }] }] }] }] });
});

test("inverted, leaves are under the root and their callers on top of them", () => {
	const { root } = treeOf(one, { isInverted: true });
	const callers = (value, statements) => [value, { sqlite3_step: [value, { "host frames": [value, statements] }] }];
	assert.deepEqual(shape(root), {
		sort: callers(5, { "SELECT 1": 5 }),
		memcpy: callers(5, { "SELECT 1": 3, "SELECT 2": 2 }),
		"host frames": [1, { "SELECT 2": 1 }],
		scan: [4, { engine: [4, { "SELECT 3": 4 }] }],
		"SELECT 3": 6,
	});
	assert.equal(root.value, 21);
});

test("modules have the time of their leaves, in both directions", () => {
	for (const isInverted of [false, true])
		assert.deepEqual(Object.fromEntries(treeOf(one, { isInverted }).modules),
			{ "libsqlite3.so.0": 5, "libc.so.6": 5, "libqueryprof.so.0": 1, app: 4, "": 6 });
});

test("a comparison joins what has the same name in the same module, of any version", () => {
	const modules = ["libx.so.1.0", "libx.so.1.1"];
	const both = makeTables(["a.trace", "b.trace"], [
		[0, "q", "q1", 10, "f@libx.so.1.0 /old/f.c", "g@libx.so.1.0"],
		[1, "q", "q1", 30, "f@libx.so.1.1 /new/f.c", "g@libx.so.1.1"],
		[0, "q", "q1", 10, "libx.so.1.0+0x10@libx.so.1.0"],
		[1, "q", "q1", 10, "libx.so.1.1+0x20@libx.so.1.1"],
		[1, "r", "q2", 40, "0x1234"],
	], modules);
	const { root, weights, totals } = treeOf(both);
	const changes = (branch) => Object.fromEntries([...branch.children.values()].map((child) =>
		[child.name, [...child.sides, changeOf(child, weights)]]));
	assert.deepEqual(totals, [20, 80]);
	assert.deepEqual(changes(root), { q: [20, 40, 1 / 3], r: [0, 40, 1] });
	const [q, r] = root.children.values();
	assert.deepEqual(changes(q), { f: [10, 30, 0.5], "(libx.so)": [10, 10, 0] });
	assert.deepEqual(changes(r), { "(no module)": [0, 40, 1] });
	assert.deepEqual([root.value, q.value], [100, 60]);
});

test("shares make both sides as wide", () => {
	const both = makeTables(["a.trace", "b.trace"], [[0, "q", "1", 10, "f"], [1, "q", "1", 100, "f"], [0, "r", "2", 10, "f"]]);
	const { root, weights } = treeOf(both, { showsShares: true });
	assert.equal(root.value, 2);
	assert.deepEqual([...root.children.values()].map((child) => [child.value, changeOf(child, weights)]), [[1.5, 1 / 3], [0.5, -1]]);
});

test("functions of one name in two files are two, unless files are compared", () => {
	const samples = [[0, "q", "1", 1, "compare@app a.c"], [0, "q", "1", 2, "compare@app b.c"]];
	const count = (sides) => treeOf(makeTables(sides, samples)).root.children.values().next().value.children.size;
	assert.deepEqual([count(["a"]), count(["a", "b"])], [2, 1]);
});

const labelled = makeTables(["a.trace"], [
	[0, "q", "1", 10, "f"], [0, "q", "1", 20, "f"], [0, "r", "2", 5, "f", "g"], [0, "r", "3", 1, "f"],
], MODULES, [{ route: "users", n: 1 }, { route: "posts", n: 1 }, { route: "users" }]);

test("labels: values by what they add up to, and what has none", () => {
	assert.deepEqual(labelChoices(labelled).map(({ key, choices }) => [key, choices.map(({ text, value, sides }) => [text, value, sides[0]])]), [
		["n", [["1", "n=1", 30], ["(no n)", "n", 6]]],
		["route", [["posts", "route=posts", 20], ["users", "route=users", 15], ["(no route)", "route", 1]]],
	]);
	assert.deepEqual(labelChoices(one), []);
	const odd = makeTables(["a.trace"], [[0, "q", "1", 1, "f"]], MODULES, [{ "a=b %": "c=d", constructor: "x" }]);
	assert.deepEqual(labelChoices(odd).map(({ choices }) => choices.map(({ value }) => value)), [["a%3Db%20%25=c=d"], ["constructor=x"]]);
});

test("labels choose samples, not only whole runs", () => {
	const [, { choices }] = labelChoices(labelled);
	const shapes = choices.map(({ wanted }) => shape(treeOf(labelled, { wanted: (_, labels) => wanted(labels) }).root));
	assert.deepEqual(shapes, [{ q: [20, { f: 20 }] }, { q: [10, { f: 10 }], r: [5, { f: [5, { g: 5 }] }] }, { r: [1, { f: 1 }] }]);
});

test("a label's values come under the root, in both directions", () => {
	assert.deepEqual(shape(treeOf(labelled, { groupKey: "route" }).root), {
		users: [15, { q: [10, { f: 10 }], r: [5, { f: [5, { g: 5 }] }] }],
		posts: [20, { q: [20, { f: 20 }] }],
		"(no route)": [1, { r: [1, { f: 1 }] }],
	});
	assert.deepEqual(shape(treeOf(labelled, { groupKey: "n", isInverted: true }).root), {
		f: [31, { q: [30, { 1: 30 }], r: [1, { "(no n)": 1 }] }], g: [5, { f: [5, { r: [5, { "(no n)": 5 }] }] }],
	});
	assert.deepEqual(Object.keys(shape(treeOf(labelled, { groupKey: "toString" }).root)), ["(no toString)"]);
});

test("labels of two files differ by side", () => {
	const both = makeTables(["a", "b"], [[0, "q", "1", 10, "f"], [1, "q", "1", 30, "f"]], MODULES, [{ k: "v" }, { k: "v" }]);
	assert.deepEqual(labelChoices(both)[0].choices.map(({ sides }) => sides), [[10, 30]]);
	const { root, weights } = treeOf(both, { groupKey: "k" });
	assert.deepEqual([...root.children.values()].map((child) => [child.name, ...child.sides, changeOf(child, weights)]), [["v", 10, 30, 0.5]]);
});

test("a module's colour depends on nothing but its name", () => {
	assert.equal(moduleHue("libsqlite3.so.0.8.6"), moduleHue("libsqlite3.so.0"));
	const [sqlite, ...others] = ["libsqlite3.so.0", "libc.so.6", "python3.11", "node", "app", "libqueryprof.so.0"].map(moduleHue);
	for (const other of others)
		assert.ok(Math.abs(sqlite - other) >= 45, [sqlite, ...others]);
	for (let i = 0; i < 1000; i++) {
		const hue = moduleHue(`lib${i}.so`);
		assert.ok(hue >= 0 && hue < 280 || hue >= 320 && hue < 360, hue);
	}
});

test("the title is the program, when its first sample was, and how long it was sampled", () => {
	const first = new Date(2026, 10, 28, 10, 2, 30).getTime();
	const title = (programs, ms, sides = ["/tmp/a.trace"]) => showTitle({ sides, programs, times: sides.map(() => [first, first + ms]) });
	const app = ["/opt/app", 0, 2];
	assert.equal(title([app], 12e3), "app, 2026-11-28 10:02, 12 s");
	assert.deepEqual([0, 1, 1999, 2000, 119e3, 120e3, 7200e3].map((ms) => title([app], ms).split(", ")[2]),
		[undefined, "1 ms", "1999 ms", "2 s", "119 s", "2 min", "2 h"]);
	assert.equal(title([app, ["/opt/most", 0, 9], ["", 0, 99]], 0), "most and 1 more, 2026-11-28 10:02");
	assert.equal(title([["", 0, 9]], 0), "a.trace, 2026-11-28 10:02");
	assert.equal(title([app, ["/opt/new", 1, 1]], 2e3, ["a", "b"]), "app, 2026-11-28 10:02, 2 s → new, 2026-11-28 10:02, 2 s");
});

test("the times that can be chosen are those of the samples", () => {
	const of = (trace_type, types, sides = ["a"]) => timeChoices({ sides, trace_type, types, samples: types.flatMap(([, count], type) => Array(5 * count).fill(type)) })
		.map(({ value, text, samples }) => [value, text, [...new Set(samples)].map((type) => types[type][0]).join("+")]);
	const both = [["CPU", 2], ["OffCPU", 3]];
	assert.deepEqual(of("CPU", both), [["", "CPU", "CPU"], ["wall", "wall", "CPU+OffCPU"], ["waits", "waits", "OffCPU"]]);
	assert.deepEqual(of("Wall", both), [["", "wall", "CPU+OffCPU"], ["cpu", "CPU", "CPU"], ["waits", "waits", "OffCPU"]]);
	assert.deepEqual(of("OffCPU", both).map(([, text]) => text), ["waits", "CPU", "wall"]);
	assert.deepEqual(of("CPU", [["CPU", 1], ["Real", 1]]), [["", "CPU", "CPU"], ["wall", "wall", "Real"]]);
	assert.deepEqual(of("Real", [...both, ["Real", 1]]), [["", "wall time", "Real"]]);
	assert.deepEqual(of("CPU", [["CPU", 1]]), [["", "CPU time", "CPU"]]);
	/* Of a large file they are written in blocks. */
	const blocks = timeChoices({ sides: ["a"], trace_type: "CPU", types: [["CPU", 1], ["OffCPU", 2], ["CPU", 1]],
		samples: [1, 2, 3, 4].flatMap((block) => Array(5).fill(block)) });
	assert.deepEqual(blocks.map(({ text, samples }) => [text, [...new Set(samples)]]), [["CPU", [1, 4]], ["wall", [1, 4, 2, 3]], ["waits", [2, 3]]]);
	assert.equal(of("CPU", [["CPU", 1], ["CPU", 1]])[0][1], "CPU time");
	assert.deepEqual(of("Memory", [["Memory", 1]]), [["", "Memory", "Memory"]]);
});

test("of two files the times that both have can be chosen", () => {
	const queries = [{ side: 0 }, { side: 1 }];
	const of = (trace_type, ...types) => timeChoices({ sides: ["a", "b"], trace_type, queries,
		types: types.map(([type, ...sides]) => [type, sides.length]),
		samples: types.flatMap(([type, ...sides]) => sides.flatMap((side) => [0, side, 0, 1, type])) })
		.map(({ text, samples }) => [text, [...new Set(samples.filter((_, i) => i % 5 === 4))].join("+")]);
	assert.deepEqual(of("CPU", ["CPU", 0, 1], ["OffCPU", 0, 1, 1]),
		[["CPU", "CPU"], ["wall", "CPU+OffCPU"], ["waits", "OffCPU"]]);
	assert.deepEqual(of("CPU", ["CPU", 0, 1], ["OffCPU", 1]), [["CPU time", "CPU"]]);
	assert.deepEqual(of("Wall", ["CPU", 0, 1], ["OffCPU", 1]), [["wall time", "CPU+OffCPU"]]);
	assert.deepEqual(of("CPU", ["CPU", 0, 1], ["OffCPU", 1], ["Real", 1, 0]), [["CPU", "CPU"], ["wall", "Real"]]);
});

test("a time has its own values, and queries keep their places", () => {
	const tables = tablesOf(one, one.samples.slice(5, 15));
	assert.deepEqual(tables.queries.map(({ id, value, samples }) => [id, value, samples]),
		[["q1", 0, 0], ["q2", 3, 1], ["q3", 2, 1], ["q4", 0, 0]]);
	assert.equal(sumOf(tables, one.samples, ({ id }) => id === "q4"), 10);
	assert.deepEqual(labelChoices(tablesOf(labelled, labelled.samples.slice(0, 5))).map(({ choices }) => choices.map(({ value }) => value)),
		[["n=1"], ["route=users"]]);
});
