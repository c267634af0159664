#include "cli/waiting.h"

#include "cli/listing.h"

#include <stdlib.h>

int cli_timeout_take(const char *command, const char *value, struct cli_waiting *waiting)
{
	char *end;
	waiting->timeout_given = true;
	waiting->timeout_s = strtoul(value, &end, 10);
	if (value[0] >= '0' && value[0] <= '9' && *end == '\0' && waiting->timeout_s > 0 &&
	    waiting->timeout_s <= CLI_TIMEOUT_MOST_S)
		return CLI_FINE;
	return cli_usage(command, "--timeout " TEXT_NAME_FMT " is no number of seconds from 1 to %d",
	                 TEXT_NAME(str_of(value)), CLI_TIMEOUT_MOST_S);
}

int cli_waiting_check(const char *command, const struct cli_waiting *waiting)
{
	if (waiting->who != NULL && *waiting->who == '\0')
		return cli_usage(command, "--wait is empty; it is `all`, `majority`, or the name of a site");
	if (waiting->timeout_given && waiting->who == NULL)
		return cli_usage(command, "--timeout without --wait: for what?");
	return CLI_FINE;
}

void cli_waiting_add(struct buf *target, const struct cli_waiting *waiting)
{
	cli_query_add(target, "wait", waiting->who);
	if (waiting->who != NULL)
		buf_printf(target, "&timeout=%lu", waiting->timeout_s);
}

int cli_waiting_status(const struct cli_waiting *waiting, const json_t *answer)
{
	if (waiting->who == NULL || json_is_true(json_object_get(answer, "reached")))
		return CLI_FINE;
	cli_say("it is not applied there, and %s",
	        str_equal(cli_json_text(answer, "state"), STR("pending"))
	            ? "the time is over"
	            : "will not be unless somebody decides on it: see `cheops ops --help`");
	return CLI_REFUSED;
}
