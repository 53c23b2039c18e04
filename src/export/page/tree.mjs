/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that flamegraph.c writes, and the tree that is shown of them. Nothing of a
 * browser is in it, so tests run it in node.
 *
 * `nodes` is one tree for all queries: pairs of the parent's number (-1: the root) and the
 * function's, parents before their children. `samples` are, five by five, a node in which
 * time was spent itself (-1: its stack is unknown), the query, the label set, samples, and the
 * value; `types` are the types that they have, one after the other, each with how many of them, and a type
 * may come again. A query has a statement and one of the `sides`: the files, two where they are compared.
 * `runs` are, two by two, how often each statement ran on each side, 0: not known. Of each side,
 * `times` are those of the first and the last sample, in ms since 1970. `programs` are the samples'
 * programs, each with its side and its value.
 */

import { valueOf, without } from "./labels.mjs";

/* What all frames between the root and SQLite are folded into. */
export const HOST = { name: "host frames", module: "", file: "" };

/* Versions of a library are one, in colours and in comparisons. */
export function moduleStem(module) {
	return module.replace(/\.so\..*/, ".so");
}

/* FNV-1a, 32 bits. From this seed SQLite, the C library and the usual hosts differ well in
 * their hues. */
function hash(text) {
	let value = 1150831;
	for (const letter of text)
		value = Math.imul(value ^ letter.codePointAt(0), 0x01000193);
	return value >>> 0;
}

/* The same on every page, and never the pink of what a search found. */
export function moduleHue(module) {
	const hue = Math.floor(hash(moduleStem(module)) / 2 ** 32 * 320);
	return hue < 280 ? hue : hue + 40;
}

/* Neighbours of one module differ a little, always in the same way: -4 to 4. */
export function nameShade(name) {
	return hash(name) % 9 - 4;
}

/* Frames by function. In a comparison a function is its name and its module's, as for
 * `queryprof diff`, and code without a name is one function a module. */
function readFrames(data) {
	const known = new Map();
	const isCompared = data.sides.length > 1;
	return data.functions.map(([functionName, number, file]) => {
		/* What a thread waited for has a colour of its own beside code. */
		const module = data.modules[number] ?? (functionName.startsWith("[wait: ") ? "waits" : "");
		const isNameless = functionName.startsWith(module ? module + "+0x" : "0x");
		const name = isCompared && isNameless ? `(${moduleStem(module) || "no module"})` : functionName;
		const key = JSON.stringify([name, moduleStem(module), isCompared || file]);
		if (!known.has(key))
			known.set(key, {
				name, module, file,
				isOwn: /^libqueryprof\b/.test(module) || /^(queryprof|qp)_/.test(name),
				/* Of the program in its own language: export puts them there. */
				isCall: !module && / \(.+:\d+\)$/.test(name),
				isSqlite: /^libsqlite3\b/.test(module) || /^sqlite3_/.test(name),
			});
		return known.get(key);
	});
}

export function readTables(data) {
	return {
		...data,
		queries: data.queries.map(([statement, id, database, value, side]) => ({ statement, id, database, value, side })),
		labels: data.labels.map((text) => text ? JSON.parse(text) : {}),
		frames: readFrames(data),
		statementFrames: data.statements.map((name) => ({ name, module: "", file: "" })),
	};
}

/* The frames right on the root: one for each value of the label `key`, and which each label set has.
 * Without a key all sets have the only one, which is none. */
function groupSets(tables, key) {
	const names = tables.labels.map((labels) => key === undefined ? "" : valueOf(labels, key) ?? without(key));
	const found = [...new Set(names)];
	return {
		frames: found.map((name) => key === undefined ? undefined : { name, module: "", file: "" }),
		ofSet: names.map((name) => found.indexOf(name)),
	};
}

/* Samples by node, statement, side and group, for which `wanted` says so. */
function sumSamples(tables, wanted, groups) {
	const sums = new Map();
	const totals = [0, 0], counts = [0, 0];
	for (let i = 0; i < tables.samples.length; i += 5) {
		const query = tables.queries[tables.samples[i + 1]], set = tables.samples[i + 2];
		if (!wanted(query, tables.labels[set]))
			continue;
		const node = tables.samples[i], value = tables.samples[i + 4], { statement, side } = query;
		const group = groups.ofSet[set];
		const key = (((node + 1) * tables.statements.length + statement) * 2 + side) * groups.frames.length + group;
		if (!sums.has(key))
			sums.set(key, { node, statement, side, group: groups.frames[group], value: 0 });
		sums.get(key).value += value;
		totals[side] += value;
		counts[side] += tables.samples[i + 3];
	}
	return { sums: sums.values(), totals, counts };
}

