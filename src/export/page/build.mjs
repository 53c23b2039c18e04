/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the flame graph's page.
 *
 *   node build.mjs MODULES OUT      MODULES: a folder with node_modules
 */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.mjs";

const [modules, out] = process.argv.slice(2);
await bundle({ here: dirname(fileURLToPath(import.meta.url)), entry: "flame_graph.js", html: "flame_graph.html", modules, out });
