/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the relocations of every loaded object and redirects those that name one of queryprof's
 * functions.
 *
 * The list of objects is copied under the loader's lock and processed without it, because resolving a
 * name takes the loader's other lock, and only the loader defines their order. While an object is
 * processed, a reference keeps it mapped.
 */
#include "hook/import.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/debug.h"
#include "base/loader.h"
#include "base/vector.h"
#include "modules/scan.h"

#if defined(__x86_64__)
#define RELOCATION_JUMP R_X86_64_JUMP_SLOT
#define RELOCATION_GOT R_X86_64_GLOB_DAT
#define RELOCATION_WORD R_X86_64_64
#elif defined(__aarch64__)
#define RELOCATION_JUMP R_AARCH64_JUMP_SLOT
#define RELOCATION_GOT R_AARCH64_GLOB_DAT
#define RELOCATION_WORD R_AARCH64_ABS64
#else
#error "queryprof supports x86-64 and aarch64"
#endif

struct object {
	uintptr_t bias;
	uintptr_t start, end;             /* the image in memory */
	uintptr_t relro_start, relro_end; /* read-only after relocation */
	const ElfW(Phdr) *segments;       /* the loader's, as long as the object is mapped */
	int segments_count;
	const ElfW(Dyn) *dynamic;
	char *name; /* "" is the program itself */
};

struct object_list {
	VECTOR(struct object) objects;
	size_t seen, skip; /* objects that the loader named; those at the beginning that are done */
	bool failed;
	uint64_t adds, subs;
};

/* The newest scan: the loader's counters, the number of objects, and its hooks. As long as no
 * object was unloaded, new ones follow those in the list, so a program with hundreds of modules
 * need not scan all of them for each. 0 objects: some slot of an object could not be decided. */
static uint64_t scanned_adds, scanned_subs;
static size_t scanned_count;
static uint64_t scanned_at_ns;

/* A slot that could not be decided may be bound at any later call. A scan takes milliseconds and
 * comes with each connection, so such slots do not trigger an earlier one. */
#define UNSURE_NS NS_PER_S
static int scanned_hooks;

#define SPARED_MAX 8

static bool is_sparing = true;
static struct spared {
	void **slot, *was;
	const struct import_hook *hook;
} spared[SPARED_MAX];
static int spared_count;

/* The first object after `object` that defines the symbol, and its address. NULL: there is none. */
static void *find_behind(const struct link_map *object, const char *symbol)
{
	while ((object = object->l_next)) {
		void *handle = loader_find(object->l_name, 0), *found;
		Dl_info location;

		if (!handle)
			continue;
		found = dlsym(handle, symbol);
		dlclose(handle);
		/* Not one that it needs only. */
		if (found && dladdr(found, &location) && (ElfW(Addr))location.dli_fbase == object->l_addr)
			return found;
	}
	return NULL;
}

/* Whether it is in a program that is mapped where it was linked to. */
static bool is_in_fixed_program(const void *address)
{
	const ElfW(Phdr) *segment = (const ElfW(Phdr) *)getauxval(AT_PHDR);

	for (unsigned long rest = getauxval(AT_PHNUM); segment && rest; rest--, segment++)
		if (segment->p_type == PT_LOAD && (uintptr_t)address - segment->p_vaddr < segment->p_memsz)
			return true;
	return false;
}

#if defined(__GLIBC__)
static const struct link_map *find_stub_program(void *found)
{
	const ElfW(Sym) *entry = NULL;
	struct link_map *program;
	Dl_info location;

	return dladdr1(found, &location, (void **)&entry, RTLD_DL_SYMENT) && entry &&
	                       entry->st_shndx == SHN_UNDEF &&
	                       dladdr1(found, &location, (void **)&program, RTLD_DL_LINKMAP)
	               ? program
	               : NULL;
}
#else
/* A program's own function counts as a stub, too: libraries that call it then call no function of libc's. */
static const struct link_map *find_stub_program(void *found)
{
	struct link_map *program;

	(void)found;
	return dlinfo(dlopen(NULL, RTLD_LAZY), RTLD_DI_LINKMAP, &program) ? NULL : program;
}
#endif

/* The function itself. A program that takes a function's address, and is not position independent,
 * has a stub for it, whose address represents the function in all the process. The stub uses a
 * slot of the program, which may lead to queryprof. */
