/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the name and line of fixture_static in fixtures, for test_debuginfod.py.
 *
 *   asking_program [FIXTURE[=BUILD_ID] | forget | fork]...
 *
 * Prints one line for each question, and then the library that was loaded for the network. `forget` drops
 * the cache of names, and the memory of elfutils' client about bare.so. `fork` asks for bare.so on another
 * thread, and forks while that thread waits for the server. The child asks for something else; the line is
 * "fine" if it got an answer.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "modules/module_map.h"
#include "frames/address.h"
#include "base/lock.h"
#include "symbol/elf_image.h"
#include "symbol/symbol.h"

#ifndef SYS_poll
#define SYS_poll SYS_ppoll
#endif

static char path[4096], build_id[64];
static uint64_t static_function;

/* Every address is in the fixture in question. */
static const struct module *locate(const struct address_space *space, uint64_t address)
{
	static const struct module module = { .path = path, .build_id = build_id };
	(void)space;
	(void)address;
	return &module;
}

static const struct address_space space = { .locate = locate };

static uint64_t find_static_function(void)
{
	struct elf_image image;
	uint64_t found = 0;
	if (!elf_image_open(&image, FIXTURES "/full.so"))
		return 0;
	const Elf64_Shdr *section = elf_image_section_of_type(&image, SHT_SYMTAB);
	const Elf64_Sym *symbols = elf_image_read(&image, section->sh_offset, section->sh_size);
	const char *names = elf_image_read(&image, image.sections[section->sh_link].sh_offset,
	                                   image.sections[section->sh_link].sh_size);
	for (size_t i = 0; i < section->sh_size / sizeof(*symbols); i++)
		if (strcmp(names + symbols[i].st_name, "fixture_static") == 0)
			found = symbols[i].st_value;
	free((void *)symbols);
	free((void *)names);
	elf_image_close(&image);
	return found;
}

static void ask_for(const char *question)
{
	const char *equals = strchr(question, '=');
	int length = equals ? (int)(equals - question) : (int)strlen(question);
	snprintf(path, sizeof(path), FIXTURES "/%.*s", length, question);
	snprintf(build_id, sizeof(build_id), "%s", equals ? equals + 1 : "a1b2c3d4e5f60718");
	char *symbol = address_symbol(&space, static_function), *line = address_line(&space, static_function);
	const char *colon = line ? strrchr(line, ':') : NULL;
	printf("%s %s\n", symbol && !strstr(symbol, "+0x") ? symbol : "-", colon ? line : "-");
	free(symbol);
	free(line);
}

static _Atomic pid_t fetching_thread; /* 0: not yet */
static _Atomic bool is_fetched;

static void *fetch(void *object)
{
	fetching_thread = gettid();
	symbol_fetch(object);
	is_fetched = true;
	return NULL;
}

/* Whether the thread waits for the server, in poll(). Earlier, while it loads the client, a fork() may find
 * it in malloc(), and the sanitizers' allocators keep their locks taken in the child. */
static bool is_waiting(void)
{
	struct symbol_object full = { .path = FIXTURES "/full.so", .build_id = "a1b2c3d4e5f60718" };
	char name[64];
	long call = -1;
	snprintf(name, sizeof(name), "/proc/self/task/%d/syscall", fetching_thread);
	FILE *file = fopen(name, "re");
	if (file && fscanf(file, "%ld", &call) != 1) /* "running" */
		call = -1;
	if (file)
		fclose(file);
	return symbol_name(&full, static_function) && (call == SYS_poll || call == SYS_ppoll);
}

static void ask_and_fork(void)
{
	struct symbol_object bare = { .path = FIXTURES "/bare.so", .build_id = "a1b2c3d4e5f60718" };
	struct symbol_object full = { .path = FIXTURES "/full.so", .build_id = "a1b2c3d4e5f60718" };
	pthread_t thread;
	int status = -1;
	pthread_create(&thread, NULL, fetch, &bare);
	while (!is_waiting())
		if (is_fetched || sched_yield()) {
			pthread_join(thread, NULL);
			printf("not seen waiting\n");
			return;
		}
	fflush(stdout);
	locks_before_fork();
	pid_t child = fork();
	if (child == 0) {
		locks_after_fork_in_child();
		alarm(300);
		const char *file;
		int line;
		symbol_fetch(&bare); /* must not wait for the server */
		_exit(symbol_line(&full, static_function, &file, &line) ? 0 : 1);
	}
	locks_after_fork_in_parent();
	waitpid(child, &status, 0);
	pthread_join(thread, NULL);
	printf("%s\n", status == 0 ? "fine" : "stuck");
}

int main(int argc, char **argv)
{
	static_function = find_static_function();
	if (!static_function || !symbol_set_debug_path(FIXTURES "/nowhere"))
		return 1;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "forget") == 0) {
			char file[8192];
			symbol_forget();
			snprintf(file, sizeof(file), "%s/a1b2c3d4e5f60718/debuginfo",
			         getenv("DEBUGINFOD_CACHE_PATH"));
			unlink(file);
			printf("\n");
		} else if (strcmp(argv[i], "fork") == 0) {
			ask_and_fork();
		} else {
			/* The debug file of stripped.so is local. */
			symbol_set_debug_path(strncmp(argv[i], "stripped", 8) == 0 ? FIXTURES "/debug"
			                                                           : FIXTURES "/nowhere");
			ask_for(argv[i]);
		}
	}
	printf("%s\n", dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_NOLOAD) ? "libdebuginfod" : "nothing");
	return 0;
}
