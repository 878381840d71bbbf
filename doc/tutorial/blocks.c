/*
 * Does a changed rijndael.c of ccrypt encrypt as the original, for all sizes of keys and blocks?
 *
 *	cc -DHAVE_CONFIG_H -Iccrypt.before -Iccrypt.before/src blocks.c \
 *		ccrypt.after/src/rijndael.c ccrypt.after/src/tables.c -o blocks && ./blocks
 */
#define xrijndaelEncrypt  original_encrypt
#define xrijndaelDecrypt  original_decrypt
#define xrijndaelKeySched original_key_schedule
#include "rijndael.c"
#undef xrijndaelEncrypt

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void xrijndaelEncrypt(xword32 block[], roundkey *rkk);

static void fill(xword32 words[8])
{
	for (int i = 0; i < 8; i++)
		words[i] = (xword32)random() << 16 ^ (xword32)random();
}

static int same(int key_bits, int block_bits)
{
	xword32 key[8], a[8], b[8];
	roundkey schedule;

	fill(key);
	fill(a);
	memcpy(b, a, sizeof b);
	if (original_key_schedule(key, key_bits, block_bits, &schedule))
		return 0;
	original_encrypt(a, &schedule);
	xrijndaelEncrypt(b, &schedule);
	return !memcmp(a, b, (size_t)block_bits / 8);
}

int main(void)
{
	int blocks = 0;

	for (int i = 0; i < 30000; i++)
		for (int key = 128; key <= 256; key += 64)
			for (int block = 128; block <= 256; block += 64, blocks++)
				if (!same(key, block)) {
					printf("differs: key %d, block %d bits\n", key, block);
					return 1;
				}
	printf("%d blocks are the same\n", blocks);
	return 0;
}