static void *find_function(void *found, const char *symbol)
{
	const struct link_map *program = is_in_fixed_program(found) ? find_stub_program(found) : NULL;

	return program ? find_behind(program, symbol) : found;
}

struct import_hook import_hook_of(const char *symbol, void *real, void *replacement)
{
	void *found = find_function(dlsym(RTLD_DEFAULT, symbol), symbol);

	if (real)
		*(void **)real = found;
	return (struct import_hook){ .symbol = symbol, .real = found, .replacement = replacement };
}

/* False: it calls no library. */
static bool find_object(const struct dl_phdr_info *info, struct object *object)
{
	*object = (struct object){ .bias = info->dlpi_addr,
		                   .start = UINTPTR_MAX,
		                   .segments = info->dlpi_phdr,
		                   .segments_count = info->dlpi_phnum };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		switch (segment->p_type) {
		case PT_LOAD:
			if (start < object->start)
				object->start = start;
			if (start + segment->p_memsz > object->end)
				object->end = start + segment->p_memsz;
			break;
		case PT_DYNAMIC: object->dynamic = (const ElfW(Dyn) *)start; break;
		case PT_GNU_RELRO:
			object->relro_start = start;
			object->relro_end = start + segment->p_memsz;
			break;
		}
	}
	/* The vdso calls no library, and its table is not relocated. */
	return object->dynamic && !strstr(info->dlpi_name, "linux-vdso");
}

static int collect_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct object_list *list = context;
	struct object object;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
		list->adds = info->dlpi_adds;
		list->subs = info->dlpi_subs;
	}
	if (list->seen == 0 && list->subs != scanned_subs)
		list->skip = 0;
	if (list->seen++ < list->skip || !find_object(info, &object))
		return 0;
	object.name = strdup(info->dlpi_name ? info->dlpi_name : "");
	if (object.name && vector_push(&list->objects, object))
		return 0;
	free(object.name);
	list->failed = true;
	return 1;
}

bool import_stale(void)
{
	uint64_t adds, subs;

	scan_counters(&adds, &subs);
	if (adds != scanned_adds || subs != scanned_subs)
		return true;
	return !scanned_count && clock_ns(CLOCK_MONOTONIC_COARSE) - scanned_at_ns >= UNSURE_NS;
}

static bool object_holds(const struct object *object, const void *address)
{
	return (uintptr_t)address >= object->start && (uintptr_t)address < object->end;
}

/* A module may have slots among its code (DT_TEXTREL), which stay: code is patched by other means. */
static bool is_in_data(const struct object *object, void *const *slot)
{
	for (int i = 0; i < object->segments_count; i++) {
		const ElfW(Phdr) *segment = &object->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_W &&
		    (uintptr_t)slot - object->bias - segment->p_vaddr < segment->p_memsz)
			return true;
	}
	return false;
}

static bool write_slot(const struct object *object, void **slot, void *value)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)slot & ~(page - 1);
	/* The loader protects whole pages: up to the last one that RELRO fills. */
	bool read_only = (uintptr_t)slot >= (object->relro_start & ~(page - 1)) &&
	                 (uintptr_t)slot < (object->relro_end & ~(page - 1));

	if (read_only && mprotect((void *)start, page, PROT_READ | PROT_WRITE))
		return false;
	/* Other threads may be calling through the slot: one whole store. */
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	if (read_only)
		mprotect((void *)start, page, PROT_READ);
	return true;
}

struct slot_change {
	void **slot;
	const void *was;
	void *value;
	bool is_set;
};

/* Inside the look-up, as long as the loader keeps the object. */
static int set_slot(struct dl_phdr_info *info, size_t size, void *context)
{
	struct slot_change *change = context;
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct object object = { .bias = info->dlpi_addr };
	bool found = false;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && (uintptr_t)change->slot - start < segment->p_memsz) {
			/* In a program at a fixed address, tables of constants are there. */
			const bool is_constant = !(segment->p_flags & PF_W);

			if (segment->p_flags & PF_X)
				return 0;
			found = true;
			if (is_constant) {
				object.relro_start = start;
				object.relro_end = start + segment->p_memsz + page - 1;
				break;
			}
		}
		if (segment->p_type == PT_GNU_RELRO) {
			object.relro_start = start;
			object.relro_end = start + segment->p_memsz;
		}
	}
	if (found)
		change->is_set =
			*change->slot == change->value ||
			(*change->slot == change->was && write_slot(&object, change->slot, change->value));
	return found;
}

