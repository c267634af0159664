#include "engine/engine_int.h"
#include "engine/relations.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

struct replica_now engine_now(void)
{
	struct timespec mono, wall;
	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &wall);
	return (struct replica_now){(uint64_t)mono.tv_sec * 1000000 + (uint64_t)mono.tv_nsec / 1000,
	                            (uint64_t)wall.tv_sec * 1000 + (uint64_t)wall.tv_nsec / 1000000};
}

/* ---- What the replica asks for ------------------------------------------------------------------------------------ */

static struct action *action_new(enum action_kind kind)
{
	struct action *action = calloc(1, sizeof(*action));
	CHECK(action);
	action->kind = kind;
	return action;
}

static void action_free(struct action *action)
{
	buf_free(&action->message);
	free(action);
}

void engine_hold(struct engine *engine, struct action *action)
{
	*engine->last = action;
	engine->last = &action->next;
}

static void hold_send(void *context, site_id to, struct str message)
{
	struct action *action = action_new(ACTION_SEND);
	action->to = to;
	buf_put(&action->message, message);
	engine_hold(context, action);
}

static void hold_run(void *context, const struct replica_task *task)
{
	struct action *action = action_new(ACTION_RUN);
	struct engine *engine = context;
	action->run = engine_run_copy(engine, task);
	if (task->kind != REPLICA_READ_STATE && task->kind != REPLICA_READ_COPY)
		engine_standing_changes(engine, task->op.replicant);
	engine->runs_held++;
	engine->users_wait |= task->first;
	engine_hold(engine, action);
}

static void hold_answer(void *context, const struct replica_answer *answer)
{
	struct engine *engine = context;
	if (engine_ask_answered(engine, answer) || engine_bringing_answered(engine, answer))
		return;
	struct ticket *ticket = engine_ticket(engine, answer->ticket);
	engine_answer_ticket(engine, answer);
	if (answer->kept && ticket && !engine_ticket_waits(ticket)) {
		engine_ticket_answered(ticket);
		engine->news_held = true;
		return;
	}
	engine->users_wait = true;
	struct action *action = action_new(ACTION_ANSWER);
	action->ticket = ticket;
	engine_hold(engine, action);
}

static void hold_event(void *context, const struct replica_event *event)
{
	struct action *action = action_new(ACTION_EVENT);
	action->event = *event;
	engine_hold(context, action);
	engine_names_event(context, event);
	if (event->kind == REPLICA_EVENT_REPLICANT)
		engine_follow_note(context, event->op.replicant);
}

static void hold_fetch(void *context, struct str blob, uint64_t bytes, site_id from)
{
	struct action *action = action_new(ACTION_FETCH);
	buf_put(&action->message, blob);
	action->bytes = bytes;
	action->to = from;
	engine_hold(context, action);
}

static void hold_drop(void *context, struct str blob)
{
	struct action *action = action_new(ACTION_DROP);
	buf_put(&action->message, blob);
	engine_hold(context, action);
}

static bool is_reachable(void *context, site_id site)
{
	return engine_reachable(context, site);
}

uint64_t engine_draw(struct engine *engine)
{
	(void)engine;
	uint64_t number;
	ssize_t got = getrandom(&number, sizeof(number), 0);
	CHECK(got == sizeof(number));
	return number;
}

static uint64_t draw(void *context)
{
	return engine_draw(context);
}

/* ---- Batches ------------------------------------------------------------------------------------------------------ */

static int start_replica(struct engine *engine, struct err *err);

/* It was asked for again, and came meanwhile. */
static bool is_here_already(struct engine *engine, const struct action *action)
{
	uint64_t bytes = 0;
	int fd = engine_blob_open(engine, buf_str(&action->message), &bytes);
	if (fd < 0)
		return false;
	close(fd);
	if (bytes != action->bytes || !engine->replica)
		return false;
	replica_fetched(engine->replica, buf_str(&action->message), engine_now());
	engine_changed(engine);
	return true;
}

