/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The panels of the page. Each answers one question.
 */
import { scale, timeAxis } from "./axis.ts";
import type { Data, Finding, Now, OpenRun, OpenTransaction, PageTree, PlanPeriod, Run, Stack, Statement } from "./data.ts";
import { bar, copyButton, drawing, element, facts, link, pictureWidth, table } from "./dom.ts";
import { count, duration, megabytes, moment, oneLine, percent, place, plans, shellWord, type Tree, words } from "./format.ts";
import { nameOf, pointsOf, selectionOf, showSelection } from "./select.ts";
import { typesOf } from "./stacks.ts";
import { isWhole, selectStacks } from "./times.ts";
import { address, go, remember, shown } from "./view.ts";

export const PANELS = ["now", "statements", "flame", "timeline", "locks", "pages", "findings", "health"] as const;
export const TITLES: Record<string, string> = { now: "Now", statements: "Statements", flame: "Flame graph", timeline: "Time line", locks: "Locks and WALs", pages: "Pages", findings: "Findings", health: "Health" };

/* A percentile of counted runs is an upper bound, from a histogram, if it is not that of the longest run. */
function bound(one: Statement, part: 50 | 99): string {
	const ms = part === 50 ? one.p50_ms : one.p99_ms;
	const isBound = ms !== null && one.runs !== null && one.runs >= 100 / (100 - part);
	return (isBound ? "≤ " : "") + duration(ms);
}

const shortId = (statement: string): string => statement.slice(0, 8);
const textOf = (statement: Statement): string => statement.query ?? `[${statement.statement}]`;
const queryOf = (data: Data, id: string): string => nameOf(data, id, 200);

/* --- now ------------------------------------------------------------------------------------------- */

function waitOf(run: OpenRun): string {
	if (!run.is_running)
		return "between two rows";
	return run.wait_cause ? words(`waits: ${run.wait_cause}`, run.wait_object, run.wait_ms !== null && duration(run.wait_ms)) : run.state ?? "not known";
}

function holderOf(run: OpenRun): string {
	if (run.holder_process_id === null)
		return "";
	return words(`process ${run.holder_process_id}`, run.holder_program, run.holder_thread_name,
		run.holder_transaction_ms !== null && `transaction open for ${duration(run.holder_transaction_ms)}`, run.holder_first_query);
}

export function showNow(now: Now | null, isLive: boolean): HTMLElement[] {
	const title = element("h2", {}, "What runs now");
	if (!now?.known)
		return [title, element("p", {}, !isLive ? "Not known: this page is a file. queryprof live shows what runs while a recording is made."
			: now ? "Not known: no process records to this file now." : "Waiting for the server.")];
	return [title,
		element("p", { class: "soft" }, words(`${count(now.processes ?? 0)} recorded processes`,
			(now.unread ?? 0) > 0 && `${now.unread} of them cannot be read`, `at ${moment(now.at_ms ?? null)} UTC`)),
		table<OpenRun>("runs", "Open queries, those inside SQLite first", [
			{ title: "open for", is_number: true, key: (run) => run.elapsed_ms, show: (run) => duration(run.elapsed_ms) },
			{ title: "does", key: waitOf, show: waitOf },
			{ title: "lock held by", show: holderOf },
			{ title: "plan node", kind: "node", show: (run) => run.plan_node === null ? "not known" : words(run.plan_node, run.sample_age_ms !== null && `${duration(run.sample_age_ms)} ago`) },
			{ title: "from", show: (run) => words(run.caller, run.caller_function) },
			{ title: "process", key: (run) => run.process_id, show: (run) => words(String(run.process_id), run.program, run.thread_name) },
			{ title: "statement", kind: "text", show: (run) => oneLine(run.query ?? "not known", 300) },
		], now.runs ?? []),
		table<OpenTransaction>("transactions", "Open transactions, the oldest first", [
			{ title: "open for", is_number: true, key: (one) => one.age_ms, show: (one) => duration(one.age_ms) },
			{ title: "write lock for", is_number: true, key: (one) => one.write_lock_ms, show: (one) => one.write_lock_ms === null ? "none" : duration(one.write_lock_ms) },
			{ title: "database", show: (one) => words(one.database, one.is_oldest_reader === 1 && "the oldest: the WAL keeps what it reads") },
			{ title: "process", show: (one) => words(String(one.process_id), one.program, one.thread_name, one.state) },
			{ title: "statements", is_number: true, show: (one) => count(one.statements) },
			{ title: "began with", kind: "text", show: (one) => oneLine(one.first_query ?? "not known", 300) },
			{ title: "runs", kind: "text", show: (one) => oneLine(one.query ?? "nothing", 300) },
		], now.transactions ?? [])];
}

