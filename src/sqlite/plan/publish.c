/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/publish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash_table.h"
#include "base/text.h"
#include "collect/state.h"
#include "handler/ring.h"
#include "wire/bytecode_record.h"
#include "wire/query_record.h"

#define RING_SHARE 16
#define OPCODE_NAME_MAX 63
#define REASON_MAX 159

struct rows {
	uint64_t bytecode;
	struct ring *ring;
	bool is_refused; /* the ring was full; a record that never fits is left out */
	size_t used;
	_Alignas(struct bytecode_row) char memory[BYTECODE_ROWS_BYTES];
};

static void *reserve(struct rows *rows, size_t size)
{
	void *record = ring_reserve(rows->ring, size);

	rows->is_refused |= !record && size <= ring_max_payload(rows->ring);
	return record;
}

static void send_rows(struct rows *rows)
{
	struct bytecode_rows_record *record = rows->used ? reserve(rows, sizeof(*record) + rows->used) : NULL;

	if (record) {
		*record = (struct bytecode_rows_record){ .bytecode = rows->bytecode, .size = rows->used };
		memcpy(record->rows, rows->memory, rows->used);
		ring_commit(rows->ring, record, RECORD_BYTECODE_ROWS);
	}
	rows->used = 0;
}

/* A row of that size, zeroed except its head. */
static void *add_row(struct rows *rows, enum bytecode_row_kind kind, int32_t node, size_t size)
{
	struct bytecode_row *row;

	size = (size + 7) / 8 * 8;
	if (rows->used + size > sizeof(rows->memory))
		send_rows(rows);
	row = (struct bytecode_row *)(rows->memory + rows->used);
	rows->used += size;
	memset(row, 0, size);
	*row = (struct bytecode_row){ (uint16_t)kind, (uint16_t)size, node };
	return row;
}

static int depth_of(const struct plan *plan, const struct plan_node *node)
{
	int depth = 0;

	for (size_t i = 0; i < plan->nodes.count && node->parent && depth < 50; i++)
		if (plan->nodes.items[i].id == node->parent && &plan->nodes.items[i] != node) {
			node = &plan->nodes.items[i];
			depth++;
			i = (size_t)-1;
		}
	return depth;
}

static void write_nodes(const struct plan *plan, FILE *to, int depth)
{
	for (size_t i = 0; i < plan->nodes.count; i++) {
		const struct plan_node *node = &plan->nodes.items[i];

		if (!node->is_made)
			fprintf(to, "%*s%s\n", 2 * (depth + depth_of(plan, node)), "", node->detail);
	}
	for (size_t i = 0; i < plan->called.count; i++)
		write_nodes(&plan->called.items[i], to, depth + (plan->root != 0));
}

/* The plan as text, one line per node, without modified objects. */
static char *write_plan(const struct plan *plan, size_t *size)
{
	char *text = NULL;
	FILE *to = open_memstream(&text, size);

	if (!to)
		return NULL;
	write_nodes(plan, to, 0);
	fclose(to);
	return text;
}

/* Without numbers that change: those of subqueries, which may be addresses. */
static uint64_t hash_plan(const char *text, size_t size)
{
	struct hash hash = hash_begin(0);

	for (size_t i = 0; i < size; i++) {
		bool moves = i > 0 && strchr("0123456789abcdefx", text[i]) &&
		             (text[i - 1] == '-' || !strncmp(text + (i < 9 ? 0 : i - 9), "SUBQUERY ", 9));

		while (moves && i < size && text[i] && strchr("0123456789abcdefx", text[i]))
			i++;
		if (i < size)
			hash_word(&hash, (unsigned char)text[i]);
	}
	return hash_end(hash).first;
}

