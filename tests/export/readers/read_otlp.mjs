/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OTLP/HTTP request in JSON, as OpenTelemetry's own message classes read it: checked against
 * the schema, sent through its binary form, and printed again. Ids are hexadecimal in OTLP's
 * JSON, where protobuf's would be base64.
 *
 *   node read_otlp.mjs MODULES REQUEST
 */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [modules, path] = process.argv.slice(2);
const root = createRequire(join(modules, "package.json"))(
	join(modules, "node_modules/@opentelemetry/otlp-transformer/build/src/generated/root.js"));
const Request = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
const IDS = { traceId: 16, spanId: 8, parentSpanId: 8 };

const given = JSON.parse(readFileSync(path));
const bytes = (value, key) => {
	if (key in IDS) {
		const id = Buffer.from(value, "hex");
		if (id.length !== IDS[key] || id.toString("hex") !== value)
			throw new Error(`${key} ${value}`);
		return id;
	}
	if (Array.isArray(value))
		return value.map((item) => bytes(item));
	if (value && typeof value === "object")
		return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, bytes(item, name)]));
	return value;
};
const hex = (value, key) => {
	if (key in IDS)
		return Buffer.from(value, "base64").toString("hex");
	if (Array.isArray(value))
		return value.map((item) => hex(item));
	if (value && typeof value === "object")
		return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, hex(item, name)]));
	return value;
};

const message = Request.fromObject(bytes(given));
const wrong = Request.verify(message);
if (wrong)
	throw new Error(wrong);
const read = Request.toObject(Request.decode(Request.encode(message).finish()),
	{ longs: String, bytes: String, enums: Number });
console.log(JSON.stringify({ given, read: hex(read) }));
