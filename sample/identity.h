/* Ids and times of new records. */
#ifndef SAMPLE_IDENTITY_H
#define SAMPLE_IDENTITY_H

enum { UUID_BYTES = 37, TIMESTAMP_BYTES = 32 };

/* A random UUID (RFC 9562, version 4) as text. */
void uuid_make(char uuid[UUID_BYTES]);

/* Now, in UTC, as RFC 3339 has it; later ones sort after earlier ones. */
void timestamp_make(char timestamp[TIMESTAMP_BYTES]);

#endif
