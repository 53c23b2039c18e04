/* A program that no loader loads. */
int main(void)
{
	return 0;
}
