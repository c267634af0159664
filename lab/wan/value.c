/* Values as people write them: a number and its unit, with nothing in between. */
#include "wan.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>

struct unit {
	struct str name;
	double factor;
};

/* What a kind of value looks like. Of two units of which one ends with the other, the longer comes first. */
struct kind {
	const char *what;    /* for messages: "a duration" */
	const char *example; /* "10ms (units: us, ms, s)" */
	double least, most;  /* 0 is always fine */
	const char *range;
	struct unit units[4];
};

static const struct kind duration = {
	.what = "a duration",
	.example = "10ms or 0.5s (units: us, ms, s)",
	.most = WAN_DURATION_MAX_S * 1e9,
	.range = "0 to 60s",
	.units = {{STR_INIT("us"), 1e3}, {STR_INIT("ms"), 1e6}, {STR_INIT("s"), 1e9}},
};
static const struct kind share = {
	.what = "a share",
	.example = "7% or 0.5%",
	.most = 1,
	.range = "0% to 100%",
	.units = {{STR_INIT("%"), 0.01}},
};
static const struct kind rate = {
	.what = "a rate",
	.example = "10mbit (units: kbit, mbit, gbit) or unlimited",
	.least = 1e3,
	.most = 1e11,
	.range = "1kbit to 100gbit",
	.units = {{STR_INIT("kbit"), 1e3}, {STR_INIT("mbit"), 1e6}, {STR_INIT("gbit"), 1e9}},
};
static const struct kind queue = {
	.what = "a queue",
	.example = "100ms, or 64KiB (units: us, ms, s; B, KiB, MiB)",
	.least = 1,
	.most = 1 << 30,
	.range = "1B to 1024MiB",
	.units = {{STR_INIT("KiB"), 1 << 10}, {STR_INIT("MiB"), 1 << 20}, {STR_INIT("B"), 1}},
};

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

/* Digits, and perhaps a point and digits. Returns how many bytes that were; 0: no number. */
static size_t read_number(struct str text, double *number)
{
	enum { DIGITS_MAX = 15 }; /* more would not be exact */
	double value = 0, unit = 1;
	size_t at = 0, digits = 0;
	bool fraction = false;
	for (; at < text.length; at++) {
		char c = text.at[at];
		if (c == '.' && !fraction) {
			fraction = true;
			continue;
		}
		if (c < '0' || c > '9')
			break;
		digits++;
		value = value * 10 + (c - '0');
		unit *= fraction ? 10 : 1;
	}
	*number = value / unit;
	return digits >= 1 && digits <= DIGITS_MAX && text.at[at - 1] != '.' && text.at[0] != '.' ? at : 0;
}

static const struct unit *find_unit(const struct kind *kind, struct str name)
{
	for (size_t i = 0; i < sizeof(kind->units) / sizeof(kind->units[0]); i++) {
		if (kind->units[i].name.length > 0 && str_equal(kind->units[i].name, name))
			return &kind->units[i];
	}
	return NULL;
}

static int refuse(const struct kind *kind, struct str text, struct err *err)
{
	return err_set(err, ERR_INVALID, TEXT_NAME_FMT " is not %s; write for example %s", TEXT_NAME(text), kind->what,
	               kind->example);
}

static int read_value(const struct kind *kind, struct str text, double *value, struct err *err)
{
	size_t length = read_number(text, value);
	struct str name = str_make(text.at + length, text.length - length);
	const struct unit *unit = find_unit(kind, name);
	if (length == 0 || (unit == NULL && (name.length > 0 || *value > 0)))
		return refuse(kind, text, err);
	*value *= unit != NULL ? unit->factor : 1;
	if (*value > 0 && (*value < kind->least || *value > kind->most * (1 + 1e-12)))
		return err_set(err, ERR_LIMIT, TEXT_NAME_FMT " is out of range; it can be %s", TEXT_NAME(text), kind->range);
	return 0;
}

int wan_read_duration(struct str text, int64_t *ns, struct err *err)
{
	double value;
	int code = read_value(&duration, text, &value, err);
	if (code == 0)
		*ns = (int64_t)llround(value);
	return code;
}

int wan_read_share(struct str text, double *out, struct err *err)
{
	double value;
	int code = read_value(&share, text, &value, err);
	if (code == 0)
		*out = value < 1 ? value : 1;
	return code;
}

int wan_read_rate(struct str text, uint64_t *bps, struct err *err)
{
	double value = 0;
	int code = str_equal(text, STR("unlimited")) ? 0 : read_value(&rate, text, &value, err);
	if (code == 0 && value <= 0 && !str_equal(text, STR("unlimited")))
		return refuse(&rate, text, err); /* a line without any capacity is a cut */
	if (code == 0)
		*bps = (uint64_t)llround(value);
	return code;
}

int wan_read_queue(struct str text, int64_t *ns, uint64_t *bytes, struct err *err)
{
	double value;
	size_t length = read_number(text, &value);
	if (find_unit(&duration, str_make(text.at + length, text.length - length)) != NULL) {
		*bytes = 0;
		return wan_read_duration(text, ns, err);
	}
	int code = read_value(&queue, text, &value, err);
	if (code != 0)
		return code;
	*ns = 0;
	*bytes = (uint64_t)llround(value);
	return 0;
}

/* ---- Writing: what is written reads back as the same ------------------------------------------------------------ */

/* With as many decimals as it takes, of at most six. */
static void put_number(struct buf *out, double value)
{
	char text[64];
	int length = snprintf(text, sizeof(text), "%.6f", value);
	while (text[length - 1] == '0')
		length--;
	length -= text[length - 1] == '.';
	buf_put(out, str_make(text, (size_t)length));
}

void wan_put_duration(struct buf *out, int64_t ns)
{
	put_number(out, (double)ns / 1e6);
	buf_put(out, STR("ms"));
}

void wan_put_share(struct buf *out, double value)
{
	put_number(out, value * 100);
	buf_put_char(out, '%');
}

void wan_put_rate(struct buf *out, uint64_t bps)
{
	if (bps == 0) {
		buf_put(out, STR("unlimited"));
		return;
	}
	put_number(out, (double)bps / 1e6);
	buf_put(out, STR("mbit"));
}

void wan_put_queue(struct buf *out, int64_t ns, uint64_t bytes)
{
	if (bytes == 0)
		wan_put_duration(out, ns);
	else
		buf_printf(out, "%lluB", (unsigned long long)bytes);
}
