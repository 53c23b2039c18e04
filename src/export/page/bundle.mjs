/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a page of its parts and the libraries: one HTML file without anything outside, with a place left for the data.
 */
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/* Who wrote what is in the page. */
function licensesOf(metafile, packages) {
	const used = new Set(Object.keys(metafile.inputs)
		.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean));
	return [...used].sort().map((name) => {
		const { version, license, homepage } = JSON.parse(readFileSync(join(packages, name, "package.json"), "utf8"));
		return `${name} ${version} (${license}) ${homepage ?? ""}\n\n` + readFileSync(join(packages, name, "LICENSE"), "utf8");
	});
}

/* `entry` and `html` are files in the folder `here`, `modules` is a folder with node_modules. The HTML has @STYLE@, @SCRIPT@,
 * @LICENSES@ and @DATA@, and the parts that more({ STYLE, SCRIPT }) returns. */
export async function bundle({ here, entry, html, modules, out, more = () => ({}) }) {
	const packages = join(modules, "node_modules");
	const built = await createRequire(join(modules, "package.json"))("esbuild").build({
		entryPoints: [join(here, entry)],
		absWorkingDir: modules,
		nodePaths: [packages],
		bundle: true,
		minify: true,
		format: "iife",
		target: "es2021",
		legalComments: "none", // the licenses are below, whole
		metafile: true,
		write: false,
		outdir: modules,
		logLevel: "warning",
	});
	const output = (end) => built.outputFiles.find((file) => file.path.endsWith(end)).text;
	const own = {
		STYLE: output(".css").replaceAll("</", "<\\/"),
		SCRIPT: output(".js").replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--"),
	};
	const parts = {
		...own,
		...more(own),
		// Two hyphens could end the comment.
		LICENSES: `<!--\nThis page contains:\n\n${licensesOf(built.metafile, packages).join("\n\n").replaceAll("--", "- -")}\n-->`,
	};
	const page = readFileSync(join(here, html), "utf8").replace(/@([A-Z]+)@/g, (all, part) => parts[part] ?? all);
	if (page.split("@DATA@").length !== 2)
		throw new Error("the page has not one place for the data");
	writeFileSync(out, page);
}
