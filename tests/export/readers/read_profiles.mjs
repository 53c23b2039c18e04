/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests with OTLP profiles, as protobufjs reads them by the published proto: each is checked against
 * the schema, and encoded again, which loses what the schema does not have. Prints an object for each
 * event of each sample, a line each.
 *
 *   node read_profiles.mjs MODULES PROTO REQUEST...
 *
 * PROTO is a checkout of opentelemetry-proto, which no package of npm has.
 */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [modules, proto, ...requests] = process.argv.slice(2);
const protobuf = createRequire(join(modules, "package.json"))("protobufjs");
const root = new protobuf.Root();
root.resolvePath = (_, path) => join(proto, path.slice(path.indexOf("opentelemetry/")));
root.loadSync("opentelemetry/proto/collector/profiles/v1development/profiles_service.proto");
const Request = root.lookupType("opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest");
const value = (any) => any[any.value];

for (const path of requests) {
	const bytes = readFileSync(path);
	const message = Request.decode(bytes);
	const wrong = Request.verify(message);
	if (wrong)
		throw new Error(wrong);
	if (Request.encode(message).finish().length !== bytes.length)
		throw new Error(`${path}: ${bytes.length} bytes, of which the proto does not know all`);
	const all = Request.toObject(message, { longs: String, defaults: true, oneofs: true });
	const { stringTable: text, attributeTable, stackTable, locationTable, functionTable } = all.dictionary;
	for (const [name, table] of Object.entries(all.dictionary)) {
		const zero = Request.fields.dictionary.resolve().resolvedType.fields[name].resolvedType;
		if (zero ? zero.encode(message.dictionary[name][0]).finish().length : table[0] !== "")
			throw new Error(`${path}: the first of ${name} is not empty`);
	}
	const attributes = (numbers) => Object.fromEntries(numbers.map((number) =>
		[text[attributeTable[number].keyStrindex], value(attributeTable[number].value)]));
	for (const { resource, scopeProfiles } of all.resourceProfiles)
		for (const profile of scopeProfiles.flatMap((scope) => scope.profiles))
			for (const sample of profile.samples)
				sample.values.forEach((one, event) => console.log(JSON.stringify({
					resource: Object.fromEntries(resource.attributes.map((item) => [item.key, value(item.value)])),
					type: text[profile.sampleType.typeStrindex],
					unit: text[profile.sampleType.unitStrindex],
					attributes: attributes(sample.attributeIndices),
					time_ns: sample.timestampsUnixNano[event],
					value: one,
					link: ["traceId", "spanId"].map((id) =>
						Buffer.from(all.dictionary.linkTable[sample.linkIndex][id]).toString("hex")).join(""),
					frames: stackTable[sample.stackIndex].locationIndices.flatMap((location) =>
						locationTable[location].lines.map((line) =>
							text[functionTable[line.functionIndex].nameStrindex])),
				})));
}