/* --- statements -------------------------------------------------------------------------------------- */

/* The sampled time of each statement in a selection. */
interface Sum { statement: string; wall: number; cpu: number; waits: number }

function sumStatements(data: Data, stacks: readonly Stack[]): Map<string, Sum> {
	const sums = new Map<string, Sum>(), [wall, cpu, waits] = (["wall", "cpu", "waits"] as const).map((time) => typesOf(time, data.stacks));
	for (const stack of stacks) {
		const sum = sums.get(stack.statement) ?? { statement: stack.statement, wall: 0, cpu: 0, waits: 0 };
		sums.set(stack.statement, sum);
		sum.wall += wall!.includes(stack.trace_type) ? stack.ms : 0;
		sum.cpu += cpu!.includes(stack.trace_type) ? stack.ms : 0;
		sum.waits += waits!.includes(stack.trace_type) ? stack.ms : 0;
	}
	return sums;
}

/* Counters are not known of a part of the time; samples are. */
function selectedTable(data: Data): (isWanted: (statement: string) => boolean) => HTMLElement {
	const selection = selectionOf(data), { base } = shown(), sums = sumStatements(data, selectStacks(data, pointsOf(data), selection));
	const before = base ? sumStatements(data, selectStacks(data, pointsOf(data), { ...selection, span: base })) : new Map<string, Sum>();
	for (const id of before.keys())
		if (!sums.has(id))
			sums.set(id, { statement: id, wall: 0, cpu: 0, waits: 0 });
	const whole = [...sums.values()].reduce((all, one) => all + one.wall, 0), wholeBefore = [...before.values()].reduce((all, one) => all + one.wall, 0);
	const share = (one: Sum): number => whole ? 100 * one.wall / whole : 0, shareBefore = (one: Sum): number => wholeBefore ? 100 * (before.get(one.statement)?.wall ?? 0) / wholeBefore : 0;
	return (isWanted) => {
		const rows = [...sums.values()].filter((one) => isWanted(one.statement)).sort((a, b) => b.wall - a.wall);
		return table<Sum>("selected", `${count(rows.length)} statements with samples in this selection: ${duration(whole)} in SQLite, by samples`, [
			{ title: "share", is_number: true, key: share, show: (one) => percent(share(one)) },
			{ title: "", show: (one) => bar(share(one)) },
			...base ? [{ title: "before", is_number: true, key: shareBefore, show: (one: Sum) => percent(shareBefore(one)) }] : [],
			{ title: "wall", is_number: true, key: (one) => one.wall, show: (one) => duration(one.wall) },
			{ title: "cpu", is_number: true, key: (one) => one.cpu, show: (one) => duration(one.cpu) },
			{ title: "waits", is_number: true, key: (one) => one.waits, show: (one) => duration(one.waits) },
			{ title: "statement", kind: "text", show: (one) => /^0+$/.test(one.statement) ? "not known" : link(one.statement, nameOf(data, one.statement, 160)) },
		], rows);
	};
}

