/* Messages to the agents of other members: POST /cheops/v1/replica on their port for agents, mutual TLS, one after the other
 * to each site, on connections that are kept. Those of src/cross, POST /cheops/v1/names, have a queue of their own.
 *
 * Each event in src/replica has a message of its own for each member. Those of one commit are put together, and so are those that come
 * while one is under way, each as long as a message may be: a request between agents costs as much for one operation as for many.
 * A message that does not arrive is lost: src/replica says it again. So are those behind it, and those past a bound.
 */
#include "engine/engine_int.h"

#include "base/check.h"
#include "trust/trust.h"

#include <stdlib.h>

static void say_next(struct talk *talk);

static struct talk *find_talk(struct engine *engine, site_id site, bool names)
{
	for (struct talk *talk = engine->talks; talk; talk = talk->next)
		if (talk->site == site && talk->names == names)
			return talk;
	struct talk *talk = calloc(1, sizeof(*talk));
	CHECK(talk);
	*talk = (struct talk){.engine = engine, .site = site, .names = names, .next = engine->talks};
	engine->talks = talk;
	return talk;
}

void engine_talks_free(struct engine *engine)
{
	while (engine->talks) {
		struct talk *talk = engine->talks;
		engine->talks = talk->next;
		if (talk->call)
			http_call_cancel(talk->call);
		buf_free(&talk->waiting);
		free(talk);
	}
}

const struct site_place *engine_find_place(const struct engine *engine, site_id site)
{
	uint32_t index = engine->sites ? site_snapshot_find(engine->sites, site) : SCOPE_NO_INDEX;
	return index == SCOPE_NO_INDEX ? NULL : &engine->sites->places[index];
}

bool engine_reachable(const struct engine *engine, site_id site)
{
	const struct site_place *place = engine_find_place(engine, site);
	return place && engine->client && place->state != SITE_LOST && place->state != SITE_LEFT;
}

int engine_check_site(site_id site, struct str certificate_der, struct err *err)
{
	struct trust_certificate about;
	if (trust_certificate_read(certificate_der, &about, err) != 0 || about.id != site)
		return err_set(err, ERR_INVALID, "another site answers at the address of this member");
	return 0;
}

static int check_site(void *context, struct str certificate_der, struct err *err)
{
	const struct talk *talk = context;
	return engine_check_site(talk->site, certificate_der, err);
}

static void forget_said(struct talk *talk)
{
	buf_clear(&talk->waiting);
	talk->next_at = talk->last_at = 0;
}

static void said(void *context, const struct http_call_answer *answer)
{
	struct talk *talk = context;
	talk->call = NULL;
	if (answer->code || answer->status != 202)
		forget_said(talk); /* what is behind it would not arrive either */
	say_next(talk);
}

static void say(struct talk *talk, struct str message)
{
	struct engine *engine = talk->engine;
	const struct site_place *place = engine_find_place(engine, talk->site);
	struct http_call_options options = {.tls = engine->client,
	                                    .method = "POST",
	                                    .target = talk->names ? STR("/cheops/v1/names") : STR("/cheops/v1/replica"),
	                                    .content_type = STR("application/octet-stream"),
	                                    .body = message,
	                                    .pool = engine->pool,
	                                    .repeatable = true,
	                                    .timeout_ms = ENGINE_PEER_MS,
	                                    .answer_bytes = 4096,
	                                    .done = said,
	                                    .check = check_site,
	                                    .context = talk};
	if (!place || !engine->client)
		return;
	http_address_of_site(&options.address, &place->address);
	if (http_call_start(&talk->call, engine->loop, &options, NULL) != 0)
		talk->call = NULL;
}

static void say_next(struct talk *talk)
{
	while (!talk->call && talk->next_at < talk->waiting.length) {
		uint32_t length;
		memcpy(&length, talk->waiting.at + talk->next_at, sizeof(length));
		struct str message = str_make(talk->waiting.at + talk->next_at + sizeof(length), length);
		talk->next_at += sizeof(length) + length;
		say(talk, message);
	}
	if (talk->next_at == talk->waiting.length)
		forget_said(talk);
}

/* Behind the last one that waits, if that has not gone and there is room in it. */
static bool join_last(struct talk *talk, struct str message)
{
	uint32_t length;
	size_t at = talk->last_at + sizeof(length);
	if (talk->names || talk->next_at > talk->last_at || talk->waiting.length == 0 ||
	    !replica_join(&talk->waiting, at, message))
		return false;
	length = (uint32_t)(talk->waiting.length - at);
	memcpy(talk->waiting.at + talk->last_at, &length, sizeof(length));
	return true;
}

static void put_message(struct talk *talk, struct str message)
{
	uint32_t length = (uint32_t)message.length;
	if (talk->waiting.length + message.length > ENGINE_UNSENT_BYTES || join_last(talk, message))
		return;
	talk->last_at = talk->waiting.length;
	buf_put(&talk->waiting, str_make((const char *)&length, sizeof(length)));
	buf_put(&talk->waiting, message);
}

void engine_say(struct engine *engine, site_id to, struct str message)
{
	put_message(find_talk(engine, to, false), message);
}

void engine_say_names(struct engine *engine, site_id to, struct str message)
{
	put_message(find_talk(engine, to, true), message);
}

void engine_say_all(struct engine *engine)
{
	for (struct talk *talk = engine->talks; talk; talk = talk->next)
		say_next(talk);
}
