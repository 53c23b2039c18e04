/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a profile as pprof-format reads it, as JSON: samples with their frames' names and
 * lines, values and labels, and the mappings.
 *
 *   node read_pprof.mjs MODULES PROFILE
 */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

const [modules, path] = process.argv.slice(2);
const { Profile } = createRequire(join(modules, "package.json"))("pprof-format");
const profile = Profile.decode(gunzipSync(readFileSync(path)));
const text = (number) => profile.stringTable.strings[Number(number)];
const byId = (list) => new Map(list.map((item) => [Number(item.id), item]));
const locations = byId(profile.location), functions = byId(profile.function);

console.log(JSON.stringify({
	types: profile.sampleType.map((type) => [text(type.type), text(type.unit)]),
	samples: profile.sample.map((sample) => [
		sample.locationId.flatMap((id) => locations.get(Number(id)).line.map((line) =>
			[text(functions.get(Number(line.functionId)).name), Number(line.line)])),
		sample.value.map(Number),
		Object.fromEntries(sample.label.map((label) => [text(label.key), text(label.str)])),
	]),
	mappings: profile.mapping.map((mapping) => [text(mapping.filename), text(mapping.buildId)]),
}));
