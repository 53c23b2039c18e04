/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heat map of samples: a column for each second, or for a part of it, from top to bottom. The reader drags over it to select a time.
 */
import { element } from "./dom.ts";
import { duration, moment } from "./format.ts";
import type { Heat } from "./times.ts";
import type { Span } from "./view.ts";

const HEIGHT = 200;

function colorOf(name: string): [number, number, number] {
	const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim(), number = Number.parseInt(text.slice(1), 16);
	return [number >> 16 & 255, number >> 8 & 255, number & 255];
}

/* One pixel for each cell; the browser enlarges it. More time is more opaque. */
function paint(canvas: HTMLCanvasElement, heat: Heat, marked: Span | null): void {
	canvas.width = heat.columns;
	canvas.height = heat.rows;
	const context = canvas.getContext("2d")!, image = context.createImageData(heat.columns, heat.rows), cell_ms = heat.column_ms / heat.rows;
	const [red, green, blue] = colorOf("--bar"), [markRed, markGreen, markBlue] = colorOf("--lock");
	heat.cells.forEach((ms, at) => {
		const pixel = 4 * (at % heat.rows * heat.columns + Math.floor(at / heat.rows)), begin = heat.from + at * cell_ms;
		const isMarked = marked !== null && begin >= marked.from && begin < marked.to;
		image.data.set([isMarked ? markRed : red, isMarked ? markGreen : green, isMarked ? markBlue : blue,
			ms > 0 ? 40 + 215 * Math.sqrt(ms / heat.most) : isMarked ? 30 : 0], pixel);
	});
	context.putImageData(image, 0, 0);
}

/* axis: of its time. select: called with the time from the cell of the pointer's press to that of its release. */
export function showHeat(heat: Heat, what: string, axis: SVGElement, select: (span: Span) => void): HTMLElement {
	const canvas = element("canvas", { class: "heat", role: "img", "aria-label": `Heat map of ${what}: a column is ${duration(heat.column_ms)}, a cell ${duration(heat.column_ms / heat.rows)}. The table below has the busiest columns.` }) as HTMLCanvasElement;
	const about = element("p", { class: "details" }), cell_ms = heat.column_ms / heat.rows;
	let pressed: number | null = null;
	canvas.style.height = `${HEIGHT}px`;
	const cellAt = (event: PointerEvent): number => {
		const box = canvas.getBoundingClientRect(), part = (value: number, of: number): number => Math.min(of - 1, Math.max(0, Math.floor(value * of)));
		return part((event.clientX - box.left) / box.width, heat.columns) * heat.rows + part((event.clientY - box.top) / box.height, heat.rows);
	};
	const spanOf = (a: number, b: number): Span => ({ from: heat.from + Math.min(a, b) * cell_ms, to: heat.from + (Math.max(a, b) + 1) * cell_ms });
	canvas.addEventListener("pointerdown", (event) => {
		pressed = cellAt(event);
		canvas.setPointerCapture(event.pointerId);
	});
	canvas.addEventListener("pointermove", (event) => {
		const cell = cellAt(event);
		about.textContent = `${moment(heat.from + cell * cell_ms, 3)} UTC: ${duration(heat.cells[cell] ?? 0)} in ${duration(cell_ms)}`;
		if (pressed !== null)
			paint(canvas, heat, spanOf(pressed, cell));
	});
	canvas.addEventListener("pointercancel", () => {
		pressed = null;
		paint(canvas, heat, null);
	});
	canvas.addEventListener("pointerup", (event) => {
		const from = pressed, to = cellAt(event);
		pressed = null;
		if (from !== null)
			select(spanOf(from, to));
	});
	paint(canvas, heat, null);
	return element("div", {}, canvas, axis, about);
}
