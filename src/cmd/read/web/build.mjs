/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the page of `live` and `report --html`. Its policy permits its script and its style by their hashes, and nothing else.
 *
 *   node build.mjs MODULES OUT      MODULES: a folder with node_modules
 */
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../../../export/page/bundle.mjs";

const [modules, out] = process.argv.slice(2);
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = ({ STYLE, SCRIPT }) => `default-src 'none'; script-src ${hash(SCRIPT)}; style-src ${hash(STYLE)}; connect-src 'self'; `
	+ "img-src data:; base-uri 'none'; form-action 'none'";

await bundle({ here: dirname(fileURLToPath(import.meta.url)), entry: "page.ts", html: "page.html", modules, out, more: (own) => ({ POLICY: policy(own) }) });
