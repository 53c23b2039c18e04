/* Exceptions in flight through several frames, for the single-step test. */
namespace {

struct Guard {
	int *count;
	~Guard() { ++*count; }
};

__attribute__((noinline)) int throw_below(int depth, int *count)
{
	Guard guard{count};
	if (depth == 0)
		throw depth;
	return throw_below(depth - 1, count) + 1;
}

} // namespace

extern "C" int catch_exceptions(void);
extern "C" int catch_exceptions(void)
{
	int count = 0;
	for (int i = 0; i < 3; i++) {
		try {
			throw_below(3, &count);
		} catch (int) {
			count++;
		}
	}
	return count;
}
