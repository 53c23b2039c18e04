/* SPDX-License-Identifier: Apache-2.0 */
/* The page's part of two packages that have no types. */
declare module "d3-flame-graph" {
	export interface Frame<Datum> { data: Datum; highlight?: boolean }

	export interface FlameGraph<Datum> {
		(selection: unknown): void;
		width(pixels: number): this;
		height(pixels: number | null): this;
		cellHeight(pixels: number): this;
		minFrameSize(pixels: number): this;
		transitionDuration(ms: number): this;
		inverted(leafUp: boolean): this;
		sort(byValue: boolean): this;
		getChildren(children: (datum: Datum) => Iterable<Datum>): this;
		setLabelHandler(label: (frame: Frame<Datum>) => string): this;
		setDetailsElement(details: HTMLElement): this;
		setColorMapper(color: (frame: Frame<Datum>) => string): this;
		setSearchMatch(match: (frame: Frame<Datum>) => boolean): this;
		search(text: string): void;
		clear(): void;
		resetZoom(): void;
		update(root: Datum): void;
	}

	export default function flamegraph<Datum>(): FlameGraph<Datum>;
}

declare module "d3-selection" {
	export function select(node: Element): { datum(datum: unknown): { call(chart: unknown): void } };
}
