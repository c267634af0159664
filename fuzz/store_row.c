/* Envelopes, keys of indexes, and entries of the catalogue: refused with a reason, or the same when written again.
 *
 * The first byte says what the rest is: a value with its envelope, a key of an index, an index's key and a row's key (the second
 * byte is the length of the first), or entries of a file, each a length of key and of row, for which envelopes are made. */
#include "store/store_int.h"

#include "base/check.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_envelope(struct str bytes)
{
	struct err err = {0};
	struct str row;
	struct buf again = {0};
	uint32_t version;
	int code = envelope_open(STR("\1key"), bytes, &version, &row, &err);
	if (code) {
		CHECK(code == ERR_CORRUPT && err.code == code && err.text[0] != '\0');
		/* As a row it goes in, and comes out. */
		if (bytes.length > 2)
			version = (uint32_t)(unsigned char)bytes.at[0] << 8 | (unsigned char)bytes.at[1];
		uint32_t wanted = version & LIMIT_STORE_ROW_VERSION;
		envelope_put(&again, STR("\1key"), wanted, bytes);
		CHECK(envelope_open(STR("\1key"), buf_str(&again), &version, &row, NULL) == 0);
		CHECK(version == wanted && str_equal(row, bytes));
		CHECK(envelope_open(STR("\2key"), buf_str(&again), &version, &row, NULL) == ERR_CORRUPT);
	} else {
		envelope_put(&again, STR("\1key"), version, row);
		CHECK(str_equal(buf_str(&again), bytes));
	}
	buf_free(&again);
}

static void check_split(struct str bytes)
{
	struct buf index = {0};
	struct str row;
	struct key key;
	if (bytes.length > 0 && bytes.length <= ENGINE_KEY_BYTES && key_split(bytes, &index, &row) == 0) {
		CHECK(key_of_entry(&key, (unsigned char)bytes.at[0], buf_str(&index), &row, false) == 0);
		CHECK(str_equal(key_str(&key), bytes));
	}
	buf_free(&index);
}

/* The order of entries is that of their index keys, then of their rows. */
static void check_join(struct str bytes)
{
	if (bytes.length < 2)
		return;
	size_t first = (unsigned char)bytes.at[0] % bytes.length;
	struct str index = str_make(bytes.at + 1, first > 0 ? first - 1 : 0);
	struct str row = str_make(bytes.at + 1 + index.length, bytes.length - 1 - index.length), got;
	struct key key, other, begins;
	struct buf again = {0};
	if (row.length > LIMIT_STORE_KEY_BYTES || key_of_entry(&key, 9, index, &row, false))
		return;
	CHECK(key_split(key_str(&key), &again, &got) == 0);
	CHECK(str_equal(buf_str(&again), index) && str_equal(got, row));
	CHECK(key_of_entry(&begins, 9, index, NULL, true) == 0 && memcmp(begins.bytes, key.bytes, begins.length) == 0);
	/* Against itself, divided elsewhere. */
	struct str shorter = str_make(index.at, index.length / 2);
	if (key_of_entry(&other, 9, shorter, &row, false) == 0) {
		int order = str_compare(shorter, index), entries = str_compare(key_str(&other), key_str(&key));
		CHECK(order == 0 ? entries == 0 : (order < 0) == (entries < 0));
	}
	buf_free(&again);
}

static void check_catalogue(struct str bytes)
{
	struct catalogue_check *check = calloc(1, sizeof(*check));
	struct buf value = {0};
	CHECK(check != NULL);
	while (bytes.length >= 2) {
		size_t key_length = (unsigned char)bytes.at[0], row_length = (unsigned char)bytes.at[1];
		bytes = str_make(bytes.at + 2, bytes.length - 2);
		if (key_length == 0 || key_length + row_length > bytes.length)
			break;
		struct str key = str_make(bytes.at, key_length), row = str_make(bytes.at + key_length, row_length);
		struct err err = {0};
		bytes = str_make(row.at + row.length, bytes.length - key_length - row_length);
		buf_clear(&value);
		envelope_put(&value, key, 1, row);
		int code = catalogue_check_entry(check, key, buf_str(&value), &err);
		if (code) {
			CHECK(err.code == code && err.text[0] != '\0');
			break;
		}
	}
	catalogue_check_end(check, NULL);
	buf_free(&value);
	free(check);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(struct str bytes) = {check_envelope, check_split, check_join, check_catalogue};
	if (size == 0)
		return 0;
	checks[data[0] % (sizeof(checks) / sizeof(checks[0]))](size > 1 ? str_make((const char *)data + 1, size - 1)
	                                                                : STR(""));
	return 0;
}
