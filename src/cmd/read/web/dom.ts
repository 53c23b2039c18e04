/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of the page. All that comes from the file becomes text: no function turns a string into markup.
 */
import { type Cell, oneLine, sorted } from "./format.ts";
import { address } from "./view.ts";

type Child = Node | string | null;

export function element(name: string, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElement {
	const made = document.createElement(name);
	for (const [key, value] of Object.entries(attributes))
		made.setAttribute(key, value);
	made.append(...children.filter((child) => child !== null));
	return made;
}

export function drawing(name: string, attributes: Record<string, string | number>, ...children: Child[]): SVGElement {
	const made = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const [key, value] of Object.entries(attributes))
		made.setAttribute(key, String(value));
	made.append(...children.filter((child) => child !== null));
	return made;
}

/* Of a picture whose texts have the size of the page's, from a telephone to a large screen. */
export const pictureWidth = (most: number): number => Math.max(300, Math.min(most, document.documentElement.clientWidth - 32));

async function copy(text: string): Promise<boolean> {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		return false;
	}
}

/* Shows on the button whether the text was copied. */
export function copyButton(text: string, what: string): HTMLElement {
	const button = element("button", { type: "button", "aria-label": `Copy ${what}` }, "Copy");
	button.addEventListener("click", async () => {
		button.textContent = await copy(text) ? "Copied" : "Not permitted: select the text";
		setTimeout(() => button.textContent = "Copy", 2000);
	});
	return button;
}

export function link(statement: string, text: string): HTMLElement {
	return element("a", { href: address({ panel: "statement", statement }) }, text);
}

export function button(text: string, press: () => void): HTMLElement {
	const made = element("button", { type: "button" }, text);
	made.addEventListener("click", press);
	return made;
}

export const choice = (label: string, control: HTMLElement): HTMLElement => element("label", {}, `${label} `, control);

/* Only visible; an adjacent cell has the value as text. */
export function bar(share: number): HTMLElement {
	const made = element("span", { class: "bar", "aria-hidden": "true" });
	made.style.width = `${Math.max(0, Math.min(100, share))}%`;
	return element("div", { class: "track" }, share > 0 ? made : null);
}

export interface Column<Row> {
	title: string;
	key?: (row: Row) => Cell; /* the value by which the table can be sorted */
	is_number?: boolean;
	kind?: string; /* a class */
	show: (row: Row) => Child;
}

/* A table that the reader can sort. Its order is kept by its name when it is drawn again. */
const orders = new Map<string, { column: number; descending: boolean }>();

export function table<Row>(name: string, caption: string, columns: Column<Row>[], rows: readonly Row[]): HTMLElement {
	const body = element("tbody"), heads: HTMLElement[] = [];
	const draw = (): void => {
		const order = orders.get(name), key = order && columns[order.column]?.key;
		const shown = order && key ? sorted(rows, key, order.descending) : rows;
		heads.forEach((head, at) => columns[at]?.key && head.setAttribute("aria-sort", order?.column !== at ? "none" : order.descending ? "descending" : "ascending"));
		body.replaceChildren(...shown.map((row) => element("tr", {}, ...columns.map((column) =>
			element("td", { class: [column.is_number ? "number" : "", column.kind ?? ""].join(" ").trim() }, column.show(row))))));
	};
	columns.forEach((column, at) => {
		/* A column of bars repeats the values of the one before it. */
		const head = column.title ? element("th", { scope: "col", class: column.is_number ? "number" : "" }) : element("td");
		if (column.key) {
			const button = element("button", { type: "button" }, column.title);
			button.addEventListener("click", () => {
				const order = orders.get(name);
				orders.set(name, { column: at, descending: order?.column === at ? !order.descending : !!column.is_number });
				draw();
			});
			head.append(button);
		} else {
			head.append(column.title);
		}
		heads.push(head);
	});
	draw();
	return element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": oneLine(caption, 80) },
		element("table", { "data-name": name }, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...heads)), body));
}

export function facts(pairs: [string, string][]): HTMLElement {
	return element("dl", {}, ...pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}
