/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the page's code that needs no browser. Run by node --test; QUERYPROF_TEST_MODULES names a folder that contains esbuild. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const esbuild = createRequire(join(process.env.QUERYPROF_TEST_MODULES, "package.json"))("esbuild");
const web = join(dirname(fileURLToPath(import.meta.url)), "../../src/cmd/read/web");

async function load(name) {
	const { text } = esbuild.buildSync({ entryPoints: [join(web, name)], bundle: true, format: "esm", write: false }).outputFiles[0];
	return import("data:text/javascript," + encodeURIComponent(text));
}

const { growth, hue, makeTree, sumFunctions, times } = await load("stacks.ts");
const { duration, moment, oneLine, percent, place, plans, shellWord, sorted } = await load("format.ts");
const { formatView, parseView, spanOf } = await load("view.ts");
const { makeHeat, readPoints, selectStacks } = await load("times.ts");

const row = (node, parent, self_ms, more = {}) => ({ statement: "a", plan: 7, runs: 1, seen: "", node, parent, detail: String(node), compared: "",
	self_ms, error_ms: 0, loops: null, rows: null, ...more });
const shape = ({ nodes }) => nodes.map(({ row, depth, total_ms }) => [row.node, depth, total_ms]);

test("numbers have units, and what is not known is said", () => {
	assert.equal(duration(1234.5), "1.23 s");
	assert.equal(duration(12.34), "12.3 ms");
	assert.equal(duration(0.0123), "12.3 µs");
	assert.equal(duration(0), "0.0 ms");
	for (const nothing of [null, NaN, Infinity])
		assert.equal(duration(nothing), "not known");
	assert.equal(percent(null), "not known");
	assert.equal(moment(0), "1970-01-01 00:00:00");
	assert.equal(moment(null), "not known");
	assert.equal(moment(1e300), "not known");
	assert.equal(moment(1001.0625, 3), "1970-01-01 00:00:01.001");
	assert.equal(moment(999, 1), "1970-01-01 00:00:00.9");
});

test("texts are one line of limited length", () => {
	assert.equal(oneLine(" a\n\t b ", 10), "a b");
	assert.equal(oneLine("abcdef", 4), "abc…");
});

test("what is not known comes last in both directions, and the order of equals stays", () => {
	const rows = [[1, "a"], [null, "b"], [3, "c"], [1, "d"]];
	const order = (descending) => sorted(rows, ([key]) => key, descending).map(([, name]) => name).join("");
	assert.equal(order(false), "adcb");
	assert.equal(order(true), "cadb");
});

test("a plan is a tree whose totals are sums", () => {
	const [tree, ...others] = plans([row(3, 0, 1), row(5, 3, 2), row(9, 5, 4), row(7, 3, 8), row(0, 0, 16), row(-1, 0, 32), row(1, 0, 1, { statement: "b" })], "a");
	assert.equal(others.length, 0);
	assert.equal(tree.whole_ms, 63);
	assert.deepEqual(shape(tree), [[3, 0, 15], [5, 1, 6], [9, 2, 4], [7, 1, 8], [0, 0, 16], [-1, 0, 32]]);
	assert.equal(tree.nodes.reduce((sum, { self }) => sum + self, 0), 100);
});

test("each plan of a statement is a tree of its own, and one without samples has no shares", () => {
	const trees = plans([row(1, 0, 5), row(1, 0, 0, { plan: 8 })], "a");
	assert.deepEqual(trees.map(({ plan, whole_ms }) => [plan, whole_ms]), [[7, 5], [8, 0]]);
	assert.equal(trees[1].nodes[0].self, 0);
});

test("a damaged plan loses no node, and ends", () => {
	const [tree] = plans([row(1, 2, 1), row(2, 1, 1), row(3, 3, 1), row(4, 99, 1)], "a");
	assert.equal(tree.whole_ms, 4);
	assert.deepEqual(tree.nodes.map((node) => node.row.node).sort(), [1, 2, 3, 4]);
	const [deep] = plans(Array.from({ length: 20000 }, (_, at) => row(at + 1, at, 1)), "a");
	assert.equal(deep.nodes.length, 20000);
});

