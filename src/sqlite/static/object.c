/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/static/object.h"

static void add_range(struct static_range ranges[STATIC_RANGES_MAX], unsigned *count, uintptr_t start,
                      uintptr_t end)
{
	start = (start + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
	end &= ~(sizeof(uintptr_t) - 1);
	if (start < end && *count < STATIC_RANGES_MAX)
		ranges[(*count)++] = (struct static_range){ start, end };
}

static void add_segment(struct static_object *object, const ElfW(Phdr) *segment,
                        const struct static_range *relro)
{
	uintptr_t start = object->bias + segment->p_vaddr, end = start + segment->p_filesz;

	if (start < object->image.start)
		object->image.start = start;
	if (start + segment->p_memsz > object->image.end)
		object->image.end = start + segment->p_memsz;
	if (segment->p_flags & PF_R)
		add_range(object->loaded, &object->loaded_count, start, end);
	if ((segment->p_flags & PF_X) && end - start > object->code.end - object->code.start)
		object->code = (struct static_range){ start, end };
	if (!(segment->p_flags & PF_W)) {
		if (object->is_fixed && (segment->p_flags & PF_R))
			add_range(object->constants, &object->constants_count, start, end);
		return;
	}
	/* The loader may have split the segment: RELRO is its beginning. */
	add_range(object->data, &object->data_count,
	          relro->end > start && relro->start <= start ? relro->end : start, end);
	if (!relro->end)
		add_range(object->constants, &object->constants_count, start, end);
}

void static_object_read(struct static_object *object, const struct dl_phdr_info *info)
{
	struct static_range relro = { 0, 0 };

	*object = (struct static_object){ .bias = info->dlpi_addr, .is_fixed = !info->dlpi_addr };
	object->image.start = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
			relro.start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			relro.end = relro.start + info->dlpi_phdr[i].p_memsz;
			add_range(object->constants, &object->constants_count, relro.start, relro.end);
		}
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_filesz)
			add_segment(object, &info->dlpi_phdr[i], &relro);
}

bool static_is_loaded(const struct static_object *object, uintptr_t address, size_t size)
{
	for (unsigned i = 0; i < object->loaded_count; i++)
		if (static_is_in(&object->loaded[i], address) && object->loaded[i].end - address >= size)
			return true;
	return false;
}