export function showStatements(data: Data): HTMLElement[] {
	const input = element("input", { type: "search", id: "filter", spellcheck: "false" }) as HTMLInputElement, list = element("div");
	const isSelected = !isWhole(selectionOf(data)) || shown().base !== null, textsOf = new Map(data.statements.map((one) => [one.statement, `${textOf(one)} ${one.statement} ${one.notes}`.toLowerCase()]));
	const isWanted = (id: string): boolean => (textsOf.get(id) ?? id).includes(input.value.toLowerCase()), showSelected = isSelected ? selectedTable(data) : null;
	const draw = (): void => {
		const rows = data.statements.filter((one) => isWanted(one.statement));
		list.replaceChildren(showSelected ? showSelected(isWanted) : table<Statement>("statements", `${count(rows.length)} statements, the costliest first; times are inside SQLite`, [
			{ title: "share", is_number: true, key: (one) => one.share, show: (one) => percent(one.share) },
			{ title: "", show: (one) => bar(one.share ?? 0) },
			{ title: "statement", kind: "text", show: (one) => element("div", {}, link(one.statement, oneLine(textOf(one), 160)), element("div", { class: "notes" }, [one.waits && `waits: ${one.waits}`, one.notes].filter(Boolean).join("; "))) },
			{ title: "wall", is_number: true, key: (one) => one.wall_ms, show: (one) => duration(one.wall_ms) },
			{ title: "cpu", is_number: true, key: (one) => one.cpu_ms, show: (one) => duration(one.cpu_ms) },
			{ title: "runs", is_number: true, key: (one) => one.runs, show: (one) => count(one.runs) },
			{ title: "each", is_number: true, key: (one) => one.each_ms, show: (one) => duration(one.each_ms) },
			{ title: "p99", is_number: true, key: (one) => one.p99_ms, show: (one) => bound(one, 99) },
			{ title: "rows", is_number: true, key: (one) => one.rows, show: (one) => count(one.rows) },
			{ title: "findings", is_number: true, key: (one) => findingsOf(data, one).length, show: (one) => String(findingsOf(data, one).length || "") },
		], rows));
	};
	input.value = shown().find;
	input.addEventListener("input", () => {
		remember({ find: input.value });
		draw();
	});
	draw();
	return [element("h2", {}, "Statements"), showSelection(data, false), element("p", {}, element("label", { for: "filter" }, "Only those with "), input), list];
}

const findingsOf = (data: Data, statement: Statement): Finding[] => data.findings.filter((one) => one.statement === statement.statement);

/* --- a statement -------------------------------------------------------------------------------------- */

function showPlan(tree: Tree, number: number, of: number): HTMLElement {
	type Node = Tree["nodes"][number];
	const padding = (node: Node): HTMLElement => {
		const made = element("span", {}, node.row.detail);
		made.style.paddingLeft = `${Math.min(node.depth, 30)}em`;
		return element("div", {}, made, node.row.compared ? element("span", { class: "soft" }, ` compares ${node.row.compared}`) : null);
	};
	const isTimed = tree.whole_ms > 0;
	return table<Node>(`plan ${number}`,
		`Plan${of > 1 ? ` ${number} of ${of}` : ""}: ${count(tree.runs)} runs, ${tree.seen}${isTimed ? "" : "; no run with it had a sample, so its nodes have no times"}`, [
			{ title: "node", kind: "node", show: padding },
			...isTimed ? [
				{ title: "", show: (node: Node) => bar(node.self) },
				{ title: "self", is_number: true, show: (node: Node) => percent(node.self) },
				{ title: "total", is_number: true, show: (node: Node) => percent(node.total) },
				{ title: "self time", is_number: true, show: (node: Node) => `${duration(node.row.self_ms)} ± ${duration(node.row.error_ms)}` },
			] : [],
			...tree.nodes.some((node) => node.row.loops !== null) ? [
				{ title: "loops", is_number: true, show: (node: Node) => node.row.loops === null ? "" : count(node.row.loops) },
				{ title: "rows", is_number: true, show: (node: Node) => node.row.rows === null ? "" : count(node.row.rows) },
			] : [],
		], tree.nodes);
}