static void perform(struct engine *engine, struct action *action)
{
	switch (action->kind) {
	case ACTION_SEND: engine_say(engine, action->to, buf_str(&action->message)); break;
	case ACTION_TELL_NAMES: engine_say_names(engine, action->to, buf_str(&action->message)); break;
	case ACTION_NAMED: engine_names_answered(engine, &action->named); break;
	case ACTION_RUN:
		engine_ticket_started(engine, action->run);
		engine_run_start(action->run);
		break;
	case ACTION_ANSWER:
		if (action->ticket)
			engine_ticket_answered(action->ticket);
		break;
	case ACTION_REPLY: engine_ask_reply(action->ask, NULL); break;
	case ACTION_GIVEN: engine_giving_reply(action->giving); break;
	case ACTION_BROUGHT: engine_bringing_reply(action->bringing, NULL); break;
	case ACTION_EVENT: engine_changes_add(engine, &action->event, action->wall_ms); break;
	case ACTION_FETCH:
		if (!is_here_already(engine, action))
			engine_fetch(engine, buf_str(&action->message), action->bytes, action->to);
		break;
	case ACTION_DROP:
		engine_blob_release(engine, buf_str(&action->message));
		engine_changed(engine); /* it has read rows: that session ends with a commit */
		break;
	}
	action_free(action);
}

/* `err` NULL: the engine ends. */
static void give_up(struct action *action, const struct err *err)
{
	if (action->kind == ACTION_RUN)
		engine_run_free(action->run);
	else if (action->kind == ACTION_REPLY && err)
		engine_ask_reply(action->ask, err);
	else if (action->kind == ACTION_REPLY)
		engine_ask_drop(action->ask);
	else if (action->kind == ACTION_GIVEN && err)
		engine_giving_fail(action->giving, err);
	else if (action->kind == ACTION_BROUGHT && err)
		engine_bringing_reply(action->bringing, err);
	action_free(action);
}

static struct action *take_actions(struct engine *engine)
{
	struct action *first = engine->first;
	engine->first = NULL;
	engine->last = &engine->first;
	engine->runs_held = 0;
	engine->users_wait = engine->news_held = false;
	return first;
}

/* The store refused: what is on disk is the truth, and everything starts from there. */
static void start_over(struct engine *engine)
{
	struct err err = engine->failure;
	log_event(engine->options.log, LOG_ERROR, "replicated resources cannot be changed: the store refuses",
	          LOG_STR("error", str_of(err.text)));
	for (struct action *action = take_actions(engine), *next; action; action = next) {
		next = action->next;
		give_up(action, &err);
	}
	engine_tickets_fail(engine, &err);
	engine_givings_fail(engine, &err);
	engine_bringings_fail(engine, &err);
	engine_hooks_doubt(engine);
	engine_names_stop(engine);
	engine->freeing = 0;
	replica_free(engine->replica);
	engine->replica = NULL;
	engine->failure = (struct err){0};
	http_timer_clear(engine->loop, &engine->timer);
	http_timer_set(engine->loop, &engine->timer, ENGINE_AGAIN_MS);
}

/* A disk that was full may have room again. */
static void try_again(struct engine *engine)
{
	struct err err = {0};
	if (start_replica(engine, &err) == 0)
		return;
	log_event(engine->options.log, LOG_ERROR, "replicated resources are not available",
	          LOG_STR("error", str_of(err.text)));
	if (engine->session)
		store_abort(engine->session);
	engine->session = NULL;
	engine->failure = (struct err){0};
	http_timer_set(engine->loop, &engine->timer, ENGINE_AGAIN_MS);
}

static void set_timer(struct engine *engine)
{
	uint64_t due_us = replica_due(engine->replica), now_us = engine_now().us;
	http_timer_clear(engine->loop, &engine->timer);
	if (due_us != UINT64_MAX)
		http_timer_set(engine->loop, &engine->timer, due_us > now_us ? (due_us - now_us) / 1000 : 0);
}

