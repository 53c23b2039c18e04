/* SPDX-License-Identifier: Apache-2.0 */
/* A static program, which no loader loads. */
int main(void)
{
	return 0;
}
