/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file's address space: the same stack is the same row wherever the loader put
 * the modules, and no address ever names a wrong module.
 */
#include <stdio.h>
#include <string.h>

#include "support.h"

static struct module module_at(uint64_t start, const char *path, const char *build_id)
{
	return (struct module){
		.bias = start - 0x1000,
		.start = start,
		.end = start + 0x10000,
		.born = 1,
		.died = UINT32_MAX,
		.file_size = 5000,
		.mtime_ns = 77,
		.path = path,
		.build_id = build_id,
	};
}

/* One run of a process with these modules, which takes one sample. */
static void run(const struct module *modules, size_t count, const uint64_t *trace, uint16_t depth)
{
	static uint64_t time;

	set_modules(modules, count);
	start_store(in_folder("trace.db"), 0);
	put_sample((struct a_sample){ .timestamp_ns = T0 + time++, .trace = trace, .depth = depth });
	drain();
}

static void same_stack_at_other_addresses(void **state)
{
	struct module first[] = { module_at(0x7f1000000000, "/lib/a.so", "aaaa"),
		                  module_at(0x7f2000000000, "/lib/b.so", "bbbb") };
	struct module second[] = { module_at(0x7f8800000000, "/other/b.so", "bbbb"),
		                   module_at(0x7f9900000000, "/lib/a.so", "aaaa") };
	const struct module *found;

	(void)state;
	run(first, 2, (uint64_t[]){ 0x7f1000000010, 0x7f2000000020 }, 2);
	/* The first process sees its own addresses. */
	assert_int_equal(ask("SELECT trace ->> 0 FROM trace_log"), 0x7f1000000010);
	stop_store();
	run(second, 2, (uint64_t[]){ 0x7f9900000010, 0x7f8800000020 }, 2);
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 2);
	assert_int_equal(ask("SELECT count(*) FROM stacks"), 1);
	assert_int_equal(ask("SELECT count(*) FROM modules"), 2);

	/* Finds an address as in the file, and an address as in this process. */
	found = store_locate(0x7f2000000020);
	assert_non_null(found);
	assert_string_equal(found->path, "/lib/b.so");
	assert_string_equal(found->build_id, "bbbb");
	assert_int_equal(0x7f2000000020 - found->bias, 0x1020);
	assert_int_equal(0x7f2000000020 - found->start, 0x20);
	assert_int_equal(found->file_size, 5000);
	assert_int_equal(found->mtime_ns, 77);
	found = store_locate(0x7f8800000024);
	assert_non_null(found);
	assert_string_equal(found->path, "/other/b.so");
	assert_int_equal(0x7f8800000024 - found->bias, 0x1024);
	assert_null(store_locate(0x7f3000000000));
	stop_store();
}

static void taken_range_and_what_lies_nowhere(void **state)
{
	struct module first = module_at(0x7f1000000000, "/lib/a.so", "aaaa");
	struct module second[] = { module_at(0x7f1000008000, "/lib/c.so", "cccc"),
		                   module_at(0x7f1000020000, "/lib/d.so", "dddd") };
	const struct module *found;
	uint64_t moved;

	(void)state;
	run(&first, 1, (uint64_t[]){ 0x7f1000000010 }, 1);
	stop_store();
	/* c.so overlaps the range of a.so. The last address is in that range, but in no module. */
	run(second, 2, (uint64_t[]){ 0x7f1000008001, 0x7f1000020001, 0x7f1000000020 }, 3);
	moved = (uint64_t)ask("SELECT trace ->> 0 FROM trace_log ORDER BY timestamp_ns DESC");
	found = store_locate(moved);
	assert_non_null(found);
	assert_string_equal(found->path, "/lib/c.so");
	assert_int_equal(moved - found->start, 1);
	assert_int_equal(ask("SELECT trace ->> 1 FROM trace_log ORDER BY timestamp_ns DESC"), 0x7f1000020001);
	assert_int_equal(ask("SELECT trace ->> 2 FROM trace_log ORDER BY timestamp_ns DESC"),
	                 0x7f1000000020 | 1ll << 62);
	assert_null(store_locate(0x7f1000000020 | 1ull << 62));
	found = store_locate(0x7f1000000010);
	assert_non_null(found);
	assert_string_equal(found->path, "/lib/a.so");
	/* No two modules overlap. */
	assert_int_equal(ask("SELECT count(*) FROM modules a, modules b WHERE a.id < b.id"
	                     " AND a.base < b.base + b.extent AND b.base < a.base + a.extent"),
	                 0);
	stop_store();
}

static void many_modules_at_one_place(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		char id[16];
		struct module module;

		snprintf(id, sizeof(id), "%04d", i);
		module = module_at(0x555500000000, "/bin/program", id);
		run(&module, 1, (uint64_t[]){ 0x555500000040 }, 1);
		stop_store();
	}
	start_store(in_folder("trace.db"), 0);
	assert_int_equal(ask("SELECT count(*) FROM modules"), 20);
	assert_int_equal(ask("SELECT count(*) FROM stacks"), 20);
	assert_int_equal(ask("SELECT count(*) FROM modules a, modules b WHERE a.id < b.id"
	                     " AND a.base < b.base + b.extent AND b.base < a.base + a.extent"),
	                 0);
	stop_store();
}

static void without_a_build_id(void **state)
{
	struct module module = module_at(0x7f1000000000, "/lib/a.so", "");

	(void)state;
	run(&module, 1, (uint64_t[]){ 0x7f1000000010 }, 1);
	stop_store();
	module.start += 0x5000000, module.end += 0x5000000, module.bias += 0x5000000;
	run(&module, 1, (uint64_t[]){ 0x7f1005000010 }, 1);
	assert_int_equal(ask("SELECT count(*) FROM modules"), 1);
	stop_store();
	module.mtime_ns++; /* another file with the same name */
	run(&module, 1, (uint64_t[]){ 0x7f1005000010 }, 1);
	assert_int_equal(ask("SELECT count(*) FROM modules"), 2);
	assert_int_equal(ask("SELECT count(*) FROM stacks"), 2);
	stop_store();
}

static void another_module_at_the_same_address_later(void **state)
{
	struct module modules[] = { module_at(0x7f1000000000, "/lib/a.so", "aaaa"),
		                    module_at(0x7f1000000000, "/lib/b.so", "bbbb") };
	struct a_sample sample = {
		.timestamp_ns = T0, .trace = (uint64_t[]){ 0x7f1000000010 }, .depth = 1, .generation = 1
	};
	const struct module *found;

	(void)state;
	modules[0].died = 2;
	modules[1].born = 2;
	set_modules(modules, 2);
	start_store(in_folder("trace.db"), 0);
	put_sample(sample);
	sample.generation = 2;
	sample.timestamp_ns++;
	put_sample(sample);
	sample.generation = 1; /* a late sample */
	sample.timestamp_ns++;
	put_sample(sample);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM stacks"), 2);
	found = store_locate(
		(uint64_t)ask("SELECT trace ->> 0 FROM trace_log ORDER BY timestamp_ns LIMIT 1 OFFSET 1"));
	assert_non_null(found);
	assert_string_equal(found->path, "/lib/b.so");
	assert_int_equal(ask("SELECT count(*) FROM trace_log WHERE trace ->> 0 = 0x7f1000000010"), 2);
	stop_store();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(same_stack_at_other_addresses),
		TEST(taken_range_and_what_lies_nowhere),
		TEST(many_modules_at_one_place),
		TEST(without_a_build_id),
		TEST(another_module_at_the_same_address_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
