/* Reports: how far a member is, and what it could not do (docs/protocol/replica.md, "Reports"). */
#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

enum {
	REPORT_STUCK = 1,
	REPORT_QUOTED = 2,
	REPORT_CREATED = 4,
	REPORT_DIVERGED = 8,
	REPORT_EXCEPTED = 16,
	REPORT_LACKING = 32,
	REPORT_FOREIGN = 64,
	REPORT_HOLDING = 128,
	REPORT_FLAGS = 255
};

void report_put(struct buf *out, const struct report *report, uint32_t members_count)
{
	put_number(out, report->number, 4);
	put_number(out,
	           (report->stuck ? REPORT_STUCK : 0) | (report->local_id_quoted ? REPORT_QUOTED : 0) |
	               (report->created ? REPORT_CREATED : 0) | (report->diverged ? REPORT_DIVERGED : 0) |
	               (report->excepted ? REPORT_EXCEPTED : 0) | (report->lacking ? REPORT_LACKING : 0) |
	               (report->foreign ? REPORT_FOREIGN : 0) | (report->holding ? REPORT_HOLDING : 0),
	           1);
	put_number(out, report->distance, 4);
	put_vector(out, report->settled, members_count);
	put_text(out, str_make(report->local_id, report->local_id_bytes));
	put_number(out, report->exceptions_count, 2);
	size_t answers_bytes = 0;
	for (uint32_t i = 0; i < report->exceptions_count; i++) {
		const struct exception *exception = &report->exceptions[i];
		put_number(out, exception->member, 1);
		put_number(out, exception->number, 4);
		put_number(out, exception->state, 1);
		put_number(out, exception->status, 2);
		/* All of them together have to fit into a message. */
		struct str answer = str_make(exception->answer, exception->answer_bytes);
		if (answers_bytes + answer.length > REPLICA_TOLD_ANSWERS_BYTES)
			answer = STR("");
		answers_bytes += answer.length;
		put_number(out, answer.length, 2);
		buf_put(out, answer);
	}
}

static bool read_exception(struct reader *reader, struct exception *exception, uint32_t members_count)
{
	*exception = (struct exception){.member = read_8(reader)};
	exception->number = read_32(reader);
	exception->state = read_8(reader);
	exception->status = read_16(reader);
	struct str answer = read_bytes(reader, read_16(reader));
	exception->answer_bytes = (uint16_t)answer.length;
	exception->answer = (char *)answer.at;
	bool is_one = exception->state == REPLICA_REJECTED || exception->state == REPLICA_REJECTED_CREDENTIAL ||
	              exception->state == REPLICA_IN_DOUBT || exception->state == REPLICA_PENDING ||
	              exception->state == EXCEPTION_DISMISSED;
	return !reader->failed && exception->member < members_count && exception->number > 0 && is_one &&
	       answer.length <= LIMIT_REPLICA_ANSWER_BYTES;
}

static bool read_exceptions(struct reader *reader, struct report *report, uint32_t members_count)
{
	uint32_t count = read_16(reader);
	if (reader->failed || count > REPLICA_EXCEPTIONS)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		struct exception exception;
		if (!read_exception(reader, &exception, members_count))
			return false;
		report_except(report, &exception);
	}
	return true;
}

bool report_read(struct reader *reader, struct report *report, uint32_t members_count)
{
	report_clear(report);
	report->number = read_32(reader);
	uint8_t flags = read_8(reader);
	report->stuck = flags & REPORT_STUCK;
	report->local_id_quoted = flags & REPORT_QUOTED;
	report->created = flags & REPORT_CREATED;
	report->diverged = flags & REPORT_DIVERGED;
	report->excepted = flags & REPORT_EXCEPTED;
	report->lacking = flags & REPORT_LACKING;
	report->foreign = flags & REPORT_FOREIGN;
	report->holding = flags & REPORT_HOLDING;
	report->distance = read_32(reader);
	read_vector(reader, report->settled, members_count);
	struct str local_id = read_text(reader);
	if (reader->failed || local_id.length > sizeof(report->local_id) || (flags & ~REPORT_FLAGS) != 0)
		return false;
	memcpy(report->local_id, local_id.at, local_id.length);
	report->local_id_bytes = (uint8_t)local_id.length;
	return read_exceptions(reader, report, members_count);
}

void report_map(struct report *report, const struct lens *lens)
{
	uint32_t settled[LIMIT_REPLICA_MEMBERS] = {0};
	for (uint32_t i = 0; i < lens->count; i++)
		settled[lens->to[i]] = report->settled[i];
	memcpy(report->settled, settled, sizeof(settled));
	for (uint32_t i = 0; i < report->exceptions_count; i++)
		report->exceptions[i].member = lens->to[report->exceptions[i].member];
}

void report_clear(struct report *report)
{
	for (uint32_t i = 0; i < report->exceptions_count; i++)
		free(report->exceptions[i].answer);
	free(report->exceptions);
	report->exceptions = NULL;
	report->exceptions_count = 0;
}

static struct exception *find(const struct report *report, uint32_t member, uint32_t number)
{
	for (uint32_t i = 0; i < report->exceptions_count; i++)
		if (report->exceptions[i].member == member && report->exceptions[i].number == number)
			return &report->exceptions[i];
	return NULL;
}

const struct exception *report_exception(const struct report *report, uint32_t member, uint32_t number)
{
	return find(report, member, number);
}

enum replica_member_state exception_shown(const struct exception *exception)
{
	return exception->state == EXCEPTION_DISMISSED ? REPLICA_REJECTED : (enum replica_member_state)exception->state;
}

void report_except(struct report *report, const struct exception *exception)
{
	struct exception *old = find(report, exception->member, exception->number);
	if (old == NULL) {
		if (report->exceptions_count == REPLICA_EXCEPTIONS)
			return;
		uint32_t count = report->exceptions_count + 1;
		struct exception *more = realloc(report->exceptions, count * sizeof(*more));
		CHECK(more != NULL);
		report->exceptions = more;
		report->exceptions_count = count;
		old = &more[count - 1];
		*old = (struct exception){0};
	}
	free(old->answer);
	*old = *exception;
	old->answer_bytes =
		exception->answer_bytes < LIMIT_REPLICA_ANSWER_BYTES ? exception->answer_bytes : LIMIT_REPLICA_ANSWER_BYTES;
	old->answer = malloc(old->answer_bytes + 1u);
	CHECK(old->answer != NULL);
	if (old->answer_bytes > 0)
		memcpy(old->answer, exception->answer, old->answer_bytes);
}

bool report_unexcept(struct report *report, uint32_t member, uint32_t number)
{
	struct exception *old = find(report, member, number);
	if (old == NULL)
		return false;
	free(old->answer);
	uint32_t at = (uint32_t)(old - report->exceptions);
	memmove(old, old + 1, (report->exceptions_count - at - 1) * sizeof(*old));
	report->exceptions_count--;
	return true;
}
