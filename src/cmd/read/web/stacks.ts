/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as a tree, and the sums of their functions. It needs no browser, so tests run it in node.
 */
import type { Func, Stack } from "./data.ts";

export type Time = "cpu" | "wall" | "waits";

/* Wall time is CPU time and waits if both were sampled; otherwise it has samples of its own. */
export function typesOf(time: Time, stacks: readonly Stack[]): readonly string[] {
	const isReal = stacks.some((stack) => stack.trace_type === "Real");
	return { cpu: ["CPU"], wall: isReal ? ["Real"] : ["CPU", "OffCPU"], waits: ["OffCPU"] }[time];
}

/* The times that have samples. */
export function times(stacks: readonly Stack[]): Time[] {
	const types = new Set(stacks.map((stack) => stack.trace_type));
	return (["wall", "cpu", "waits"] as const).filter((time) => typesOf(time, stacks).some((type) => types.has(type)));
}

/* d3-flame-graph reads name and value. base: the value in the other selection, if two are compared. */
export interface Branch { name: string; module: string; value: number; self: number; base: number; children: Map<string, Branch> }

function child(of: Branch, name: string, module: string): Branch {
	const key = `${module}\n${name}`, made = of.children.get(key) ?? { name, module, value: 0, self: 0, base: 0, children: new Map<string, Branch>() };
	of.children.set(key, made);
	return made;
}

export interface Chosen {
	time: Time;
	statement: string; /* "": all */
	all: boolean; /* also frames outside SQLite and queryprof's own */
}

function chooseStacks(stacks: readonly Stack[], { time, statement }: Chosen): Stack[] {
	const types = typesOf(time, stacks);
	return stacks.filter((stack) => types.includes(stack.trace_type) && (!statement || stack.statement === statement));
}

const UNKNOWN: Func = { function: "not known", module: "" };

const isSqlite = ({ module, function: name }: Func): boolean => /^libsqlite3\b/.test(module) || name.startsWith("sqlite3_");
const isOwn = ({ module, function: name }: Func): boolean => /^libqueryprof\b/.test(module) || /^(queryprof|qp)_/.test(name);
/* The command adds the source line to the program's own functions. */
const isProgram = ({ function: name }: Func): boolean => / \(.+:\d+\)$/.test(name);

const OUTSIDE: Func = { function: "frames outside SQLite", module: "" };

/* The frames between the root and the program's functions or SQLite become one frame. */
function folded(path: Func[]): Func[] {
	const first = path.findIndex((frame) => isSqlite(frame) || isProgram(frame));
	const inside = (first > 0 ? path.slice(first) : path).filter((frame) => !isOwn(frame));
	return first > 0 ? [OUTSIDE, ...inside] : inside;
}

/* Root first. */
function framesOf(stack: Stack, functions: readonly Func[]): Func[] {
	const frames = stack.frames?.split(",").map((number) => functions[Number(number)] ?? UNKNOWN).reverse() ?? [];
	if (stack.wait)
		frames.push({ function: `[wait: ${stack.wait}]`, module: "" });
	return frames.length ? frames : [{ function: "(other stacks)", module: "" }];
}

/* If all statements are chosen, they are below the root, with their stacks. */
export function makeTree(stacks: readonly Stack[], functions: readonly Func[], chosen: Chosen, nameOf: (statement: string) => string, base: readonly Stack[] = []): Branch {
	const root: Branch = { name: chosen.statement ? nameOf(chosen.statement) : "all statements", module: "", value: 0, self: 0, base: 0, children: new Map() };
	const add = (stack: Stack, ms: number, base_ms: number): void => {
		let branch = root;
		branch.value += ms;
		branch.base += base_ms;
		const whole = framesOf(stack, functions), path = chosen.all ? whole : folded(whole);
		for (const frame of chosen.statement ? path : [{ function: nameOf(stack.statement), module: "" }, ...path]) {
			branch = child(branch, frame.function, frame.module);
			branch.value += ms;
			branch.base += base_ms;
		}
		branch.self += ms;
	};
	chooseStacks(stacks, chosen).forEach((stack) => add(stack, stack.ms, 0));
	chooseStacks(base, chosen).forEach((stack) => add(stack, 0, stack.ms));
	return root;
}

/* How much a branch's share of the whole has grown, from -1 to 1. Shares, because the two times need not be equally long. */
export const growth = (branch: Branch, root: Branch): number => (root.value ? branch.value / root.value : 0) - (root.base ? branch.base / root.base : 0);

export interface FunctionSum { function: string; module: string; self: number; total: number }

/* Counts each function once per stack. */
export function sumFunctions(stacks: readonly Stack[], functions: readonly Func[], chosen: Chosen): FunctionSum[] {
	const sums = new Map<string, FunctionSum>();
	for (const stack of chooseStacks(stacks, chosen).filter((one) => one.frames !== null)) {
		const path = framesOf(stack, functions), seen = new Set<FunctionSum>();
		path.forEach((frame, place) => {
			const key = `${frame.module}\n${frame.function}`, sum = sums.get(key) ?? { ...frame, self: 0, total: 0 };
			sums.set(key, sum);
			if (!seen.has(sum))
				sum.total += stack.ms;
			seen.add(sum);
			if (place === path.length - 1)
				sum.self += stack.ms;
		});
	}
	return [...sums.values()].sort((a, b) => b.self - a.self || b.total - a.total);
}

/* A hue for each module, the same on every page and for every version of it; null if it is not code. */
export function hue(module: string): number | null {
	let hash = 1150831;
	for (const letter of module.replace(/\.so\..*/, ".so"))
		hash = Math.imul(hash ^ letter.codePointAt(0)!, 0x01000193);
	return module ? Math.floor((hash >>> 0) / 2 ** 32 * 280) : null;
}
