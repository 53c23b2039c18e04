/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be chosen of labels: of each key the values that samples have, and the samples that have
 * none. Nothing of a browser is in it, so tests run it in node.
 */

/* What a sample without the key is under; as `queryprof export --root` names it. */
export const without = (key) => `(no ${key})`;

/* Label sets by number: the value of the key, or nothing. */
export const valueOf = (labels, key) => Object.hasOwn(labels, key) ? String(labels[key]) : undefined;

/* By key, in the order of the alphabet: its choices, those with most first. A choice has `sides`, what
 * it adds up to, and `wanted(labels)`. Its `value` is KEY=VALUE as --label has it, with the key's own
 * "=" encoded, and KEY alone for what has no such label. */
export function labelChoices(tables) {
	const sums = tables.labels.map(() => [0, 0]), sampled = new Set();
	for (let i = 0; i < tables.samples.length; i += 5) {
		sampled.add(tables.labels[tables.samples[i + 2]]);
		sums[tables.samples[i + 2]][tables.queries[tables.samples[i + 1]].side] += tables.samples[i + 4];
	}
	const keys = [...new Set([...sampled].flatMap(Object.keys))].sort();
	return keys.map((key) => {
		const choices = new Map();
		tables.labels.forEach((labels, number) => {
			if (!sampled.has(labels))
				return;
			const text = valueOf(labels, key), name = encodeURIComponent(key);
			if (!choices.has(text))
				choices.set(text, {
					text: text ?? without(key),
					value: text === undefined ? name : `${name}=${text}`,
					sides: [0, 0],
					wanted: (other) => valueOf(other, key) === text,
				});
			const { sides } = choices.get(text);
			sums[number].forEach((value, side) => sides[side] += value);
		});
		const total = ({ sides }) => sides[0] + sides[1];
		return { key, choices: [...choices.values()].sort((a, b) => total(b) - total(a)) };
	});
}
