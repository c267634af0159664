/* Any bytes as the requests of one connection: each is refused, or read as RFC 9112 says, however it is cut into pieces. The
 * last two bytes say how. */
#include "http_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > FUZZ_INPUT_BYTES)
		return 0;
	uint32_t seed = (uint32_t)data[size - 2] << 16 | (uint32_t)data[size - 1] << 8;
	fuzz_compare(str_make((const char *)data, size - 2), seed, true, 0);
	return 0;
}
