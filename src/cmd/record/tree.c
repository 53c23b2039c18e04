/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/tree.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/ui/process_files.h"

struct child {
	pid_t process, parent;
	bool is_below;
};

struct children {
	VECTOR(struct child) list;
};

bool tree_add(struct tree *tree, pid_t process)
{
	const struct tree_process added = { process, process_start_ticks(process) };

	return vector_push(&tree->known, added);
}

static bool is_known(const struct tree *tree, pid_t process)
{
	for (size_t i = 0; i < tree->known.count; i++)
		if (tree->known.items[i].process == process &&
		    process_runs(process, tree->known.items[i].start_ticks))
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	const pid_t first = ((const struct child *)a)->process, second = ((const struct child *)b)->process;

	return (first > second) - (first < second);
}

static void read_all(struct children *all)
{
	DIR *processes = process_folder(0, NULL);

	for (pid_t process; (process = process_next(processes)) >= 0;) {
		const long long parent = process_number(process, 0, "status", "PPid", 10);

		if (parent >= 0)
			vector_push(&all->list, (struct child){ process, (pid_t)parent, false });
	}
	if (all->list.count)
		qsort(all->list.items, all->list.count, sizeof(struct child), compare);
}

static bool is_below(const struct tree *tree, const struct children *all, const struct child *child)
{
	const struct child key = { .process = child->parent };
	const struct child *parent =
		bsearch(&key, all->list.items, all->list.count, sizeof(struct child), compare);

	return parent && (parent->is_below || is_known(tree, parent->process));
}

/* Each turn finds one generation more, at least. */
static void mark_below(const struct tree *tree, struct children *all)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < all->list.count; i++) {
			struct child *child = &all->list.items[i];

			if (child->is_below || !is_below(tree, all, child))
				continue;
			child->is_below = more = true;
		}
	}
}

static bool has_sqlite(pid_t process)
{
	FILE *maps = process_file(process, 0, "maps");
	char *line = NULL;
	size_t size = 0;
	bool has = false;

	while (maps && !has && getline(&line, &size, maps) > 0) {
		const char *name = strrchr(line, '/');

		has = name && strstr(name, "sqlite");
	}
	free(line);
	if (maps)
		fclose(maps);
	return has;
}

void tree_search(struct tree *tree, void (*found)(void *context, pid_t process), void *context)
{
	struct children all = { .list = { 0 } };

	read_all(&all);
	mark_below(tree, &all);
	for (size_t i = 0; i < all.list.count; i++) {
		const pid_t process = all.list.items[i].process;

		if (!all.list.items[i].is_below || is_known(tree, process) || !has_sqlite(process) ||
		    !tree_add(tree, process))
			continue;
		found(context, process);
	}
	vector_free(&all.list);
}

bool tree_runs(const struct tree *tree)
{
	for (size_t i = 0; i < tree->known.count; i++)
		if (process_runs(tree->known.items[i].process, tree->known.items[i].start_ticks))
			return true;
	return false;
}

void tree_free(struct tree *tree)
{
	vector_free(&tree->known);
}