bool import_set(void **slot, const void *was, void *value)
{
	struct slot_change change = { .slot = slot, .was = was, .value = value };

	return loader_each(set_slot, &change) && change.is_set;
}

struct dynamic_tables {
	const ElfW(Rela) *relocations[2]; /* of the PLT, and all others */
	size_t sizes[2];                  /* in bytes */
	const ElfW(Sym) *symbols;
	const char *strings;
};

static struct dynamic_tables read_dynamic(const struct object *object)
{
	struct dynamic_tables tables = { 0 };

	for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		/* glibc has relocated these pointers; other loaders leave them relative. */
		uintptr_t at = entry->d_un.d_ptr;
		const void *pointer = (const void *)(at < object->start ? at + object->bias : at);

		switch (entry->d_tag) {
		case DT_JMPREL: tables.relocations[0] = pointer; break;
		case DT_PLTRELSZ: tables.sizes[0] = entry->d_un.d_val; break;
		case DT_RELA: tables.relocations[1] = pointer; break;
		case DT_RELASZ: tables.sizes[1] = entry->d_un.d_val; break;
		case DT_SYMTAB: tables.symbols = pointer; break;
		case DT_STRTAB: tables.strings = pointer; break;
		}
	}
	return tables;
}

/* A process has thousands of relocations and a hundred hooks: one bit excludes nearly all names. */
#define NAME_BITS 4096u /* a power of two */

struct names {
	uint64_t bits[NAME_BITS / 64];
};

static uint32_t name_bit(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash & (NAME_BITS - 1);
}

static void add_names(struct names *names, const struct import_table *table)
{
	for (int i = 0; i < table->count; i++) {
		uint32_t bit = name_bit(table->hooks[i].symbol);

		names->bits[bit / 64] |= 1ull << bit % 64;
	}
}

static bool is_hooked(const struct import_table *table, const struct names *names, const char *name)
{
	uint32_t bit = name_bit(name);

	if (!(names->bits[bit / 64] >> bit % 64 & 1))
		return false;
	for (int i = 0; i < table->count; i++)
		if (table->hooks[i].real && !strcmp(table->hooks[i].symbol, name))
			return true;
	return false;
}

/* The linker searches for a name first in the libraries with which the program was started and
 * those opened globally, then in the object's own dependencies; for some objects (RTLD_DEEPBIND)
 * in the opposite order. Only a slot of the object that is already bound, to one of two
 * candidates, shows the order. */
enum found_first { NOT_KNOWN, FOR_ALL, ITS_OWN };

struct scope {
	const struct object *object;
	struct dynamic_tables tables;
	void *handle, *program;
	const struct import_table *table;
	enum found_first first;
	bool is_inspected, is_unsure;
};

static enum found_first find_first(const struct scope *scope)
{
	const struct dynamic_tables *tables = &scope->tables;

	for (int t = 0; t < 2; t++) {
		size_t n = tables->relocations[t] ? tables->sizes[t] / sizeof(ElfW(Rela)) : 0;

		for (size_t i = 0; i < n; i++) {
			const ElfW(Rela) *relocation = &tables->relocations[t][i];
			const char *symbol =
				tables->strings + tables->symbols[ELF64_R_SYM(relocation->r_info)].st_name;
			void *for_all, *own, *target;

			if (strncmp(symbol, scope->table->family, strlen(scope->table->family)))
				continue;
			target = *(void **)(scope->object->bias + relocation->r_offset);
			for_all = dlsym(scope->program, symbol);
			own = dlsym(scope->handle, symbol);
			if (for_all && own && for_all != own && (target == for_all || target == own))
				return target == own ? ITS_OWN : FOR_ALL;
		}
	}
	return NOT_KNOWN;
}

