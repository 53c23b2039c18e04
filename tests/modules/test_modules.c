/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules of the process during dlopen() and dlclose(), while other threads read them, and after a file
 * was removed.
 *
 * Usage: test_modules PLUGIN
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/thread_stack.h"
#include "base/code_map.h"
#include "handler/unwind/unwind.h"
#include "base/lock.h"
#include "modules/made_code.h"
#include "modules/modules.h"
#include "modules/publish.h"
#include "timers/quiesce.h"

static char plugin[4096]; /* absolute path */
static bool handlers_have_left = true;

bool sampler_quiesce(void)
{
	return handlers_have_left;
}

static uint64_t load_plugin(void **library, const char *path)
{
	*library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (*library == NULL)
		print_message("%s\n", dlerror());
	assert_non_null(*library);
	return (uintptr_t)dlsym(*library, "plugin_answer");
}

static void test_own_modules(void **state)
{
	const uint32_t now = modules_generation();
	const struct module *self = modules_find((uintptr_t)&test_own_modules, now);
	const struct module *libc = modules_find((uintptr_t)&strlen, now);
	const struct module *vdso = modules_find(getauxval(AT_SYSINFO_EHDR) + 0x500, now);
	char exe[4096] = { 0 };
	struct stat file;

	(void)state;
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_non_null(self);
	assert_string_equal(self->path, exe);
	assert_int_equal(stat(exe, &file), 0);
	assert_int_equal(self->file_size, file.st_size);
	assert_true(self->born == 1 && self->died == UINT32_MAX);

	assert_non_null(libc);
	assert_int_equal(libc->path[0], '/');
	assert_int_equal(strlen(libc->build_id), 40);
	assert_int_equal(strspn(libc->build_id, "0123456789abcdef"), 40);

	assert_non_null(vdso);
	assert_string_equal(vdso->path, "[vdso]");
	assert_int_equal(vdso->file_size, 0);

	assert_null(modules_find(16, now));
	assert_null(modules_find((uintptr_t)&self, now)); /* an address of the stack */
	assert_null(modules_find((uintptr_t)&strlen, 0));
}

/* The code map contains every executable mapping of a file, and nothing else. */
static void test_code_map(void **state)
{
	const struct code_map *map = code_map_current();
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4400], rights[8], path[4200];
	unsigned long start, end;
	int executable = 0;

	(void)state;
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		path[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %4199s", &start, &end, rights, path) < 3 ||
		    rights[2] != 'x' || (path[0] != '/' && strcmp(path, "[vdso]") != 0))
			continue;
		executable++;
		const struct code_range *range = code_map_find(map, start + 0x100);
		if (range == NULL)
			print_message("not in the map: %s", line);
		assert_non_null(range);
		assert_true(range->start >= start && range->end <= end);
		assert_true(range->eh_frame_hdr == 0 || (range->eh_frame_hdr >= range->cfi_start &&
		                                         range->eh_frame_hdr_end <= range->cfi_end));
	}
	fclose(maps);
	assert_true(executable >= 4);
	assert_int_equal(map->count, executable);
	for (uint32_t i = 1; i < map->count; i++)
		assert_true(map->ranges[i - 1].end <= map->ranges[i].start);
	assert_null(code_map_find(map, 16));
	assert_int_equal(map->generation, modules_generation());
	assert_non_null(map->rules);
}

static void test_load_and_unload(void **state)
{
	void *library;

	(void)state;
	modules_refresh(true);
	const uint32_t before = modules_generation();
	assert_false(modules_refresh(false));
	assert_false(modules_refresh(true));
	assert_int_equal(modules_generation(), before);
	const uint64_t *rules = code_map_current()->rules;

	const uint64_t address = load_plugin(&library, plugin);
	assert_true(modules_refresh(false));
	const uint32_t loaded = modules_generation();
	assert_int_equal(loaded, before + 1);
	const struct module *module = modules_find(address, loaded);
	assert_non_null(module);
	assert_string_equal(module->path, plugin);
	assert_int_equal(module->born, loaded);
	assert_null(modules_find(address, before));
	/* A new module does not change the known rules. */
	assert_ptr_equal(code_map_current()->rules, rules);
	const uint32_t epoch = code_map_current()->epoch;

	dlclose(library);
	assert_true(modules_refresh(false));
	const uint32_t unloaded = modules_generation();
	assert_int_equal(unloaded, loaded + 1);
	assert_int_equal(module->died, unloaded);
	assert_null(modules_find(address, unloaded));
	/* An earlier sample is still resolved by the modules of its time. */
	assert_ptr_equal(modules_find(address, loaded), module);
	assert_int_equal(code_map_current()->epoch, unloaded);
	assert_true(epoch < unloaded);
}

