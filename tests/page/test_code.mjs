/* SPDX-License-Identifier: Apache-2.0 */
/* The page's code that needs no browser: node --test, with QUERYPROF_TEST_MODULES in the environment, a folder with esbuild. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const esbuild = createRequire(join(process.env.QUERYPROF_TEST_MODULES, "package.json"))("esbuild");
const source = join(dirname(fileURLToPath(import.meta.url)), "../../src/cmd/read/web/format.ts");
const { text } = esbuild.buildSync({ entryPoints: [source], bundle: true, format: "esm", write: false }).outputFiles[0];
const { duration, moment, oneLine, percent, place, plans, shellWord, sorted, view } = await import("data:text/javascript," + encodeURIComponent(text));

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
	const panels = ["now", "findings"];
	assert.deepEqual(view("#findings", panels), { panel: "findings", statement: "" });
	assert.deepEqual(view("#statement=0123456789abcdef", panels), { panel: "statement", statement: "0123456789abcdef" });
	for (const other of ["", "#", "#statement", "#statement=<img>", "#__proto__", "#constructor=1"])
		assert.deepEqual(view(other, panels), { panel: "now", statement: "" });
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