int engine_commit(struct engine *engine)
{
	if (engine->session && engine->failure.code == 0)
		engine_blobs_sync(engine, &engine->failure);
	engine_behind_note(engine);
	if (engine_journal_commit(engine)) {
		engine_overlay_publish(engine);
		return 0;
	}
	engine_behind_settle(engine);
	engine_journal_settle(engine);
	struct store_session *session = engine->session;
	engine->session = NULL;
	if (session && engine->failure.code)
		store_abort(session);
	else if (session)
		store_commit(session, &engine->failure);
	if (engine->failure.code == 0)
		engine_behind_settled(engine);
	else
		engine_behind_drop(engine);
	engine_journal_settled(engine, engine->failure.code == 0);
	engine_overlay_settled(engine, engine->failure.code == 0);
	engine->commit_failures += engine->failure.code != 0;
	return engine->failure.code;
}

static void flush(struct http_task *task)
{
	struct engine *engine = (struct engine *)((char *)task - offsetof(struct engine, flush));
	engine->flushing = false;
	engine_risks_review(engine);
	engine_standings_review(engine);
	engine_names_review(engine);
	engine_changes_store(engine);
	engine_hooks_store(engine);
	if (engine_commit(engine) != 0) {
		start_over(engine);
		return;
	}
	for (struct action *action = take_actions(engine), *next; action; action = next) {
		next = action->next;
		perform(engine, action);
	}
	engine_say_all(engine);
	engine_waits_review(engine);
	engine_names_freed(engine);
	engine_hooks_pump(engine);
	engine_figures_note(engine);
	if (engine->replica)
		set_timer(engine);
	engine_names_timer(engine);
	engine_follow_timer(engine);
	engine_sessions_review(engine);
}

static void soon_is_now(struct http_source *source, uint32_t events)
{
	struct engine *engine = (struct engine *)((char *)source - offsetof(struct engine, soon));
	uint64_t times;
	ssize_t got = read(source->fd, &times, sizeof(times));
	(void)events;
	(void)got;
	engine->soon_set = engine->later_set = false;
	engine_changed(engine);
}

static int open_soon(struct engine *engine, struct err *err)
{
	engine->soon.ready = soon_is_now;
	engine->soon.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (engine->soon.fd < 0)
		return err_set(err, ERR_IO, "cannot make a timer: %s", strerror(errno));
	return http_loop_add(engine->loop, &engine->soon, EPOLLIN, err);
}

void engine_changed_soon(struct engine *engine)
{
	bool soon = engine->runs_held > 0 || engine->news_held;
	struct itimerspec when = {.it_value.tv_nsec = (soon ? ENGINE_SOON_MS : ENGINE_LATER_MS) * 1000000L};
	if (engine->users_wait)
		engine_changed(engine);
	if (engine->flushing || engine->soon_set || (engine->later_set && !soon))
		return;
	if (timerfd_settime(engine->soon.fd, 0, &when, NULL) != 0)
		engine_changed(engine);
	engine->soon_set = soon;
	engine->later_set = !soon;
}

void engine_changed(struct engine *engine)
{
	if (engine->flushing)
		return;
	engine->flushing = true;
	http_loop_post(engine->loop, &engine->flush);
}

static void tick(struct http_timer *timer)
{
	struct engine *engine = (struct engine *)((char *)timer - offsetof(struct engine, timer));
	if (!engine->replica) {
		try_again(engine);
		return;
	}
	replica_tick(engine->replica, engine_now());
	engine_changed(engine);
}

/* ---- Setups -------------------------------------------------------------------------------------------------------- */

struct setup *engine_setup_keep(struct setup *setup)
{
	setup->references++;
	return setup;
}

void engine_setup_drop(struct setup *setup)
{
	if (!setup || --setup->references > 0)
		return;
	if (setup->about.release)
		setup->about.release(setup->about.owner);
	free(setup);
}