static void send_bytecode(const struct published_bytecode *of, const struct plan *plan, struct rows *rows)
{
	size_t plan_size = 0, query_size = strlen(of->text), library_size = strlen(of->library);
	char *text = write_plan(plan, &plan_size);
	size_t room = ring_max_payload(rows->ring) / RING_SHARE;
	struct bytecode_record *record;
	bool is_cut;

	room = room < BYTECODE_ROWS_BYTES ? BYTECODE_ROWS_BYTES : room;
	library_size = library_size < room / 4 ? library_size : room / 4;
	plan_size = text_cut(text ? text : "", plan_size < room / 2 ? plan_size : room / 2);
	is_cut = query_size > room / 4;
	query_size = is_cut ? text_cut(of->text, room / 4) : query_size;
	record = text ? reserve(rows, sizeof(*record) + query_size + library_size + plan_size) : NULL;
	if (record) {
		*record = (struct bytecode_record){ .bytecode = of->bytecode,
			                            .plan = hash_plan(text, plan_size),
			                            .layout = of->layout,
			                            .seen_ns = clock_ns(CLOCK_REALTIME),
			                            .query_size = (uint32_t)query_size,
			                            .library_size = (uint32_t)library_size,
			                            .plan_size = (uint32_t)plan_size,
			                            .flags = is_cut ? QUERY_TEXT_CUT : 0 };
		memcpy(record->text, of->text, query_size);
		memcpy(record->text + query_size, of->library, library_size);
		memcpy(record->text + query_size + library_size, text, plan_size);
		ring_commit(rows->ring, record, RECORD_BYTECODE);
	}
	free(text);
}

static void add_nodes(struct rows *rows, const struct plan *plan)
{
	for (size_t i = 0; i < plan->nodes.count; i++) {
		const struct plan_node *node = &plan->nodes.items[i];
		const size_t detail = strlen(node->detail), compared = strlen(node->compared);
		struct node_row *row = add_row(rows, ROW_NODE, node->id, sizeof(*row) + detail + compared);

		row->parent = node->parent;
		row->detail_size = (uint16_t)detail;
		row->compared_size = (uint16_t)compared;
		memcpy(row->text, node->detail, detail);
		memcpy(row->text + detail, node->compared, compared);
	}
	for (size_t i = 0; i < plan->called.count; i++)
		add_nodes(rows, &plan->called.items[i]);
}

/* `caller`: the opcode of the statement that calls the bytecode, NULL: it is the statement's own.
 * Addresses as in a sample (handler/opcode.h). */
static void add_opcodes(struct rows *rows, const struct plan *plan, const struct plan_opcode *caller)
{
	for (size_t i = 0; i < plan->opcodes.count; i++) {
		const struct plan_opcode *opcode = &plan->opcodes.items[i];
		const size_t name = strnlen(opcode->name, OPCODE_NAME_MAX);
		struct opcode_row *row = add_row(rows, ROW_OPCODE, opcode->node, sizeof(*row) + name);

		row->address = caller ? caller->address | (opcode->address + 1ull) << 32 : opcode->address;
		row->p1 = opcode->bytes.p1;
		row->p2 = opcode->bytes.p2;
		row->p3 = opcode->bytes.p3;
		row->p5 = opcode->bytes.p5;
		row->name_size = (uint16_t)name;
		memcpy(row->name, opcode->name, name);
		if (opcode->calls && !caller)
			add_opcodes(rows, &plan->called.items[opcode->calls - 1], opcode);
	}
}

bool publish_bytecode(const struct published_bytecode *of, const struct plan *plan)
{
	struct rows rows = { .bytecode = of->bytecode, .ring = sampler_ring() };

	if (!rows.ring)
		return false;
	send_bytecode(of, plan, &rows);
	add_nodes(&rows, plan);
	add_opcodes(&rows, plan, NULL);
	send_rows(&rows);
	return !rows.is_refused;
}

bool publish_missing(uint64_t bytecode, const char *reason)
{
	struct rows rows = { .bytecode = bytecode, .ring = sampler_ring() };
	const size_t size = text_cut(reason, strnlen(reason, REASON_MAX));
	struct missing_plan_row *row;

	if (!rows.ring)
		return false;
	row = add_row(&rows, ROW_MISSING_PLAN, 0, sizeof(*row) + size);
	row->reason_size = size;
	memcpy(row->reason, reason, size);
	send_rows(&rows);
	return !rows.is_refused;
}

void publish_counts(struct query_key run, uint64_t bytecode, const void *rows, size_t size)
{
	struct ring *ring = sampler_ring();
	struct bytecode_rows_record *record =
		ring && size ? ring_reserve(ring, sizeof(*record) + size) : NULL;

	if (!record)
		return;
	*record = (struct bytecode_rows_record){ bytecode, run, size };
	memcpy(record->rows, rows, size);
	ring_commit(ring, record, RECORD_BYTECODE_ROWS);
}