test("an address names a panel or a statement, and nothing else", () => {
	const panels = ["now", "findings", "flame"], shown = (hash) => [parseView(hash, panels).panel, parseView(hash, panels).statement];
	assert.deepEqual(shown("#findings"), ["findings", ""]);
	assert.deepEqual(shown("#statement=0123456789abcdef"), ["statement", "0123456789abcdef"]);
	assert.deepEqual(shown("#flame=0123456789abcdef&from=1"), ["flame", "0123456789abcdef"]);
	for (const other of ["", "#", "#statement", "#statement=<img>", "#__proto__", "#constructor=1", "#findings=0123456789abcdef"])
		assert.deepEqual(shown(other), ["now", ""]);
});

test("an address keeps the view", () => {
	for (const hash of ["#flame", "#statement=0123456789abcdef&from=1795000000000.25&to=1795000000001", "#flame&from=-60000&from2=1&to2=2&thread=7.8&label=route%3D%2Fa+b&time=cpu&find=a%26b"])
		assert.equal(formatView(parseView(hash, ["flame"])), hash);
	const { from, to, base, find } = parseView("#flame&from=1e3&to=<b>&from2=5&to2=4&find=%zz", ["flame"]);
	assert.deepEqual([from, to, base, find], [null, null, null, "%zz"]);
});

test("a time before the end moves with the end", () => {
	const whole = { from: 1000, to: 100000 };
	assert.equal(spanOf(parseView("#now", ["now"]), whole), null);
	assert.deepEqual(spanOf(parseView("#now&from=-60000", ["now"]), whole), { from: 40000, to: 100000 });
	assert.deepEqual(spanOf(parseView("#now&from=5&to=3", ["now"]), whole), { from: 5, to: 6 });
});

test("a word of a command line is one word of the shell", () => {
	assert.equal(shellWord("app.trace"), "app.trace");
	assert.equal(shellWord("a b"), "'a b'");
	assert.equal(shellWord("it's"), "'it'\\''s'");
	assert.equal(shellWord("$(x)"), "'$(x)'");
});

test("a place is between the limits", () => {
	assert.equal(place(1, 1, 100), 0);
	assert.equal(place(10, 1, 100), 0.5);
	assert.equal(place(100, 1, 100), 1);
	assert.equal(place(5, 5, 5), 0.5);
});

const functions = ["leaf", "middle", "main"].map((name) => ({ function: name, module: name === "leaf" ? "libc.so.6" : "app" }));
const stack = (frames, ms, more = {}) => ({ statement: "a", trace_type: "CPU", wait: "", samples: 1, ms, frames, ...more });
const stacks = [stack("0,1,2", 5), stack("1,2", 3), stack("1,1,2", 2), stack("0,2", 7, { trace_type: "OffCPU", wait: "fsync" }), stack("2", 11, { statement: "b" }),
	stack(null, 13), stack("99", 1, { trace_type: "Heap" })];
const nameOf = (statement) => `statement ${statement}`;
const lines = (branch, depth = 0) => [...branch.children.values()].flatMap((child) => [`${depth} ${child.name} ${child.value} ${child.self}`, ...lines(child, depth + 1)]);

test("a flame graph's branches are sums, of the chosen time and statement", () => {
	const tree = makeTree(stacks, functions, { time: "cpu", statement: "a", all: true }, nameOf);
	assert.equal(tree.value, 23);
	assert.deepEqual(lines(tree), ["0 main 10 0", "1 middle 10 3", "2 leaf 5 5", "2 middle 2 2", "0 (other stacks) 13 13"]);
	assert.deepEqual(lines(makeTree(stacks, functions, { time: "waits", statement: "", all: true }, nameOf)), ["0 statement a 7 0", "1 main 7 0", "2 leaf 7 0", "3 [wait: fsync] 7 7"]);
	assert.equal(makeTree(stacks, functions, { time: "wall", statement: "", all: true }, nameOf).value, 41);
});

test("a function is counted once a stack, and only known stacks are", () => {
	const sums = sumFunctions(stacks, functions, { time: "cpu", statement: "a", all: true });
	assert.deepEqual(sums.map((sum) => [sum.function, sum.self, sum.total]), [["middle", 5, 10], ["leaf", 5, 5], ["main", 0, 10]]);
});

test("only times with samples can be chosen, and a number that is no function is not known", () => {
	assert.deepEqual(times(stacks), ["wall", "cpu", "waits"]);
	assert.deepEqual(times([stack("0", 1, { trace_type: "Real" })]), ["wall"]);
	assert.deepEqual(times([]), []);
	assert.deepEqual(lines(makeTree([stack("99", 1)], functions, { time: "cpu", statement: "a", all: true }, nameOf)), ["0 not known 1 1"]);
});

