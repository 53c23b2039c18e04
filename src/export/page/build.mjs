/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the flame graph's page of its parts and the libraries: one HTML file without
 * anything outside, with a place left for the data.
 *
 *   node build.mjs MODULES OUT      MODULES: a folder with node_modules
 */
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const packages = join(modules, "node_modules");
const esbuild = createRequire(join(modules, "package.json"))("esbuild");

const built = await esbuild.build({
	entryPoints: [join(here, "flame_graph.js")],
	absWorkingDir: modules,
	nodePaths: [packages],
	bundle: true,
	minify: true,
	format: "iife",
	target: "es2020",
	legalComments: "none", // the licenses are below, whole
	metafile: true,
	write: false,
	outdir: modules,
	logLevel: "warning",
});
const output = (end) => built.outputFiles.find((file) => file.path.endsWith(end)).text;

/* Who wrote what is in the page. */
const used = new Set(Object.keys(built.metafile.inputs)
	.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean));
const licenses = [...used].sort().map((name) => {
	const { version, license, homepage } = JSON.parse(readFileSync(join(packages, name, "package.json"), "utf8"));
	return `${name} ${version} (${license}) ${homepage ?? ""}\n\n` + readFileSync(join(packages, name, "LICENSE"), "utf8");
});

const parts = {
	STYLE: output(".css").replaceAll("</", "<\\/"),
	SCRIPT: output(".js").replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--"),
	// Two hyphens could end the comment.
	LICENSES: `<!--\nThis page contains:\n\n${licenses.join("\n\n").replaceAll("--", "- -")}\n-->`,
};
const page = readFileSync(join(here, "flame_graph.html"), "utf8")
	.replace(/@(STYLE|SCRIPT|LICENSES)@/g, (_, part) => parts[part]);
if (page.split("@DATA@").length !== 2)
	throw new Error("the page has not one place for the data");
writeFileSync(out, page);
