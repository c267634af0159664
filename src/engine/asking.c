#include "engine/asking.h"

#include <stdio.h>

static void answered(void *context, const struct http_call_answer *answer)
{
	struct asking *asking = context;
	char reason[96];
	asking->call = NULL;
	if (answer->code) {
		asking->done(asking, STR(""), str_of(answer->err.text));
	} else if (answer->status == 200) {
		asking->done(asking, answer->body, STR(""));
	} else if (answer->status == 404) {
		asking->done(asking, STR(""), str_of(asking->unknown));
	} else {
		snprintf(reason, sizeof(reason), "the agent there answers with %u", answer->status);
		asking->done(asking, STR(""), str_of(reason));
	}
}

static int check_site(void *context, struct str certificate_der, struct err *err)
{
	const struct asking *asking = context;
	return engine_check_site(asking->site, certificate_der, err);
}

void engine_asking_start(struct engine *engine, struct asking *asking, const struct asking_about *about)
{
	const struct site_place *place = engine_find_place(engine, asking->site);
	struct buf target = {0};
	struct err err = {0};
	if (!place || !engine_reachable(engine, asking->site)) {
		asking->done(asking, STR(""), STR("the site cannot be reached"));
		return;
	}
	buf_put(&target, STR("/cheops/v1/copies/"));
	replica_id_put(about->replicant, &target);
	buf_put(&target, about->part);
	struct http_call_options options = {.tls = engine->client,
	                                    .method = "GET",
	                                    .target = buf_str(&target),
	                                    .body_fd = -1,
	                                    .pool = engine->pool,
	                                    .repeatable = true,
	                                    .timeout_ms = about->timeout_ms,
	                                    .answer_bytes = about->answer_bytes,
	                                    .done = answered,
	                                    .check = check_site,
	                                    .context = asking};
	http_address_of_site(&options.address, &place->address);
	int code = http_call_start(&asking->call, engine->loop, &options, &err);
	buf_free(&target);
	if (code == 0)
		return;
	asking->call = NULL;
	asking->done(asking, STR(""), str_of(err.text));
}

void engine_asking_end(struct asking *asking)
{
	if (asking->call)
		http_call_cancel(asking->call);
	asking->call = NULL;
}
