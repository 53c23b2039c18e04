/* SPDX-License-Identifier: Apache-2.0 */
// Names that the compiler mangled, of functions that have no code of their own.
#include "inlined.h"

namespace fixture
{

struct Box {
	template <class T> void open(T content, inlined_visitor visit);
};

static const int open_line = __LINE__ + 3;
template <class T> inline __attribute__((always_inline)) void Box::open(T content, inlined_visitor visit)
{
	visit(INLINED_METHOD);
	inlined_sink = inlined_sink + static_cast<int>(content);
}

static const int unpack_line = __LINE__ + 4;
__attribute__((noinline)) void unpack(inlined_visitor visit)
{
	Box box;
	box.open(5L, visit);
	inlined_sink = inlined_sink + 1;
}

} // namespace fixture

const struct inlined_expected inlined_method[] = {
	{ "void fixture::Box::open<long>(long, void (*)(inlined_place))", "inlined_three.cpp",
	  fixture::open_line },
	{ "fixture::unpack(void (*)(inlined_place))", "inlined_three.cpp", fixture::unpack_line },
	{ nullptr, nullptr, 0 },
};

void inlined_run_method(inlined_visitor visit)
{
	fixture::unpack(visit);
	inlined_sink = inlined_sink + 1;
}
