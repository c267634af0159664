/* Numbers and slices of bytes, in network byte order. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include "base/buf.h"

/* Reads on past the end give zeros and set `failed`: a parser asks once, at its end. */
struct reader {
	const unsigned char *at;
	size_t left;
	bool failed;
};

static inline struct reader reader_of(struct str bytes)
{
	return (struct reader){(const unsigned char *)bytes.at, bytes.length, false};
}

static inline uint64_t read_number(struct reader *reader, unsigned bytes)
{
	if (reader->left < bytes) {
		reader->failed = true;
		reader->left = 0;
		return 0;
	}
	uint64_t number = 0;
	for (unsigned i = 0; i < bytes; i++)
		number = number << 8 | reader->at[i];
	reader->at += bytes;
	reader->left -= bytes;
	return number;
}

static inline uint8_t read_8(struct reader *reader)
{
	return (uint8_t)read_number(reader, 1);
}

static inline uint16_t read_16(struct reader *reader)
{
	return (uint16_t)read_number(reader, 2);
}

static inline uint32_t read_32(struct reader *reader)
{
	return (uint32_t)read_number(reader, 4);
}

static inline uint64_t read_64(struct reader *reader)
{
	return read_number(reader, 8);
}

static inline struct str read_bytes(struct reader *reader, size_t count)
{
	if (reader->left < count) {
		reader->failed = true;
		reader->left = 0;
		return STR("");
	}
	struct str bytes = {(const char *)reader->at, count};
	reader->at += count;
	reader->left -= count;
	return bytes;
}

static inline struct str read_rest(struct reader *reader)
{
	return read_bytes(reader, reader->left);
}

static inline void put_number(struct buf *out, uint64_t number, unsigned bytes)
{
	char *at = buf_extend(out, bytes);
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (char)(unsigned char)(number >> 8 * (bytes - 1 - i));
}

/* Overwrites two bytes that were put before. */
static inline void patch_16(struct buf *out, size_t at, uint64_t number)
{
	out->at[at] = (char)(unsigned char)(number >> 8);
	out->at[at + 1] = (char)(unsigned char)number;
}

#endif