/* The function that the linker would find for the object; NULL: undecided yet. */
static void *find_target(struct scope *scope, const char *symbol)
{
	void *for_all = find_function(dlsym(scope->program, symbol), symbol),
	     *own = find_function(dlsym(scope->handle, symbol), symbol);

	if (!for_all || !own || for_all == own)
		return own ? own : for_all;
	if (!scope->is_inspected)
		scope->first = find_first(scope);
	scope->is_inspected = true;
	scope->is_unsure |= scope->first == NOT_KNOWN;
	return scope->first == FOR_ALL ? for_all : scope->first == ITS_OWN ? own : NULL;
}

static bool is_of_family(const struct import_table *table, const struct object *object)
{
	for (int i = 0; i < table->count; i++)
		if (object_holds(object, table->hooks[i].real) &&
		    !strncmp(table->hooks[i].symbol, table->family, strlen(table->family)))
			return true;
	return false;
}

static struct import_hook *hook_of(const struct import_table *table, const struct object *object,
                                   const char *symbol, void *const *slot, const void *target)
{
	for (int i = 0; i < table->count; i++) {
		struct import_hook *hook = &table->hooks[i];

		if (hook->real && (target == hook->real || target == hook->replacement) &&
		    !strcmp(hook->symbol, symbol) &&
		    (!hook->only_in || object_holds(object, hook->only_in)) &&
		    ((const void *)slot < hook->keep_start || (const void *)slot >= hook->keep_end))
			return hook;
	}
	return NULL;
}

/* The hook of the function that calls through the slot reach, or will reach once it is bound: a
 * slot that the linker has not bound yet still points into its own object. */
static struct import_hook *find_hook(struct scope *scope, const char *symbol, void *const *slot)
{
	void *target = __atomic_load_n(slot, __ATOMIC_RELAXED);
	struct import_hook *hook = hook_of(scope->table, scope->object, symbol, slot, target);

	if (!hook && object_holds(scope->object, target) && (target = find_target(scope, symbol)))
		hook = hook_of(scope->table, scope->object, symbol, slot, target);
	return hook;
}

/* One without space remains unchanged. */
static void spare(void **slot, const struct import_hook *hook)
{
	for (int i = 0; i < spared_count; i++)
		if (spared[i].slot == slot)
			return;
	if (spared_count < SPARED_MAX)
		spared[spared_count++] = (struct spared){ slot, *slot, hook };
}

/* The linker may have bound it. If its object was unloaded, there is nothing, or other memory. */
static void patch_spared(const struct spared *one)
{
	bool is_patched = import_set(one->slot, one->was, one->hook->replacement) ||
	                  import_set(one->slot, one->hook->real, one->hook->replacement);

	debug_log(DEBUG_HOOKS, "%s, spared until now: %s", one->hook->symbol,
	          is_patched ? "patched" : "not patched, because it leads elsewhere or cannot be written");
}

void import_end_sparing(void)
{
	is_sparing = false;
	for (int i = 0; i < spared_count; i++)
		patch_spared(&spared[i]);
	spared_count = 0;
}

static void patch_slot(struct scope *scope, const char *symbol, void **slot)
{
	const struct object *object = scope->object;
	const char *name = *object->name ? object->name : "the program";
	struct import_hook *hook = find_hook(scope, symbol, slot);

	if (!hook || !is_in_data(object, slot)) {
		debug_log(DEBUG_HOOKS, "%s of %s: not patched, %s", symbol, name,
		          scope->is_unsure ? "its library is not yet known"
		                           : "it leads to another function of this name, or must not change");
		return;
	}
	if (is_sparing && hook->spares_family && is_of_family(scope->table, object)) {
		debug_log(DEBUG_HOOKS, "%s of %s: not patched yet", symbol, name);
		spare(slot, hook);
		return;
	}
	if (*slot != hook->replacement) {
		if (!write_slot(object, slot, hook->replacement)) {
			debug_log(DEBUG_HOOKS, "%s of %s: not patched, mprotect: %s", symbol, name,
			          strerror(errno));
			return;
		}
		debug_log(DEBUG_HOOKS, "%s of %s: patched", symbol, name);
	}
	if (object_holds(object, hook->real))
		hook->in_library++;
	else
		hook->elsewhere++;
}

