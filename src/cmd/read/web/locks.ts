/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks and WALs: who waited for whom, and why WALs grew.
 */
import { scale, timeAxis } from "./axis.ts";
import type { Data, LockChain, LockWait, Wal, WalPoint } from "./data.ts";
import { drawing, element, pictureWidth, table } from "./dom.ts";
import { count, duration, moment } from "./format.ts";

const WITHOUT = "The texts of statements were left out of this page.";

function waitOf(wait: LockWait): string {
	return wait.cause ?? `${wait.outcome}${wait.reason ? ` (${wait.reason})` : ""}; held by ${wait.holder_process_id ? `process ${wait.holder_process_id} ${wait.holder_thread}` : "nobody that is known"}`;
}

function drawWal(wal: Wal, points: WalPoint[]): SVGElement {
	const WIDTH = pictureWidth(900), HEIGHT = 140, LEFT = 70, BOTTOM = 20;
	const span = { from: Math.min(...points.map((one) => one.at_ms)), to: Math.max(...points.map((one) => one.at_ms)) }, most = Math.max(1, wal.frames), x = scale(span, LEFT, WIDTH - 6);
	const y = (frames: number): number => 8 + (HEIGHT - BOTTOM - 16) * (1 - frames / most);
	const line = points.map((one, at) => `${at ? "H" : "M"}${x(one.at_ms).toFixed(1)}${at ? "" : ` ${y(one.frames).toFixed(1)}`}${at ? `V${y(one.frames).toFixed(1)}` : ""}`).join("");
	return drawing("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `The WAL of ${wal.database}: at most ${count(wal.frames)} frames. The table below has the numbers.` },
		timeAxis(span, LEFT, WIDTH - 6, HEIGHT - BOTTOM), drawing("text", { x: 0, y: 12 }, `${count(wal.frames)} frames`),
		drawing("path", { d: line }),
		...points.filter((one) => one.checkpoint > 0).map((one) => drawing("circle", { cx: x(one.at_ms), cy: y(one.frames), r: 3, class: one.checkpoint === 2 ? "failed" : "" },
			drawing("title", {}, `${moment(one.at_ms)}: a checkpoint ${one.checkpoint === 2 ? "that left frames, or failed" : "that copied all frames"}`))));
}

function showWal(data: Data, wal: Wal): (HTMLElement | SVGElement)[] {
	const points = data.wal_points.filter((one) => one.database === wal.database);
	return [element("h3", {}, `WAL of ${wal.database}`), element("p", {}, wal.story ?? WITHOUT),
		...points.length ? [drawWal(wal, points), table<WalPoint>(`wal ${wal.database}`, "The largest sizes, and checkpoints", [
			{ title: "time (UTC)", key: (one) => one.at_ms, show: (one) => moment(one.at_ms) },
			{ title: "frames", is_number: true, key: (one) => one.frames, show: (one) => count(one.frames) },
			{ title: "checkpoint", show: (one) => ["", "copied all", "left some, or failed"][one.checkpoint] ?? "" },
		], [...points].sort((a, b) => b.frames - a.frames).slice(0, 20))] : []];
}

export function showLocks(data: Data): (HTMLElement | SVGElement)[] {
	return [element("h2", {}, "Locks and WALs"),
		data.locks.length ? table<LockWait>("locks", "The longest waits for locks", [
			{ title: "waited", is_number: true, key: (one) => one.wait_ms, show: (one) => duration(one.wait_ms) },
			{ title: "from (UTC)", key: (one) => one.at_ms, show: (one) => moment(one.at_ms) },
			{ title: "what happened", kind: "story", show: waitOf },
			{ title: "what helps", show: (one) => one.cure },
		], data.locks) : element("p", {}, "No statement waited for a lock, or failed because of one."),
		data.chains.length ? table<LockChain>("chains", "Chains: who waited for somebody who waited", [
			{ title: "waited", is_number: true, key: (one) => one.waited_ms, show: (one) => duration(one.waited_ms) },
			{ title: "longest", is_number: true, key: (one) => one.longest_ms, show: (one) => duration(one.longest_ms) },
			{ title: "waits", is_number: true, key: (one) => one.waits, show: (one) => count(one.waits) },
			{ title: "chain", kind: "story", show: (one) => one.cause ?? WITHOUT },
		], data.chains) : null,
		...data.wals.length ? data.wals.flatMap((wal) => showWal(data, wal)) : [element("p", {}, "No change of a WAL was recorded, and no checkpoint.")],
	].filter((part) => part !== null);
}