/* From the root to the node, as it is to be shown, and the frames that HOST stands for there. */
function findPath(tables, node, { showsHost, showsOwn }) {
	const path = [];
	for (let at = node; at >= 0; at = tables.nodes[2 * at])
		path.push(tables.frames[tables.nodes[2 * at + 1]]);
	path.reverse();
	const inside = path.findIndex((frame) => frame.isSqlite || frame.isOwn || frame.isCall);
	const folded = !showsHost && inside > 0 ? path.splice(0, inside, HOST) : [];
	return { path: showsOwn ? path : path.filter((frame) => !frame.isOwn), folded };
}

class Branch {
	constructor(frame) {
		this.frame = frame;
		this.name = frame.name;
		this.value = 0; // its width
		this.sides = [0, 0];
		this.self = 0; // of both sides, where nothing was called
		this.children = new Map(); // by frame
	}

	add(side, value, weight) {
		this.sides[side] += value;
		this.value += value * weight;
	}

	child(frame) {
		let child = this.children.get(frame);
		if (!child)
			this.children.set(frame, child = new Branch(frame));
		return child;
	}
}

/* All frames of a sum of samples, in the order in which the tree has them on its root. */
function framesOf(tables, { node, statement, group }, options) {
	const { path, folded } = findPath(tables, node, options);
	path.unshift(...(group ? [group] : []), tables.statementFrames[statement]);
	return { path: options.isInverted ? path.reverse() : path, folded };
}

/*
 * The tree of the samples for which options.wanted(query, labels) says so, named options.name:
 * under the root the statements, and on top of them their stacks; with `groupKey` the values of that
 * label under the root, and on top of them the statements; with `isInverted` the leaves, and on top
 * of them what called them. `showsHost` and `showsOwn` open what is folded and
 * hidden otherwise. With `showsShares` each side's whole is as wide as the other's.
 */
export function buildTree(tables, options) {
	const { sums, totals, counts } = sumSamples(tables, options.wanted, groupSets(tables, options.groupKey));
	const weights = totals.map((total) => options.showsShares && total ? 1 / total : 1);
	const root = new Branch({ name: options.name, module: "", file: "" });
	const modules = new Map(); // their own time, of hidden frames, too
	for (const sum of sums) {
		const { node, side, value } = sum;
		const module = node < 0 ? "" : tables.frames[tables.nodes[2 * node + 1]].module;
		modules.set(module, (modules.get(module) ?? 0) + value);
		let branch = root;
		branch.add(side, value, weights[side]);
		for (const frame of framesOf(tables, sum, options).path) {
			branch = branch.child(frame);
			branch.add(side, value, weights[side]);
		}
		branch.self += value;
	}
	return { root, weights, totals, counts, modules };
}

/*
 * What a search finds in the tree that buildTree has built with the same options: the `branches` whose
 * names match, those of folded frames among them, the names of these as `folded`, and the `value` of the
 * samples with such a frame. Only some of the samples of "host frames" may have the frame.
 */
export function findFrames(tables, options, { root, weights }, matches) {
	const { sums } = sumSamples(tables, options.wanted, groupSets(tables, options.groupKey));
	const branches = new Set(), foldedNames = new Set(), known = new Map();
	const isFound = (frame) => {
		if (!known.has(frame))
			known.set(frame, matches(frame.name));
		return known.get(frame);
	};
	let found = 0;
	for (const sum of sums) {
		const { path, folded } = framesOf(tables, sum, options);
		const inside = folded.filter(isFound);
		let branch = root, isHere = false;
		for (const frame of path) {
			branch = branch.children.get(frame);
			if (!isFound(frame) && !(frame === HOST && inside.length))
				continue;
			branches.add(branch);
			isHere = true;
		}
		inside.forEach(({ name }) => foldedNames.add(name));
		found += isHere ? sum.value * weights[sum.side] : 0;
	}
	return { branches, folded: [...foldedNames], value: found };
}

/* From -1, only on the first side, to 1, only on the second. */
export function changeOf(branch, weights) {
	const [before, after] = branch.sides.map((value, side) => value * weights[side]);
	return before + after ? (after - before) / (after + before) : 0;
}