/* A handler that does not return, for example because a debugger has stopped its thread, can continue with
 * its map. */
static void test_slow_handler(void **state)
{
	unsigned char is_resident;
	void *library;

	(void)state;
	load_plugin(&library, plugin);
	modules_refresh(false);
	struct code_map *map = (struct code_map *)(uintptr_t)code_map_current();
	uint64_t *const rules = map->rules;
	handlers_have_left = false;
	dlclose(library);
	assert_true(modules_refresh(false));
	assert_ptr_not_equal(code_map_current()->rules, rules);
	assert_int_equal(mincore(rules, 1, &is_resident), 0); /* still mapped */
	assert_ptr_equal(map->rules, rules);
	assert_false(publish_wait());
	handlers_have_left = true;
	assert_true(publish_wait());
	munmap(rules, unwind_cache_bytes);
	free(map);
}

/* A reader may stay longer than the wait for it. After it leaves, the next wait succeeds. */
static void test_slow_reader(void **state)
{
	const unsigned side = publish_enter_reader();

	(void)state;
	assert_false(publish_wait());
	assert_false(publish_wait());
	publish_leave_reader(side);
	assert_true(publish_wait());
}

/* The module was unloaded and reloaded at the same place between two refreshes, so its rules may have
 * changed. */
static void test_quick_replacement(void **state)
{
	void *library;

	(void)state;
	const uint64_t first = load_plugin(&library, plugin);
	modules_refresh(false);
	const uint32_t epoch = code_map_current()->epoch;
	dlclose(library);
	const uint64_t second = load_plugin(&library, plugin);
	assert_true(modules_refresh(false));
	assert_true(code_map_current()->epoch > epoch);
	print_message("loaded at %#llx, then at %#llx\n", (unsigned long long)first,
	              (unsigned long long)second);
	assert_non_null(modules_find(second, modules_generation()));
	dlclose(library);
	modules_refresh(false);
}

static void copy_file(const char *from, const char *to)
{
	char command[9000];

	snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
	assert_int_equal(system(command), 0);
}

static void test_relative_and_deleted(void **state)
{
	char folder[] = "/tmp/queryprof-modules-XXXXXX", old[4096], path[4200];
	void *library;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_non_null(getcwd(old, sizeof(old)));
	snprintf(path, sizeof(path), "%s/copy of a plugin.so", folder);
	copy_file(plugin, path);
	assert_int_equal(chdir(folder), 0);
	const uint64_t address = load_plugin(&library, "./copy of a plugin.so");
	assert_int_equal(chdir(old), 0);
	assert_true(modules_refresh(false));
	const struct module *module = modules_find(address, modules_generation());
	assert_non_null(module);
	assert_string_equal(module->path, path);
	assert_true(module->file_size > 0);
	dlclose(library);
	modules_refresh(false);

	copy_file(plugin, path);
	const uint64_t again = load_plugin(&library, path);
	assert_int_equal(unlink(path), 0);
	assert_true(modules_refresh(false));
	module = modules_find(again, modules_generation());
	assert_non_null(module);
	assert_string_equal(module->path, path);
	assert_int_equal(module->file_size, 0);
	dlclose(library);
	assert_int_equal(rmdir(folder), 0);
	modules_refresh(false);
}

static bool stop;
static volatile uint64_t traces, cut_traces;

/* Not static, so that the callback is not inlined away. */
int trace_here(void);
static struct unwind_stack stack;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	uint64_t trace[64];
	const unsigned side = publish_enter_reader();
	struct unwind_result result = unwind_addresses(context, &stack, NULL, trace, 64);

	publish_leave_reader(side);
	(void)signal;
	(void)info;
	traces++;
	cut_traces += result.truncated;
#if defined(__aarch64__)
	((ucontext_t *)context)->uc_mcontext.pc += 4; /* skips the instruction */
#endif
}

int trace_here(void)
{
#if defined(__x86_64__)
	__asm__ volatile("int3" : : : "memory");
#elif defined(__aarch64__)
	__asm__ volatile("brk #0" : : : "memory");
#endif
	return 1;
}

/* ThreadSanitizer does not know the dynamic linker's lock. If one thread allocates memory under it and
 * another frees that memory, it reports a race. This happened in every third run of test_together. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:^_dl_close_worker$\n";
}

static void *load_for_ever(void *argument)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
		modules_refresh(false);
		if (library)
			dlclose(library);
		modules_refresh(false);
	}
	return argument;
}

static void *look_for_ever(void *argument)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		const uint32_t now = modules_generation();
		if (modules_find((uintptr_t)&strlen, now) == NULL)
			abort();
		modules_refresh(true);
	}
	return argument;
}

/* Traces through a library that the map does not contain yet are whole as well, if the C library has
 * _dl_find_object(). */
