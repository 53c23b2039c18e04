/* SPDX-License-Identifier: Apache-2.0 */
/* A program that no loader loads. */
int main(void)
{
	return 0;
}
