/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page: its data, which are in the file or come from the server, and the panel in its address.
 */
import "./page.css";
import type { Data, Now } from "./data.ts";
import { element } from "./dom.ts";
import { moment } from "./format.ts";
import { showFlame } from "./flame.ts";
import { showLocks } from "./locks.ts";
import { PANELS, showFindings, showHealth, showNow, showPages, showStatement, showStatements, TITLES } from "./panels.ts";
import { showTimeline } from "./timeline.ts";
import { address, read, shown } from "./view.ts";

const byId = (id: string): HTMLElement => document.getElementById(id)!;
const embedded = JSON.parse(byId("data").textContent ?? "null") as Data | null;
const isLive = embedded === null;
/* A page in a file cannot know what runs now, so another panel comes first. */
const panels: readonly string[] = isLive ? PANELS : PANELS.slice(1).concat(PANELS.slice(0, 1));

let data: Data | null = embedded, now: Now | null = null;

function showHead(): void {
	const file = data?.file[0];
	document.title = data ? `queryprof: ${data.name}` : "queryprof";
	byId("title").textContent = data?.name ?? "queryprof";
	byId("about").textContent = !data || !file ? "" : [file.programs, `${moment(file.first_ms)} to ${moment(file.last_ms)} UTC`,
		`shown as of ${moment(data.made_ms)} UTC`, `queryprof ${data.version}`, data.no_text ? "without the texts of statements" : ""].filter(Boolean).join(" · ");
}

function show(): void {
	const { panel } = read(panels);
	byId("panels").replaceChildren(...panels.map((name) => element("a", { href: address({ panel: name, statement: "" }),
		...name === panel || (name === "statements" && panel === "statement") ? { "aria-current": "page" } : {} }, TITLES[name]!)));
	const parts = panel === "now" ? showNow(now, isLive)
		: !data ? [element("p", {}, "Reading the trace file.")]
		: panel === "statement" ? showStatement(data)
		: panel === "flame" ? showFlame(data)
		: panel === "timeline" ? showTimeline(data)
		: panel === "locks" ? showLocks(data)
		: panel === "pages" ? showPages(data)
		: panel === "findings" ? showFindings(data)
		: panel === "health" ? showHealth(data)
		: showStatements(data);
	const focus = focusable().indexOf(document.activeElement as HTMLElement);
	byId("view").replaceChildren(...parts);
	focusable()[focus]?.focus({ preventScroll: true });
}

/* The elements of the panel that the keyboard reaches. A panel that is drawn again keeps the focus at its
 * place. */
const focusable = (): HTMLElement[] => [...byId("view").querySelectorAll<HTMLElement>("a, button, input, select, [tabindex='0']")];

const say = (text: string): void => {
	if (byId("state").textContent !== text)
		byId("state").textContent = text;
};

/* Whether the reader types, or has selected text to copy. */
const isBusy = (): boolean => document.activeElement instanceof HTMLInputElement || document.activeElement instanceof HTMLSelectElement || !(getSelection()?.isCollapsed ?? true);

let isLoading = false;

async function load(): Promise<void> {
	if (isLoading)
		return;
	isLoading = true;
	try {
		const response = await fetch("data");
		if (!response.ok)
			throw new Error(await response.text());
		data = await response.json() as Data;
		say("");
	} catch (error) {
		say(`No data: ${(error as Error).message}`);
	}
	isLoading = false;
	showHead();
	if (!isBusy())
		show();
}

function listen(): void {
	const events = new EventSource("events");
	events.addEventListener("now", (event) => {
		now = JSON.parse((event as MessageEvent<string>).data) as Now;
		say("");
		if (shown().panel === "now" && !isBusy())
			show();
	});
	events.addEventListener("changed", () => void load());
	events.addEventListener("error", () => say("queryprof live has ended, or cannot be reached. The page shows what it had."));
}

addEventListener("hashchange", () => {
	const { panel, statement } = shown();
	show();
	/* Another selection in the same panel is not another place. */
	if (shown().panel === panel && shown().statement === statement)
		return;
	byId("view").focus();
	scrollTo(0, 0);
});
if (embedded?.is_plan && !location.hash && embedded.statements[0])
	history.replaceState(null, "", `#statement=${embedded.statements[0].statement}`);
showHead();
show();
if (isLive) {
	void load();
	listen();
}