static void test_newer_than_the_map(void **state)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	void *library;

	(void)state;
	sigaction(SIGTRAP, &action, NULL);
	stack = thread_stack();

	modules_refresh(false);
	int (*answer)(int (*)(void)) = (int (*)(int (*)(void)))load_plugin(&library, plugin);
	traces = cut_traces = 0;
	assert_int_equal(answer(trace_here), 2);
	assert_int_equal(answer(trace_here), 2);
	assert_int_equal(traces, 2);
	if (dlsym(RTLD_DEFAULT, "_dl_find_object"))
		assert_int_equal(cut_traces, 0);
	else
		assert_int_equal(cut_traces, 2);
	/* The unwinder has cached nothing of the library, because it may be unloaded before the map contains
	 * it. */
	dlclose(library);
	modules_refresh(false);
	answer = (int (*)(int (*)(void)))load_plugin(&library, plugin);
	modules_refresh(false);
	traces = cut_traces = 0;
	assert_int_equal(answer(trace_here), 2);
	assert_int_equal(cut_traces, 0);
	dlclose(library);
	modules_refresh(false);
}

static void test_together(void **state)
{
	pthread_t threads[4];
	struct timespec begin, now;

	(void)state;
	__atomic_store_n(&stop, false, __ATOMIC_RELAXED);
	const uint32_t before = modules_generation();
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, i < 2 ? load_for_ever : look_for_ever, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do { /* until enough libraries were loaded, even on a slow machine */
		traces = cut_traces = 0;
		for (int i = 0; i < 100; i++)
			trace_here();
		assert_int_equal(traces, 100);
		assert_int_equal(cut_traces, 0);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (modules_generation() - before < 300 && now.tv_sec - begin.tv_sec < 300);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	modules_refresh(false);
	print_message("%u generations\n", modules_generation() - before);
	assert_true(modules_generation() - before >= 300);
	assert_non_null(modules_find((uintptr_t)&strlen, modules_generation()));
}

/* --- code that queryprof creates while another thread scans --------------------------------------- */

static __thread bool is_slow;
static bool is_scanning, may_go_on;

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

/* The scan opens the kernel's list after it has seen all objects. */
FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (is_slow) {
		__atomic_store_n(&is_scanning, true, __ATOMIC_RELEASE);
		while (!__atomic_load_n(&may_go_on, __ATOMIC_ACQUIRE))
			usleep(1000);
	}
	return __real_fopen(path, mode);
}

static void *scan_slowly(void *argument)
{
	is_slow = true;
	modules_refresh(true);
	return argument;
}

static void test_made_code(void **state)
{
	const uintptr_t code = (uintptr_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, scan_slowly, NULL), 0);
	while (!__atomic_load_n(&is_scanning, __ATOMIC_ACQUIRE))
		usleep(1000);
	assert_true(made_code_add(&(struct made_code){ code, code + 1024, code + 1024, code + 4096 }));
	assert_true(modules_refresh(true));
	assert_non_null(modules_find(code, modules_generation()));
	__atomic_store_n(&may_go_on, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_non_null(modules_find(code, modules_generation()));
	assert_non_null(code_map_find(code_map_current(), code));
}

static bool count_modules(void *context, const struct module *module)
{
	int *count = context;

	assert_true(module->died == UINT32_MAX);
	return ++*count < 3;
}

static void test_each(void **state)
{
	int count = 0;

	(void)state;
	modules_each(count_modules, &count);
	assert_int_equal(count, 3); /* stops when the callback returns false */
}

static void test_fork(void **state)
{
	int status;

	(void)state;
	locks_before_fork();
	const pid_t child = fork();
	locks_after_fork_in_parent();
	if (child == 0) {
		modules_refresh(true);
		_exit(modules_find((uintptr_t)&strlen, modules_generation()) ? 7 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	modules_refresh(true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_modules),
		cmocka_unit_test(test_code_map),
		cmocka_unit_test(test_load_and_unload),
		cmocka_unit_test(test_slow_handler),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_quick_replacement),
		cmocka_unit_test(test_relative_and_deleted),
		cmocka_unit_test(test_newer_than_the_map),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_made_code),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_fork),
	};

	if (argc != 2 || realpath(argv[1], plugin) == NULL) {
		fprintf(stderr, "usage: %s PLUGIN\n", argv[0]);
		return 2;
	}
	if (modules_init() != 0)
		return 1;
	return cmocka_run_group_tests_name("modules", tests, NULL, NULL);
}
