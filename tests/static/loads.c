/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loads HOW COUNT MODULE...: loads each module with RTLD_LOCAL, RTLD_GLOBAL or RTLD_DEEPBIND, or into a
 * namespace of its own ("new"; "found": by its name, with LD_LIBRARY_PATH), and lets it run COUNT statements.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef NAME /* the program exports its own SQLite, and runs statements, too */
int module_run(int count);
#endif

static void *load(const char *how, const char *path)
{
	if (!strcmp(how, "new"))
		return dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
	if (!strcmp(how, "found"))
		return dlmopen(LM_ID_NEWLM, strrchr(path, '/') + 1, RTLD_NOW);
	if (!strcmp(how, "deep"))
		return dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
	return dlopen(path, RTLD_NOW | (strcmp(how, "global") ? RTLD_LOCAL : RTLD_GLOBAL));
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 0;

#ifdef NAME
	printf("%d\n", module_run(count));
#endif
	for (int i = 3; i < argc; i++) {
		void *module = load(argv[1], argv[i]);
		int (*run)(int) = NULL;

		if (module)
			*(void **)&run = dlsym(module, "module_run");
		printf("%s\n", run ? "" : dlerror());
		printf("%d\n", run ? run(count) : -1);
	}
	return 0;
}
