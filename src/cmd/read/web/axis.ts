/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The axis of time below a picture.
 */
import { drawing } from "./dom.ts";
import { moment } from "./format.ts";
import type { Span } from "./view.ts";

const STEPS_MS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 432e5, 864e5];
const TICKS = 7, TICK_WIDTH = 90;

/* The positions of times in a picture: from `left` to `right`. */
export const scale = (span: Span, left: number, right: number) => (ms: number): number =>
	left + (right - left) * (span.to > span.from ? Math.min(1, Math.max(0, (ms - span.from) / (span.to - span.from))) : 0.5);

/* y: of the line; the texts need 18 more. */
export function timeAxis(span: Span, left: number, right: number, y: number): SVGElement {
	const lasts = span.to - span.from, most = Math.max(1, Math.min(TICKS, Math.floor((right - left) / TICK_WIDTH)));
	const step = STEPS_MS.find((one) => lasts / one <= most) ?? Math.ceil(lasts / most / 864e5) * 864e5, x = scale(span, left, right);
	const ticks: number[] = [];
	for (let ms = Math.ceil(span.from / step) * step; lasts > 0 && ms <= span.to && ticks.length <= TICKS; ms += step)
		ticks.push(ms);
	const digits = step >= 1000 ? 0 : step >= 1 ? 3 : 4, isDays = step >= 864e5;
	const textOf = (ms: number): string => isDays ? moment(ms).slice(0, 10) : moment(ms, digits).slice(11);
	return drawing("g", { class: "axis" }, drawing("line", { x1: left, y1: y, x2: right, y2: y }),
		...ticks.flatMap((ms) => [drawing("line", { x1: x(ms), y1: y, x2: x(ms), y2: y + 4 }),
			drawing("text", { x: x(ms), y: y + 15, "text-anchor": x(ms) > right - 40 ? "end" : x(ms) < left + 40 && left < 40 ? "start" : "middle" }, textOf(ms))]));
}
