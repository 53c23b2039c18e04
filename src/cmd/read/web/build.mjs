/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the page of its parts: one HTML file without anything outside, with a place left for the data. Its policy permits its script
 * and its style by their hashes, and nothing else.
 *
 *   node build.mjs MODULES OUT      MODULES: a folder with node_modules, which has esbuild
 */
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(modules, "package.json"))("esbuild");

const built = await esbuild.build({
	entryPoints: [join(here, "page.ts")],
	absWorkingDir: here,
	bundle: true,
	minify: true,
	format: "iife",
	target: "es2021",
	legalComments: "none",
	write: false,
	outdir: here,
	logLevel: "warning",
});
const output = (end) => built.outputFiles.find((file) => file.path.endsWith(end)).text;
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const STYLE = output(".css").replaceAll("</", "<\\/");
const SCRIPT = output(".js").replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const POLICY = `default-src 'none'; script-src ${hash(SCRIPT)}; style-src ${hash(STYLE)}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'`;
const parts = { STYLE, SCRIPT, POLICY };
const page = readFileSync(join(here, "page.html"), "utf8").replace(/@(STYLE|SCRIPT|POLICY)@/g, (_, part) => parts[part]);
if (page.split("@DATA@").length !== 2)
	throw new Error("the page has not one place for the data");
writeFileSync(out, page);