/* ---- From other threads -------------------------------------------------------------------------------------------- */

struct errand {
	struct http_task task;
	struct engine *engine;
	struct engine_setup setup;
	struct site_snapshot *sites;
	struct http_tls *client;
	site_id from;
	struct buf message;
};

static void post(struct engine *engine, void (*run)(struct http_task *task), const struct errand *what)
{
	struct errand *errand = calloc(1, sizeof(*errand));
	CHECK(errand);
	*errand = *what;
	errand->task = (struct http_task){.run = run};
	errand->engine = engine;
	http_loop_post(engine->loop, &errand->task);
}

static void take_setup(struct http_task *task)
{
	struct errand *errand = (struct errand *)task;
	struct engine *engine = errand->engine;
	struct setup *setup = calloc(1, sizeof(*setup));
	CHECK(setup);
	*setup = (struct setup){errand->setup, 1};
	engine_setup_drop(engine->setup);
	engine->setup = setup;
	engine_hooks_configure(engine);
	free(errand);
}

void engine_configure(struct engine *engine, const struct engine_setup *setup)
{
	post(engine, take_setup, &(struct errand){.setup = *setup});
}

/* Those that have come within reach are told at once what waits for them. */
static void meet(struct engine *engine, struct site_snapshot *before)
{
	for (uint32_t i = 0; i < engine->sites->places_count; i++) {
		const struct site_place *place = &engine->sites->places[i];
		uint32_t was = before ? site_snapshot_find(before, place->id) : SCOPE_NO_INDEX;
		bool met = was != SCOPE_NO_INDEX && before->places[was].state == place->state;
		if (place->id != engine->options.self && !met && engine_reachable(engine, place->id))
			replica_met(engine->replica, place->id, engine_now());
	}
	for (uint32_t i = 0; i < engine->sites->removed_count; i++)
		if (!before || !site_snapshot_is_removed(before, engine->sites->removed[i]))
			replica_site_removed(engine->replica, engine->sites->removed[i], engine_now());
	for (uint32_t i = 0; i < engine->sites->removed_count; i++)
		if (!before || !site_snapshot_is_removed(before, engine->sites->removed[i]))
			engine_names_removed(engine, engine->sites->removed[i]);
	engine_changed(engine);
	engine_fetches_hurry(engine);
	engine_givings_review(engine);
	engine_verifies_review(engine);
}

static void drop_sites(struct site_snapshot *sites, struct http_tls *client)
{
	if (sites)
		site_snapshot_drop(sites);
	if (client)
		http_tls_drop(client);
}

static void take_sites(struct http_task *task)
{
	struct errand *errand = (struct errand *)task;
	struct engine *engine = errand->engine;
	struct site_snapshot *before = engine->sites;
	struct http_tls *client = engine->client;
	engine->sites = errand->sites;
	engine->client = errand->client;
	if (engine->replica)
		meet(engine, before);
	engine_risks_meet(engine, before);
	drop_sites(before, client);
	free(errand);
}

void engine_set_sites(struct engine *engine, struct site_snapshot *sites, struct http_tls *client)
{
	post(engine, take_sites, &(struct errand){.sites = sites, .client = client});
}

static void take_message(struct http_task *task)
{
	struct errand *errand = (struct errand *)task;
	struct engine *engine = errand->engine;
	if (engine->replica) {
		replica_receive(engine->replica, errand->from, buf_str(&errand->message), engine_now());
		engine_changed_soon(engine);
	}
	buf_free(&errand->message);
	free(errand);
}

