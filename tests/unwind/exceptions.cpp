/* SPDX-License-Identifier: Apache-2.0 */
/* Exceptions that pass through several frames, for the single-step test: caught, in destructors, rethrown,
 * and forced unwinding, as at the end of a thread. */
#include <csetjmp>
#include <cstring>
#include <unwind.h>

namespace
{

struct Guard {
	int *count;
	~Guard()
	{
		++*count;
	}
};

__attribute__((noinline)) int throw_below(int depth, int *count)
{
	Guard guard{ count };
	if (depth == 0)
		throw depth;
	return throw_below(depth - 1, count) + 1;
}

/* Its frame is found by rbp. */
__attribute__((noinline)) int catch_in_frame(int size, int *count)
{
	Guard guard{ count };
	char *room = static_cast<char *>(__builtin_alloca(static_cast<unsigned>(size)));
	std::memset(room, size, static_cast<unsigned>(size));
	try {
		return throw_below(1, count) + room[1];
	} catch (int) {
		if (room[0] == 0)
			return 1;
		throw; /* _Unwind_Resume_or_Rethrow */
	}
}

std::jmp_buf *way_out;

/* Called before each frame. */
_Unwind_Reason_Code stop_at_end(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception *,
                                _Unwind_Context *context, void *end)
{
	if (_Unwind_GetCFA(context) > reinterpret_cast<_Unwind_Word>(end))
		std::longjmp(*way_out, 1);
	return _URC_NO_REASON;
}

__attribute__((noinline)) int force_below(int depth, int *count, _Unwind_Exception *exception)
{
	Guard guard{ count };
	if (depth > 0)
		return force_below(depth - 1, count, exception) + 1;
	return _Unwind_ForcedUnwind(exception, stop_at_end, exception);
}

} // namespace

extern "C" int catch_exceptions(void);
extern "C" int catch_exceptions(void)
{
	int count = 0;
	try {
		catch_in_frame(100, &count);
	} catch (int) {
		count++;
	}
	static volatile int landed;
	_Unwind_Exception exception = {};
	landed = 0;
	/* On the stack, because the last steps of longjmp do not read other memory. */
	std::jmp_buf here;
	way_out = &here;
	if (setjmp(here) == 0)
		force_below(2, &count, &exception);
	else
		landed++;
	return count + landed;
}
