/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/live/foreign_space.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/attach/symbols.h"
#include "cmd/ui/process_files.h"
#include "symbol/elf_image.h"
#include "symbol/perf_map.h"

static const struct module *locate(const struct address_space *space, uint64_t address)
{
	return module_map_find(&((const struct foreign_space *)space)->map, address);
}

static char *name_generated(const struct address_space *space, uint64_t address)
{
	const struct foreign_space *foreign = (const struct foreign_space *)space;

	return perf_map_name(foreign->process, foreign->start_ns, address);
}

/* Its path here, if that is the same file, which is where its debug files are found; else through /proc. */
static const char *path_here(const struct target *target, const struct target_object *object,
                             char inside[PATH_MAX])
{
	struct stat here, there;

	snprintf(inside, PATH_MAX, "/proc/%d/root%s", (int)target->process, object->path);
	return stat(inside, &there) == 0 && stat(object->path, &here) == 0 && here.st_dev == there.st_dev &&
	                       here.st_ino == there.st_ino
	               ? object->path
	               : inside;
}

/* False: out of memory. A file that is not an ELF object has no code with names. */
static bool add(struct foreign_space *foreign, const struct target *target,
                const struct target_object *object)
{
	struct module *module;
	struct elf_image image;
	char inside[PATH_MAX], build_id[BUILD_ID_TEXT] = "";
	const char *path = path_here(target, object, inside);
	struct module found = {
		.start = object->start, .end = object->end, .path = path, .died = UINT32_MAX
	};

	if (!symbols_find_bias(&(struct object_memory){ .process = target->process }, object->base,
	                       &found.bias))
		return true;
	if (elf_image_open(&image, path)) {
		elf_image_build_id(&image, build_id);
		found.file_size = image.size;
		found.mtime_ns = image.mtime_ns;
		elf_image_close(&image);
	}
	found.build_id = build_id;
	module = module_copy(&found);
	if (module && module_map_add(&foreign->map, module))
		return true;
	free(module);
	return false;
}

static int64_t start_time(pid_t process)
{
	const uint64_t up = process_start_ticks(process) * NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);

	return (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) + up);
}

bool foreign_space_open(struct foreign_space *foreign, const struct target *target)
{
	bool done = true;

	*foreign = (struct foreign_space){ .space = { .locate = locate, .name_generated = name_generated },
		                           .process = target->process,
		                           .start_ns = start_time(target->process) };
	for (size_t i = 0; done && i < target->objects.count; i++)
		done = add(foreign, target, &target->objects.items[i]);
	return done;
}

void foreign_space_close(struct foreign_space *foreign)
{
	for (size_t i = 0; i < foreign->map.count; i++)
		free((void *)foreign->map.items[i]);
	module_map_free(&foreign->map);
}
