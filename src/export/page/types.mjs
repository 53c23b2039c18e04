/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU, wall and waits: what can be chosen of the types that a file has samples of. Nothing of a browser
 * is in it, so tests run it in node.
 */

const WHAT = { cpu: "CPU time", wall: "wall time", waits: "waited time" };

/* The first one is what is shown at first; it is the only one where there is nothing to choose. Each
 * has its samples, as tables.samples has them; those of a type may be several blocks. Files that are compared may not have the same types: those that
 * only one of them has cannot be chosen. */
export function timeChoices({ sides, trace_type, types, samples, queries }) {
	const blocks = new Map();
	let at = 0;
	for (const [type, count] of types)
		blocks.set(type, [...blocks.get(type) ?? [], samples.slice(at, at += 5 * count)]);
	const parts = new Map([...blocks].map(([type, own]) => [type, blocks.size > 1 ? [].concat(...own) : samples]));
	const sidesOf = (type) => new Set(parts.get(type).filter((_, i) => i % 5 === 1).map((query) => queries[query].side));
	const common = new Set([...parts.keys()].filter((type) => sides.length === 1 || sidesOf(type).size === sides.length));
	const has = (type) => common.has(type);
	const samplesOf = (wanted) => wanted.length > 1 ? [].concat(...wanted.map((type) => parts.get(type))) : parts.get(wanted[0]);
	const wall = has("OffCPU") && (has("CPU") || !has("Real")) ? ["CPU", "OffCPU"] : ["Real"];
	const choices = [["cpu", "CPU", ["CPU"]], ["wall", "wall", wall], ["waits", "waits", ["OffCPU"]]]
		.map(([value, text, wanted]) => [value, text, wanted.filter(has)])
		.filter(([,, wanted]) => wanted.length)
		.map(([value, text, wanted]) => ({ value, text, types: wanted, what: WHAT[value], samples: samplesOf(wanted) }));
	const shown = (trace_type === "Wall" ? ["CPU", "OffCPU"] : [trace_type]).filter((type) => parts.has(type));
	const first = choices.find((choice) => choice.types.join() === shown.join());
	const what = { CPU: WHAT.cpu, Real: WHAT.wall, Wall: WHAT.wall, OffCPU: WHAT.waits }[trace_type] ?? trace_type;
	if (!first || common.size < 2)
		return [{ value: "", text: what, what, samples: shown.length ? samplesOf(shown) : samples }];
	return [first, ...choices.filter((choice) => choice !== first)].map((choice) => ({ ...choice, value: choice === first ? "" : choice.value }));
}

/* The tables with these samples alone. A query without any stays in its place. */
export function tablesOf(tables, samples) {
	if (samples === tables.samples)
		return tables;
	const queries = tables.queries.map((query) => ({ ...query, value: 0, samples: 0 }));
	for (let i = 0; i < samples.length; i += 5) {
		const query = queries[samples[i + 1]];
		query.samples += samples[i + 3];
		query.value += samples[i + 4];
	}
	return { ...tables, samples, queries };
}

/* The value of the samples for which wanted(query, labels) says so. */
export function sumOf(tables, samples, wanted) {
	let sum = 0;
	for (let i = 0; i < samples.length; i += 5)
		if (wanted(tables.queries[samples[i + 1]], tables.labels[samples[i + 2]]))
			sum += samples[i + 4];
	return sum;
}
