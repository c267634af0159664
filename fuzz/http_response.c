/* Any bytes as the responses of one connection, to GET or to HEAD: each is refused, or read as RFC 9112 says, however it is
 * cut into pieces. The last two bytes say how, and to what. */
#include "http_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t method_named(const char *name)
{
	for (uint8_t method = 0; method < 32; method++)
		if (str_equal(http_method_name(method), str_of(name)))
			return method;
	CHECK(false);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > FUZZ_INPUT_BYTES)
		return 0;
	uint32_t seed = (uint32_t)data[size - 2] << 16 | (uint32_t)data[size - 1] << 8;
	uint8_t method = method_named(data[size - 1] % 4 == 3 ? "HEAD" : "GET");
	fuzz_compare(str_make((const char *)data, size - 2), seed, false, method);
	return 0;
}
