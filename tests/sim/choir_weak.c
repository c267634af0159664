/* `weak` (DESIGN 7): what is asked for is run, told to the other members once, and nothing else is promised. So its copies are not compared;
 * but what is done has to be no more than that:
 *
 * - a service runs a request once for each time that a user asked for it there, or a message came with it (networks double them): it is
 *   never tried again, nor asked about, nor read for a repair; not after a crash, neither;
 * - a member is told of it once for each time that a user asked;
 * - what is acknowledged has run;
 * - nothing of an operation is kept: neither it, nor that somebody is owed it, nor that it runs; its blob for a while only (choir_end.c);
 * - what was never made is not remembered.
 */
#include "sim/choir.h"

#include <inttypes.h>

static bool is_weak(const struct choir *choir, struct replica_id id, uint32_t *replicant)
{
	*replicant = choir_replicant_of(choir, id);
	return *replicant != CHOIR_NOBODY && choir->replicants[*replicant].weak;
}

/* Calls back for each request on something weak in a message. */
static void each_weak(struct choir *choir, struct str message, uint32_t site,
                      void (*each)(struct choir *choir, struct choir_token *token, uint32_t number, uint32_t site))
{
	const char *at = message.at, *end = message.at + message.length;
	size_t mark = sizeof(CHOIR_MARK) - 1;
	while (at && (at = memmem(at, (size_t)(end - at), CHOIR_MARK, mark)) != NULL) {
		uint32_t token;
		at += mark;
		if ((size_t)(end - at) < sizeof(token))
			break;
		memcpy(&token, at, sizeof(token));
		if (token < choir->tokens_count && choir->replicants[choir->tokens[token].replicant].weak)
			each(choir, &choir->tokens[token], token, site);
	}
}

static void note_heard(struct choir *choir, struct choir_token *token, uint32_t number, uint32_t site)
{
	(void)choir;
	(void)number;
	token->heard[site]++;
}

void choir_weak_hears(struct choir *choir, const struct choir_site *it, struct str message)
{
	each_weak(choir, message, it->number, note_heard);
}

static void note_told(struct choir *choir, struct choir_token *token, uint32_t number, uint32_t site)
{
	if (++token->told[site] > token->asked)
		choir_violation(choir, token->replicant,
		                "s%" PRIu32 " is told of #%" PRIu32 ", which is weak, %" PRIu32
		                " times; it was asked for %" PRIu32 " times",
		                site, number, token->told[site], token->asked);
}

void choir_weak_sends(struct choir *choir, uint32_t to, struct str message)
{
	each_weak(choir, message, to, note_told);
}

void choir_weak_asks(struct choir *choir, const struct choir_action *action)
{
	if (choir->replicants[action->replicant].weak)
		choir_token(choir, action->request.token)->asked++;
}

void choir_weak_runs(struct choir *choir, const struct choir_site *it, const struct replica_task *task)
{
	uint32_t replicant;
	struct choir_request request;
	if (!is_weak(choir, task->op.replicant, &replicant))
		return;
	if (task->kind != REPLICA_RUN || !task->request || !choir_request_parse(task->request->body, &request)) {
		choir_violation(choir, replicant, "s%" PRIu32 " does more than to run what is weak: task of kind %d",
		                it->number, (int)task->kind);
		return;
	}
	struct choir_token *token = choir_token(choir, request.token);
	uint32_t asked = choir->actions[request.token - 1].site == it->number ? token->asked : 0;
	if (++token->tasks[it->number] > asked + token->heard[it->number])
		choir_violation(choir, replicant,
		                "s%" PRIu32 " runs #%" PRIu32 ", which is weak, %" PRIu32 " times; it was asked for %" PRIu32
		                " times there, and heard of %" PRIu32 " times",
		                it->number, request.token, token->tasks[it->number], asked, token->heard[it->number]);
}

void choir_weak_acknowledged(struct choir *choir, const struct choir_site *it, const struct choir_action *action)
{
	if (choir->replicants[action->replicant].weak && !choir_token(choir, action->request.token)->ran[it->number])
		choir_violation(choir, action->replicant,
		                "s%" PRIu32 " acknowledges #%" PRIu32 ", which is weak, and did not run", it->number,
		                action->request.token);
}

void choir_weak_keeps(struct choir *choir, const struct choir_site *it, enum replica_table table, uint32_t replicant)
{
	if (choir->replicants[replicant].weak && table != REPLICA_REPLICANTS && table != REPLICA_LOCALS &&
	    table != REPLICA_NAMES && table != REPLICA_BLOBS)
		choir_violation(choir, replicant, "s%" PRIu32 " keeps a row of what is weak in table %d", it->number,
		                (int)table);
}

bool choir_weak_converged(struct choir *choir, struct buf *why, uint32_t *of)
{
	for (uint32_t i = 0; i < choir->options.sites; i++) {
		const struct choir_site *it = &choir->sites[i];
		const struct choir_table *table = &it->rows.tables[REPLICA_REPLICANTS];
		for (uint32_t k = 0; k < table->count; k++) {
			struct replica_id id;
			uint32_t replicant;
			struct str key = choir_row_key(table->rows[k]);
			if (key.length != sizeof(id.bytes))
				continue;
			memcpy(id.bytes, key.at, sizeof(id.bytes));
			if (!is_weak(choir, id, &replicant) ||
			    choir_token(choir, choir->actions[choir->replicants[replicant].creator].request.token)->ran[i])
				continue;
			*of = replicant;
			buf_clear(why);
			buf_printf(why, "s%" PRIu32 " remembers r%" PRIu32 ", which is weak, and was never made there", i,
			           replicant);
			return false;
		}
	}
	return true;
}