test("frames outside SQLite are one, and queryprof's own are none", () => {
	const some = ["sqlite3_step", "queryprof_step_watched", "run (app.py:3)", "main"].map((name) => ({ function: name, module: "app" }));
	const names = (frames) => lines(makeTree([stack(frames, 1)], some, { time: "cpu", statement: "a", all: false }, nameOf)).map((line) => line.split(" ").slice(1, -2).join(" "));
	assert.deepEqual(names("0,1,3"), ["frames outside SQLite", "sqlite3_step"]);
	assert.deepEqual(names("0,1,2,3"), ["frames outside SQLite", "run (app.py:3)", "sqlite3_step"]);
	assert.deepEqual(names("3"), ["main"]);
});

test("versions of a library have one hue", () => {
	assert.equal(hue("libc.so.6"), hue("libc.so.7"));
	assert.equal(hue(""), null);
});

/* Encodes numbers as page_times.c does. */
function encode(...numbers) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	return numbers.map((number) => {
		let text = "";
		for (; number >= 32; number = Math.floor(number / 32))
			text += digits[32 + number % 32];
		return text + digits[number];
	}).join("");
}

/* Thread 1 has CPU samples at 1000 and 3000. Thread 2, which has a label, waits from 1500 to 2500. */
const timed = { stacks: [stack("0", 20), stack("1", 1000, { trace_type: "OffCPU", wait: "lock", statement: "b" })],
	origins: [{ process_id: null, thread_id: null, thread_name: "", labels: "{}" }, { process_id: 7, thread_id: 1, thread_name: "", labels: "{}" },
		{ process_id: 7, thread_id: 2, thread_name: "", labels: '{"route":"/a"}' }],
	times: { from_ms: 1000, unit_ms: 0.5, thinned: false, points: encode(0, 0, 1, 20, 1500, 1, 2, 2000, 500, 0, 1, 20) } };
const all = { span: null, thread: "", label: "" };

test("points are read as they were written", () => {
	const { at, stack, origin, ms } = readPoints(timed.times);
	assert.deepEqual([[...at], [...stack], [...origin], [...ms]], [[0, 1500, 2000], [0, 1, 0], [1, 2, 1], [10, 1000, 10]]);
});

test("a selection has the samples in it, and the part of a wait that lies in it", () => {
	const points = readPoints(timed.times), select = (more) => selectStacks(timed, points, { ...all, ...more }).map(({ statement, ms, samples }) => [statement, ms, samples]);
	assert.equal(selectStacks(timed, points, all), timed.stacks);
	assert.deepEqual(select({ span: { from: 1000, to: 2000 } }), [["a", 10, 1], ["b", 500, 1]]);
	assert.deepEqual(select({ span: { from: 2400, to: 4000 } }), [["a", 10, 1], ["b", 100, 1]]);
	assert.deepEqual(select({ thread: "7.1" }), [["a", 20, 2]]);
	assert.deepEqual(select({ label: "route=/a" }), [["b", 1000, 1]]);
	assert.deepEqual(select({ label: "route=/b" }), []);
});

test("the cells of a heat map are the time of its samples", () => {
	const points = readPoints(timed.times), heat = makeHeat(timed, points, all, { from: 1000, to: 3001 }, () => true);
	assert.deepEqual([heat.from, heat.column_ms, heat.rows, heat.columns], [1000, 100, 50, 21]);
	assert.equal(heat.cells.reduce((sum, one) => sum + one, 0), 1020);
	assert.deepEqual([heat.cells[0], heat.cells[1], heat.cells[250], heat.cells[249], heat.cells[1000]], [10, 0, 2, 0, 10]);
	const cell = makeHeat(timed, points, all, { from: 2000, to: 2001 }, ({ statement }) => statement === "b");
	assert.deepEqual([cell.column_ms, cell.rows, [...cell.cells]], [1, 1, [1]]);
});

test("two selections are compared by their shares", () => {
	const tree = makeTree([stack("0", 30), stack("1", 10)], functions, { time: "cpu", statement: "a", all: true }, nameOf, [stack("0", 1), stack("2", 1)]);
	const parts = Object.fromEntries([...tree.children.values()].map((child) => [child.name, growth(child, tree)]));
	assert.deepEqual(parts, { leaf: 0.25, middle: 0.25, main: -0.5 });
});