function showRuns(runs: Run[]): (HTMLElement | SVGElement)[] {
	const WIDTH = pictureWidth(900), HEIGHT = 220, LEFT = 70, BOTTOM = 20;
	const positive = runs.map((run) => Math.max(run.wall_ms, 0.001));
	const times = runs.map((run) => run.at_ms), span = { from: Math.min(...times), to: Math.max(...times) }, x = scale(span, LEFT + 8, WIDTH - 8);
	const least = Math.min(...positive), most = Math.max(...positive);
	const y = (ms: number): number => 8 + (HEIGHT - BOTTOM - 16) * (1 - place(ms, least, most));
	const about = `${runs.length} slowest logged runs: from ${duration(least)} to ${duration(most)}, ${moment(span.from)} to ${moment(span.to)} UTC`;
	/* What else happened then. */
	const around = (run: Run): { from: number; to: number } => ({ from: run.at_ms - run.wall_ms / 4, to: run.at_ms + Math.max(1, run.wall_ms * 1.25) });
	return [
		drawing("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${about}. The table below has the numbers.` },
			drawing("line", { x1: LEFT, y1: 0, x2: LEFT, y2: HEIGHT - BOTTOM }), timeAxis(span, LEFT + 8, WIDTH - 8, HEIGHT - BOTTOM),
			drawing("text", { x: 0, y: y(most) + 4 }, duration(most)), least < most ? drawing("text", { x: 0, y: y(least) + 4 }, duration(least)) : null,
			...runs.map((run, at) => {
				const made = drawing("circle", { cx: x(run.at_ms), cy: y(positive[at]!), r: 3.5, class: run.failed ? "failed" : "" },
					drawing("title", {}, `${words(moment(run.at_ms, 3), duration(run.wall_ms), run.failed === 1 && "failed")}\nClick for the time line of this run.`));
				made.addEventListener("click", () => go({ panel: "timeline", statement: "", ...around(run) }));
				return made;
			})),
		table<Run>("slow runs", about, [
			{ title: "began (UTC)", key: (run) => run.at_ms, show: (run) => element("a", { href: address({ panel: "timeline", statement: "", ...around(run) }) }, moment(run.at_ms, 3)) },
			{ title: "wall", is_number: true, key: (run) => run.wall_ms, show: (run) => duration(run.wall_ms) },
			{ title: "rows", is_number: true, key: (run) => run.rows, show: (run) => count(run.rows) },
			{ title: "end", show: (run) => run.failed ? "failed" : run.finished ? "" : "not recorded" },
		], runs.slice(0, 20))];
}

/* A change of the plan, and what may have caused it. */
function showHistory(periods: PlanPeriod[], trees: Tree[]): HTMLElement {
	const numberOf = (plan: number | null): string => trees.length > 1 && trees.some((tree) => tree.plan === plan) ? `plan ${trees.findIndex((tree) => tree.plan === plan) + 1}` : "a plan that is not shown";
	return table<PlanPeriod>("plan history", "Plans over time, the newest first", [
		{ title: "from (UTC)", key: (one) => one.from_ms, show: (one) => moment(one.from_ms) },
		{ title: "to", key: (one) => one.to_ms, show: (one) => moment(one.to_ms) },
		{ title: "plan", key: (one) => one.plan, show: (one) => numberOf(one.plan) },
		{ title: "runs", is_number: true, key: (one) => one.runs, show: (one) => count(one.runs) },
		{ title: "each", is_number: true, key: (one) => one.each_ms, show: (one) => duration(one.each_ms) },
		{ title: "database", show: (one) => one.database ?? "" },
		{ title: "changes before it", kind: "text", show: (one) => one.changes ?? "" },
	], periods);
}