void engine_receive(struct engine *engine, site_id from, struct str message)
{
	struct errand errand = {.from = from};
	buf_put(&errand.message, message);
	post(engine, take_message, &errand);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------- */

static bool note_one(void *context, struct str key, struct str row)
{
	(void)key;
	(void)row;
	atomic_store(&((struct engine *)context)->any, true);
	return false;
}

static int start_replica(struct engine *engine, struct err *err)
{
	struct replica_options options = replica_options_default();
	options.self = engine->options.self;
	options.hash_key = engine->options.hash_key;
	options.loaded_most = ENGINE_LOADED;
	options.holds_containers = true; /* follow.c lets them go */
	struct replica_host host = {.context = engine,
	                            .get = engine_row_get,
	                            .put = engine_row_put,
	                            .remove = engine_row_remove,
	                            .scan = engine_row_scan,
	                            .send = hold_send,
	                            .execute = hold_run,
	                            .answer = hold_answer,
	                            .fetch = hold_fetch,
	                            .drop = hold_drop,
	                            .event = hold_event,
	                            .reachable = is_reachable,
	                            .random = draw};
	engine_standings_drop(engine);
	int code = engine_journal_replay(engine, err);
	if (code == 0)
		code = engine_changes_load(engine, err);
	if (code == 0 && engine_risks_load(engine) != 0)
		code = err_set(err, engine->failure.code, "the store cannot be read: %s", engine->failure.text);
	if (code == 0)
		code = engine_spread_load(engine, err);
	if (code == 0)
		code = replica_new(&engine->replica, &options, &host, engine_now(), err);
	if (code == 0)
		code = engine_names_start(engine, err);
	if (code == 0)
		engine_row_scan(engine, REPLICA_REPLICANTS, STR(""), STR(""), note_one, engine);
	if (code == 0)
		engine_changed(engine);
	return code;
}

/* So that an agent that knows of no journal finds all of it in the store. What fails here is done at the next start. */
static void settle_journal(struct engine *engine)
{
	struct err err = {0};
	if (engine->journal.at == 0)
		return;
	engine->failure = (struct err){0};
	if (engine_journal_replay(engine, &err) == 0)
		engine_commit(engine);
	else if (engine->session)
		store_abort(engine->session);
	engine->session = NULL;
}

static void *run_thread(void *context)
{
	struct engine *engine = context;
	http_loop_run(engine->loop);
	engine->ending = true;
	/* Here, since a session is of one thread. What services have answered is kept; but if something was about to be run, what was put is
	 * as if it had never been: kept, it would be in doubt at the next start. */
	engine_names_review(engine);
	if (engine->session && engine->failure.code == 0 && engine->runs_held == 0) {
		engine_changes_store(engine);
		engine_hooks_store(engine);
		engine_commit(engine);
	}
	if (engine->session)
		store_abort(engine->session);
	engine->session = NULL;
	settle_journal(engine);
	return NULL;
}

static void *run_disk(void *context)
{
	struct engine *engine = context;
	http_loop_run(engine->disk);
	return NULL;
}

/* The jobs that it still has are done, or disposed of: nobody waits for them any more. */
static void stop_disk(struct engine *engine)
{
	atomic_store(&engine->disk_stopping, true);
	if (engine->disk_started) {
		http_loop_stop(engine->disk);
		pthread_join(engine->disk_thread, NULL);
	}
	if (engine->disk)
		http_loop_free(engine->disk);
}

/* What nobody will do any more. */
static void drop_all(struct engine *engine)
{
	if (engine->session)
		store_abort(engine->session);
	engine->session = NULL;
	for (struct action *action = take_actions(engine), *next; action; action = next) {
		next = action->next;
		give_up(action, NULL);
	}
	engine_parts_drop(engine);
	engine_asks_drop(engine);
	engine_verifies_drop(engine);
	engine_givings_drop(engine);
	engine_bringings_drop(engine);
	while (engine->tickets)
		engine_ticket_drop(engine->tickets);
}

static void release(struct engine *engine)
{
	drop_all(engine);
	while (engine->runs)
		engine_run_free(engine->runs);
	engine_talks_free(engine);
	engine_sessions_free(engine);
	engine_fetches_free(engine);
	engine_hooks_free(engine);
	engine_changes_free(engine);
	engine_risks_free(engine);
	if (engine->children)
		cross_children_free(engine->children);
	engine->children = NULL;
	if (engine->replica)
		replica_free(engine->replica);
	http_pool_free(engine->pool);
	drop_sites(engine->sites, engine->client);
	engine_setup_drop(engine->setup);
	stop_disk(engine); /* before the loop that it may post to */
	if (engine->loop)
		http_loop_free(engine->loop);
	pthread_mutex_destroy(&engine->spools_lock);
	engine_journal_close(engine);
	engine_overlay_close(engine);
	engine_behind_drop(engine);
	engine_sieve_close(engine);
	engine_spread_close(engine);
	engine_standings_close(engine);
	if (engine->soon.fd >= 0)
		close(engine->soon.fd);
	if (engine->blobs >= 0)
		close(engine->blobs);
	if (engine->store)
		store_close(engine->store);
	pthread_mutex_destroy(&engine->figures_lock);
	trust_box_free(engine->box);
	buf_free(&engine->place);
	buf_free(&engine->sealed);
	buf_free(&engine->follow_ids);
	free(engine);
}

int engine_open(struct engine **out, const struct engine_options *options, struct err *err)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	CHECK(engine);
	engine->options = *options;
	engine->last = &engine->first;
	engine->flush.run = flush;
	engine->timer.fire = tick;
	engine->names_timer.fire = engine_names_tick;
	engine->follow_timer.fire = engine_follow_tick;
	engine->follow_all = true;
	pthread_mutex_init(&engine->figures_lock, NULL);
	engine->blobs = -1;
	engine->soon.fd = -1;
	pthread_mutex_init(&engine->spools_lock, NULL);
	engine_overlay_open(engine);
	engine_spread_open(engine);
	engine_standings_open(engine);
	map_init(&engine->risks.met, options->hash_key);
	struct store_options store = {
		.schema = &engine_schema, .folder = options->folder, .bytes_most = options->bytes_most};
	int code = trust_box_new(&engine->box, options->key, err);
	if (code == 0)
		code = store_open(&engine->store, &store, err);
	engine->options.key = STR("");
	if (code == 0) {
		engine_sieve_open(engine);
		engine_behind_open(engine);
		engine_journal_open(engine);
	}
	if (code == 0)
		code = engine_blobs_open(engine, err);
	if (code == 0)
		code = http_loop_new(&engine->loop, err);
	if (code == 0)
		code = open_soon(engine, err);
	if (code == 0)
		code = http_loop_new(&engine->disk, err);
	if (code == 0) {
		engine->pool = http_pool_new(engine->loop);
		code = start_replica(engine, err);
		if (code == 0)
			engine_blobs_sweep(engine);
		if (code == 0 && engine_commit(engine) != 0) { /* here, since a session is of one thread */
			*err = engine->failure;
			code = err->code;
		}
	}
	int failed = code == 0 ? pthread_create(&engine->disk_thread, NULL, run_disk, engine) : 0;
	engine->disk_started = code == 0 && failed == 0;
	if (code == 0 && failed == 0)
		engine_sieve_start(engine);
	if (code == 0 && failed == 0)
		failed = pthread_create(&engine->thread, NULL, run_thread, engine);
	if (failed)
		code = err_set(err, ERR_IO, "cannot start a thread: %s", strerror(failed));
	if (code)
		release(engine);
	else
		*out = engine;
	return code;
}

void engine_stop(struct engine *engine)
{
	if (!engine || engine->stopped)
		return;
	engine->stopped = true;
	http_loop_stop(engine->loop);
	pthread_join(engine->thread, NULL);
	http_loop_finish(engine->loop); /* what was posted meanwhile: it is freed, or kept until here */
	drop_all(engine);
}

void engine_close(struct engine *engine)
{
	if (!engine)
		return;
	engine_stop(engine);
	http_loop_finish(engine->loop);
	release(engine);
}
