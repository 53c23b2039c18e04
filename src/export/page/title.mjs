/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page's title: of each side the program, when its first sample was, and the time from there to
 * the last one. Nothing of a browser is in it, so tests run it in node.
 */

const UNITS = [["h", 3600e3], ["min", 60e3], ["s", 1e3], ["ms", 1]];

/* "12 s", in the largest unit of which there are two. */
function showLength(ms) {
	const [unit, size] = UNITS.find(([, size]) => ms >= 2 * size) ?? ["ms", 1];
	return `${Math.round(ms / size)} ${unit}`;
}

/* As "2026-11-28 10:02", where the page is read. */
function showStart(ms) {
	return new Date(ms - new Date(ms).getTimezoneOffset() * 60e3).toISOString().slice(0, 16).replace("T", " ");
}

export const baseName = (path) => path.replace(/.*\/(?=.)/, "");

/* The one with most time, and how many others there are; a program that is not known is no program. */
function showPrograms(programs) {
	const [first, ...rest] = programs.filter(([path]) => path).sort((a, b) => b[2] - a[2]);
	return first && baseName(first[0]) + (rest.length ? ` and ${rest.length} more` : "");
}

/* Where no program is known the file stands for it. */
export function showTitle({ sides, programs, times }) {
	return sides.map((path, side) => {
		const [first, last] = times[side];
		const length = last > first ? [showLength(last - first)] : [];
		return [showPrograms(programs.filter((program) => program[1] === side)) ?? baseName(path), showStart(first), ...length].join(", ");
	}).join(" → ");
}
