/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of many forms. Its object has frame pointers and no unwind information.
 */
#include <alloca.h>
#include <stdarg.h>
#include <stddef.h>

static volatile int sink;
static int (*volatile indirect)(int);

__attribute__((noinline)) static int leaf(int n)
{
	return n * 3 + sink;
}

__attribute__((noinline)) static unsigned leaf_with_ways(const unsigned char *at)
{
	unsigned value = at[0];

	if (value < 0x80)
		return value;
	value = (value & 0x7f) << 7 | (at[1] & 0x7f);
	if (at[1] < 0x80)
		return value;
	for (int i = 2; i < 9; i++) {
		value = value << 7 | (at[i] & 0x7f);
		if (at[i] < 0x80)
			return value;
	}
	return ~value;
}

__attribute__((noinline)) static int late_frame(int n, const int *more)
{
	if (!more) /* usually returns here, without a frame */
		return n + 1;
	sink += leaf(n);
	return leaf(sink) + *more;
}

__attribute__((noinline)) static int recurse(int n)
{
	return n == 0 ? leaf(sink) : recurse(n - 1) + leaf(n);
}

__attribute__((noinline)) static int tail(int n)
{
	sink += n;
	return n > 3 ? indirect(n - 1) : leaf(n);
}

__attribute__((noinline)) static int with_table(int n)
{
	switch (n) {
	case 0: return leaf(n) + 7;
	case 1: sink = n; return 3;
	case 2: return recurse(2);
	case 3: sink++; break;
	case 4: return tail(n);
	case 5: return late_frame(n, NULL);
	case 6: return late_frame(n, &n);
	case 7: return n << sink % 3;
	default: return -1;
	}
	return sink;
}

__attribute__((noinline)) static int with_room(int n)
{
	char *room = alloca((size_t)n * 40 + 8);

	room[n] = (char)n;
	sink += room[n];
	return n == 0 ? 0 : with_room(n - 1) + leaf(room[n]);
}

__attribute__((noinline)) static int aligned(int n)
{
	_Alignas(64) volatile char room[128];

	room[n & 127] = (char)n;
	return n == 0 ? room[0] : aligned(n - 1) + room[n & 127];
}

__attribute__((noinline)) static int many(int a, int b, int c, int d, int e, int f, int g, int h, double i)
{
	return a + b + c + d + e + f + g + h + (int)i + leaf(h);
}

__attribute__((noinline)) static int various(int count, ...)
{
	va_list list;
	int sum = 0;

	va_start(list, count);
	for (int i = 0; i < count; i++)
		sum += i & 1 ? (int)va_arg(list, double) : va_arg(list, int);
	va_end(list);
	return sum + leaf(sum);
}

struct large {
	int values[30];
};

__attribute__((noinline)) static struct large by_value(struct large value, int n)
{
	value.values[n % 30] += leaf(n);
	return value;
}

__attribute__((noinline)) static void checked(int n)
{
	if (__builtin_expect(n < 0, 0))
		__builtin_trap();
	sink += n;
}

__attribute__((visibility("default"))) void tableless_work(int rounds);

void tableless_work(int rounds)
{
	static const unsigned char numbers[][10] = { { 5 },
		                                     { 0x85, 3 },
		                                     { 0x85, 0x83, 0x90, 4 },
		                                     { 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 } };
	struct large large = { { 0 } };

	indirect = tail;
	for (int i = 0; i < rounds; i++) {
		sink += (int)leaf_with_ways(numbers[i % 4]) + with_table(i % 9) + recurse(i % 5) +
		        with_room(i % 4);
		sink += aligned(i % 3) + many(i, 2, 3, 4, 5, 6, 7, 8, i / 2.0) + various(4, 1, 2.0, i, 4.0);
		large = by_value(large, i);
		checked(i);
	}
}

/* Keeps no frame pointer. rbp is 0. */
__asm__(".text\n"
        ".globl tableless_without_frame\n"
        ".type tableless_without_frame, @function\n"
        "tableless_without_frame:\n\t"
        "push %rbp\n\t"
        "xor %ebp, %ebp\n\t"
        "call *%rdi\n\t"
        "pop %rbp\n\t"
        "ret");