export function showStatement(data: Data): (HTMLElement | SVGElement)[] {
	const id = shown().statement, statement = data.statements.find((one) => one.statement === id);
	if (!statement)
		return [element("h2", {}, "Statement"), element("p", {}, `The statement ${id} is not among the ${data.statements.length} costliest. `,
			"queryprof queries lists all of them.")];
	const trees = plans(data.plans, id), callers = data.callers.filter((one) => one.statement === id);
	const { span } = selectionOf(data), history = data.history.filter((one) => one.statement === id);
	const runs = data.runs.filter((one) => one.statement === id && (!span || (one.at_ms + one.wall_ms >= span.from && one.at_ms <= span.to))), findings = findingsOf(data, statement);
	const reason = data.unplanned.find((one) => one.statement === id)?.reason;
	const command = `queryprof report ${shellWord(data.name)} --statement ${shortId(id)}`;
	return [
		element("h2", {}, `Statement ${shortId(id)}`),
		statement.query === null ? element("p", {}, "Its text was left out of this page.")
			: element("div", {}, element("pre", { tabindex: "0" }, statement.query + (statement.is_cut ? "…" : "")), copyButton(statement.query, "the statement")),
		facts([["share of the time", percent(statement.share)], ["wall", duration(statement.wall_ms)], ["cpu", duration(statement.cpu_ms)],
			["runs", count(statement.runs)], ["each", duration(statement.each_ms)], ["p50", bound(statement, 50)], ["p99", bound(statement, 99)],
			["longest", duration(statement.max_ms)], ["rows", count(statement.rows)], ["failed", count(statement.failed)], ["waits", statement.waits || "none of 5 % or more"]]),
		...statement.notes ? [element("p", {}, statement.notes)] : [],
		...findings.map(showFinding),
		element("h3", {}, "Plan"),
		...trees.length ? trees.map((tree, at) => showPlan(tree, at + 1, trees.length))
			: [element("p", {}, reason ? `Not known: ${reason}` : "Not shown: none of its runs had a sample. queryprof plan shows plans without times.")],
		...history.length ? [showHistory(history, trees)] : [],
		element("h3", {}, "Callers"),
		callers.length ? table("callers", "Lines of the program, by the time of the logged runs", [
			{ title: "wall", is_number: true, key: (one) => one.wall_ms, show: (one) => duration(one.wall_ms) },
			{ title: "logged runs", is_number: true, key: (one) => one.logged, show: (one) => count(one.logged) },
			{ title: "line", kind: "text", show: (one) => one.caller || "not known" },
			{ title: "function", kind: "text", show: (one) => one.function },
		], callers) : element("p", {}, "Not known: no run of it was logged."),
		element("h3", {}, span ? "Runs in the selected time" : "Runs over time"),
		...runs.length ? showRuns(runs) : [element("p", {}, span ? "None of its slowest logged runs is in the selected time."
			: "Not known: none of its runs was logged, or it is not among the fifty costliest statements.")],
		element("p", { class: "choices" }, element("a", { href: address({ panel: "flame", statement: id }) }, "Its flame graph"), element("a", { href: address({ panel: "timeline", statement: id }) }, "Its time line")),
		element("h3", {}, "More in the terminal"),
		element("pre", {}, command), copyButton(command, "the command")];
}

/* --- pages --------------------------------------------------------------------------------------------- */

/* The bytes of one b-tree over time: the more bytes, the darker the cell. */
function showCells(tree: PageTree): SVGElement {
	const SIZE = 10, cells = tree.cells.split(",").map(Number);
	return drawing("svg", { viewBox: `0 0 ${cells.length * SIZE} ${SIZE}`, class: "cells", role: "img",
		"aria-label": `${tree.btree} over time: ${megabytes(Math.max(...cells) / 1e6)} in ${duration(tree.part_ms)} at most` },
		...cells.map((bytes, at) => bytes === 0 ? null : drawing("rect", { x: at * SIZE, y: 0, width: SIZE - 1, height: SIZE,
			"fill-opacity": (0.15 + 0.85 * bytes / Math.max(tree.most ?? 1, 1)).toFixed(2) },
			drawing("title", {}, words(`${moment(tree.first_ms + at * tree.part_ms)} UTC`, megabytes(bytes / 1e6))))));
}

export function showPages(data: Data): HTMLElement[] {
	const title = element("h2", {}, "Pages: what the storage is read and written for"), first = data.pages[0];
	if (!first)
		return [title, element("p", {}, "No page of a database was read or written while it was recorded.")];
	const databases = new Set(data.pages.map((one) => one.database)).size;
	return [title,
		element("p", { class: "soft" }, "A page is written each time a transaction that changed it ends. An index is read if the plan of a recorded statement searches or scans it."),
		table<PageTree>("pages", `B-trees, by the bytes read and written; over time from ${moment(first.first_ms)} UTC, a square is ${duration(first.part_ms)}`, [
			{ title: "share", is_number: true, key: (one) => one.share, show: (one) => percent(one.share) },
			{ title: "b-tree", kind: "text", key: (one) => one.btree, show: (one) => one.btree },
			...databases > 1 ? [{ title: "database", show: (one: PageTree) => one.database ?? "" }] : [],
			{ title: "over time", show: showCells },
			{ title: "to the WAL", is_number: true, key: (one) => one.wal_mb, show: (one) => megabytes(one.wal_mb) },
			{ title: "to the database", is_number: true, key: (one) => one.database_mb, show: (one) => megabytes(one.database_mb) },
			{ title: "to the journal", is_number: true, key: (one) => one.journal_mb, show: (one) => megabytes(one.journal_mb) },
			{ title: "read", is_number: true, key: (one) => one.read_mb, show: (one) => megabytes(one.read_mb) },
			{ title: "pages written", is_number: true, key: (one) => one.pages_written, show: (one) => count(one.pages_written) },
			{ title: "times each", is_number: true, key: (one) => one.times, show: (one) => one.times === null ? "" : one.times.toFixed(1) },
			{ title: "read by", key: (one) => one.texts_reading, show: (one) => one.texts_reading === null ? "" : `${count(one.texts_reading)} of ${count(one.texts)} texts` },
		], data.pages)];
}

