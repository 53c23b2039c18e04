/* SPDX-License-Identifier: Apache-2.0 */
// A name that the compiler mangled itself.
namespace fixture
{

struct Thing {
	int walk(const char *text, int count);
};

int Thing::walk(const char *text, int count)
{
	return text[count];
}

} // namespace fixture