/* False when it has slots that cannot be decided yet. */
static bool patch_object(const struct object *object, void *handle, void *program,
                         const struct import_table *table, const struct names *names)
{
	const struct dynamic_tables tables = read_dynamic(object);
	struct scope scope = {
		.object = object, .tables = tables, .handle = handle, .program = program, .table = table
	};

	if (!tables.symbols || !tables.strings)
		return true;
	for (int t = 0; t < 2; t++) {
		size_t n = tables.relocations[t] ? tables.sizes[t] / sizeof(ElfW(Rela)) : 0;

		for (size_t i = 0; i < n; i++) {
			const ElfW(Rela) *relocation = &tables.relocations[t][i];
			unsigned type = ELF64_R_TYPE(relocation->r_info);
			const char *symbol;

			if (type != RELOCATION_JUMP && type != RELOCATION_GOT && type != RELOCATION_WORD)
				continue;
			symbol = tables.strings + tables.symbols[ELF64_R_SYM(relocation->r_info)].st_name;
			if (is_hooked(table, names, symbol))
				patch_slot(&scope, symbol, (void **)(object->bias + relocation->r_offset));
		}
	}
	return !scope.is_unsure;
}

/* The loader's lock guards it, which ThreadSanitizer does not know. */
__attribute__((no_sanitize("thread"))) static uintptr_t bias_of(const struct link_map *map)
{
	return map->l_addr;
}

/* A reference to the object, NULL when it has gone or another of its name has
 * come, or when it is ourselves: our own calls must reach the real functions. */
static void *hold_object(const struct object *object)
{
	struct link_map *map;
	void *handle;

	if (object_holds(object, (const void *)import_patch))
		return NULL;
	handle = loader_find(object->name, 0);
	if (!handle)
		return NULL;
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || bias_of(map) != object->bias) {
		dlclose(handle);
		return NULL;
	}
	return handle;
}

static void patch_listed(const struct object_list *list, const struct import_table *table)
{
	void *program = dlopen(NULL, RTLD_LAZY);
	struct names names = { { 0 } };
	bool all = true;

	add_names(&names, table);
	for (int i = 0; !list->skip && i < table->count; i++)
		table->hooks[i].in_library = table->hooks[i].elsewhere = 0;
	for (size_t i = 0; i < list->objects.count; i++) {
		const struct object *object = &list->objects.items[i];
		void *handle = hold_object(object);

		if (handle) {
			all &= patch_object(object, handle, program, table, &names);
			dlclose(handle);
		}
	}
	if (program)
		dlclose(program);
	if (!list->failed) {
		scanned_adds = list->adds;
		scanned_subs = list->subs;
		scanned_count = all ? list->seen : 0;
		scanned_at_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
		scanned_hooks = table->count;
	}
}

bool import_patch(const struct import_table *table, uint64_t loader_ns)
{
	struct object_list list = { .skip = table->count == scanned_hooks ? scanned_count : 0 };
	bool has_loader;

	loader_each(collect_object, &list);
	has_loader = loader_acquire(loader_ns);
	if (has_loader) {
		patch_listed(&list, table);
		loader_release();
	}
	for (size_t i = 0; i < list.objects.count; i++)
		free((char *)list.objects.items[i].name);
	vector_free(&list.objects);
	return has_loader;
}

static void restore_slot(const struct object *object, void **slot, const struct import_table *table)
{
	const void *now = __atomic_load_n(slot, __ATOMIC_RELAXED);

	for (int i = 0; i < table->count; i++)
		if (table->hooks[i].real && now == table->hooks[i].replacement) {
			write_slot(object, slot, table->hooks[i].real);
			return;
		}
}

/* Inside of the loader's look, so the object stays mapped. */
static int restore_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct object object;
	struct dynamic_tables tables;

	(void)size;
	if (!find_object(info, &object) || object_holds(&object, (const void *)import_patch))
		return 0;
	tables = read_dynamic(&object);
	for (int t = 0; t < 2; t++) {
		size_t n = tables.relocations[t] ? tables.sizes[t] / sizeof(ElfW(Rela)) : 0;

		for (size_t i = 0; i < n; i++) {
			void **slot = (void **)(object.bias + tables.relocations[t][i].r_offset);

			if (is_in_data(&object, slot))
				restore_slot(&object, slot, context);
		}
	}
	return 0;
}

void import_restore(const struct import_table *table)
{
	loader_each(restore_object, (void *)table);
	/* The next scan is one of all objects. */
	scanned_count = 0;
	scanned_adds = UINT64_MAX;
	spared_count = 0;
}