/* --- findings ----------------------------------------------------------------------------------------- */

function showFinding(finding: Finding): HTMLElement {
	const error = finding.error_ms === null ? "" : `; the error of this time is ${duration(finding.error_ms)}`;
	const isLink = /^https:\/\/[\w.]*sqlite\.org\//.test(finding.see);
	return element("article", {},
		element("h3", {}, `${finding.saved_ms === null ? "" : `${percent(finding.share)}: `}${finding.title} (${finding.finding})`),
		finding.evidence ? element("p", {}, `Evidence: ${finding.evidence}${error}`) : null,
		finding.cure ? element("div", {}, element("pre", { tabindex: "0" }, finding.cure), copyButton(finding.cure, "the cure")) : null,
		element("p", {}, `Sure: ${finding.sure}`),
		finding.caller ? element("p", {}, words(`from ${finding.caller}`, finding.caller_function)) : null,
		element("p", { class: "soft" }, "See: ", isLink ? element("a", { href: finding.see, rel: "noopener noreferrer" }, finding.see) : finding.see));
}

export function showFindings(data: Data): HTMLElement[] {
	return [element("h2", {}, "Findings"),
		element("p", { class: "soft" }, "What a change could save, the largest first. The number is the share of the time in SQLite: no cure saves more."),
		...data.findings.length ? data.findings.flatMap((one) => [showFinding(one),
			...one.statement === "0".repeat(16) ? [] : [element("p", {}, "Statement: ", link(one.statement, queryOf(data, one.statement)))]])
			: [element("p", {}, "Nothing was found that could save 1 % of the time in SQLite.")]];
}

/* --- health --------------------------------------------------------------------------------------------- */

export function showHealth(data: Data): HTMLElement[] {
	return [element("h2", {}, "Health of the recording"),
		data.losses.length ? table("losses", "What could not be recorded", [
			{ title: "samples, rows, spans", is_number: true, key: (one) => one.samples, show: (one) => count(one.samples) },
			{ title: "refused", is_number: true, key: (one) => one.refusals, show: (one) => count(one.refusals) },
			{ title: "reason", show: (one) => one.reason },
		], data.losses) : element("p", {}, "The file knows of no loss."),
		data.sampling.length ? table("sampling", "Sampling: longer than the period if its budget was reached, or threads had to share", [
			{ title: "type", show: (one) => one.trace_type },
			{ title: "threads", is_number: true, show: (one) => count(one.threads) },
			{ title: "period", is_number: true, show: (one) => one.unit === "ns" ? duration(one.period_ms) : "not known" },
			{ title: "shortest", is_number: true, show: (one) => one.unit === "ns" ? duration(one.shortest_ms) : "not known" },
			{ title: "longest", is_number: true, show: (one) => one.unit === "ns" ? duration(one.longest_ms) : "not known" },
		], data.sampling) : element("p", {}, "Nothing was sampled."),
		data.unplanned.length ? table("unplanned", "Statements without a known plan", [
			{ title: "statement", kind: "text", show: (one) => link(one.statement, queryOf(data, one.statement)) },
			{ title: "reason", show: (one) => one.reason },
		], data.unplanned) : element("p", {}, "The plans of all statements that were logged are known."),
		element("p", { class: "soft" }, "What recording cost the program is not known from the file. queryprof's budget is 2 % of the queries' CPU time.")];
}
