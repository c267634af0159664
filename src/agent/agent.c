/* Wiring: threads with a loop and a proxy each, and the thread of control, which has a loop of its own.
 *
 *   start   read the configuration, open the fronts for every thread, start the threads, tell systemd that we are ready.
 *           No other site has to be reachable for that.
 *   reload  read the file again; open the fronts that are new; only when all of that went well, hand the new configuration
 *           to each loop. If anything fails, what was opened is closed and nothing has changed.
 *   stop    no new connections; requests under way end, or their time is over; a second signal does not wait
 *
 * The thread of control listens to signals, runs the jobs that the API hands over, and talks to the other sites (mesh.c).
 */
#include "agent/agent_int.h"

#include "agent/core_dump.h"
#include "agent/file.h"
#include "agent/notify.h"
#include "base/check.h"
#include "base/log_stderr.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct worker {
	struct agent *agent;
	pthread_t thread;
	bool started;
	struct http_loop *loop;
	struct proxy *proxy;
	/* the task that is posted to it, one at a time */
	struct http_task task;
	struct http_task drained; /* what it posts back */
	int *descriptors;
	struct proxy_config *config;
};

/* A snapshot on its way to a loop. */
struct delivery {
	struct http_task task;
	struct proxy *proxy;
	struct proxy_mesh *mesh;
};

/* A job on its way to the thread of control. */
struct errand {
	struct http_task task;
	struct agent *agent;
	struct api_job *job;
};

struct agent {
	const struct agent_options *options;
	struct log log;
	struct proxy_shared shared;
	struct api_agent api;
	struct http_loop *loop; /* of the thread of control */
	struct agent_mesh *mesh;
	struct agent_authority *authority;
	struct agent_renewal *renewal;
	struct worker *workers;
	uint32_t workers_count;
	struct proxy **proxies;
	pthread_mutex_t lock; /* of config */
	struct proxy_config *config;
	sem_t done; /* a worker has done what was posted */
	struct http_source signals;
	struct proxy_mesh *seen; /* what was published last */
	struct http_timer stop_timer;
	uint32_t draining; /* workers that have requests under way, once it stops */
	bool stopping;
	bool over; /* the loop of control has ended: jobs that are left are thrown away */
};

/* ---- Tasks for the workers -------------------------------------------------------------------------------------- */

static struct worker *worker_of(struct http_task *task)
{
	return (struct worker *)((char *)task - offsetof(struct worker, task));
}

static void configure_task(struct http_task *task)
{
	struct worker *worker = worker_of(task);
	proxy_configure(worker->proxy, worker->config, worker->descriptors);
	sem_post(&worker->agent->done);
}

static void deliver(struct http_task *task)
{
	struct delivery *delivery = (struct delivery *)task;
	proxy_set_mesh(delivery->proxy, delivery->mesh);
	proxy_mesh_drop(delivery->mesh);
	free(delivery);
}

/* The engine gets what the loops get. */
static void show_sites(struct agent *agent, struct engine *engine)
{
	struct proxy_mesh *mesh = agent->seen;
	engine_set_sites(engine, site_snapshot_keep(mesh->sites), mesh->client ? http_tls_keep(mesh->client) : NULL);
}

/* In the thread of control: every loop gets it, in the order in which they were made. */
static void publish(void *context, struct proxy_mesh *mesh)
{
	struct agent *agent = context;
	for (uint32_t w = 0; w < agent->workers_count; w++) {
		struct delivery *delivery = calloc(1, sizeof(*delivery));
		CHECK(delivery);
		*delivery = (struct delivery){{.run = deliver}, agent->workers[w].proxy, proxy_mesh_keep(mesh)};
		http_loop_post(agent->workers[w].loop, &delivery->task);
	}
	struct engine *engine = atomic_load(&agent->shared.engine);
	proxy_mesh_drop(agent->seen);
	agent->seen = mesh;
	if (engine)
		show_sites(agent, engine);
}

static void drained_task(struct http_task *task)
{
	struct worker *worker = (struct worker *)((char *)task - offsetof(struct worker, drained));
	if (--worker->agent->draining == 0)
		http_loop_stop(worker->agent->loop);
}

/* In the worker's thread. */
static void drained(void *context)
{
	struct worker *worker = context;
	worker->drained.run = drained_task;
	http_loop_post(worker->agent->loop, &worker->drained);
}

static void stop_task(struct http_task *task)
{
	struct worker *worker = worker_of(task);
	proxy_stop(worker->proxy, drained, worker);
}

static void *run_worker(void *context)
{
	struct worker *worker = context;
	http_loop_run(worker->loop);
	return NULL;
}

static void wait_done(struct agent *agent)
{
	while (sem_wait(&agent->done) != 0)
		CHECK(errno == EINTR);
}

/* ---- Fronts ----------------------------------------------------------------------------------------------------- */

static uint32_t fronts_count(const struct proxy_config *config)
{
	return 2 + config->services_count;
}

/* The n-th address to listen on; NULL for a peer's address that is not there. */
static const struct http_address *front_address(const struct proxy_config *config, uint32_t n)
{
	if (n == 0)
		return &config->api;
	if (n == 1)
		return config->meshed ? &config->peer : NULL;
	return &config->services[n - 2].front;
}

static bool listens_on(const struct proxy_config *config, const char *text)
{
	for (uint32_t i = 0; config && i < fronts_count(config); i++) {
		const struct http_address *address = front_address(config, i);
		if (address && strcmp(address->text, text) == 0)
			return true;
	}
	return false;
}

static void close_descriptors(struct agent *agent, uint32_t count)
{
	for (uint32_t w = 0; w < agent->workers_count; w++) {
		for (uint32_t i = 0; agent->workers[w].descriptors && i < count; i++)
			if (agent->workers[w].descriptors[i] >= 0)
				close(agent->workers[w].descriptors[i]);
		free(agent->workers[w].descriptors);
		agent->workers[w].descriptors = NULL;
	}
}

/* Another program on the address would share it with us, since the threads do: refused before anything listens. */
static int check_free(const struct http_address *address, struct err *err)
{
	int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	if (fd < 0)
		return err_set(err, ERR_IO, "cannot open a socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	int code = 0;
	if (bind(fd, (const struct sockaddr *)&address->socket, address->length) != 0)
		code = err_set(err, ERR_IO, "cannot listen on %s: %s", address->text, strerror(errno));
	close(fd);
	return code;
}

/* A descriptor per worker for each address that is not open yet. All, or none. */
static int open_fronts(struct agent *agent, const struct proxy_config *config, struct err *err)
{
	uint32_t count = fronts_count(config);
	int code = 0;
	for (uint32_t w = 0; w < agent->workers_count; w++) {
		int *descriptors = agent->workers[w].descriptors = calloc(count, sizeof(int));
		CHECK(descriptors);
		for (uint32_t i = 0; i < count; i++)
			descriptors[i] = -1;
	}
	for (uint32_t i = 0; code == 0 && i < count; i++) {
		const struct http_address *address = front_address(config, i);
		if (!address || listens_on(agent->config, address->text))
			continue;
		code = check_free(address, err);
		for (uint32_t w = 0; code == 0 && w < agent->workers_count; w++)
			code = http_listen(address, &agent->workers[w].descriptors[i], err);
	}
	if (code)
		close_descriptors(agent, count);
	return code;
}

/* Hands a configuration whose fronts are open to every loop, and waits until all have it. */
static void apply(struct agent *agent, struct proxy_config *config)
{
	/* First, since a loop that has its fronts may be asked for it at once by the API. */
	pthread_mutex_lock(&agent->lock);
	struct proxy_config *before = agent->config;
	agent->config = config;
	pthread_mutex_unlock(&agent->lock);
	for (uint32_t w = 0; w < agent->workers_count; w++) {
		agent->workers[w].config = config;
		agent->workers[w].task.run = configure_task;
		http_loop_post(agent->workers[w].loop, &agent->workers[w].task);
	}
	for (uint32_t w = 0; w < agent->workers_count; w++)
		wait_done(agent);
	for (uint32_t w = 0; w < agent->workers_count; w++) {
		free(agent->workers[w].descriptors);
		agent->workers[w].descriptors = NULL;
	}
	agent->log.level = config->log_level;
	if (before)
		proxy_config_drop(before);
}

/* ---- Reload ----------------------------------------------------------------------------------------------------- */

static int check_reload(const struct proxy_config *before, const struct proxy_config *after, struct err *err)
{
	if (!str_equal(before->site, after->site))
		return err_set(err, ERR_INVALID,
		               "`site` cannot change while the agent runs: it is `%.*s`; restart the agent for `%.*s`",
		               STR_FMT(before->site), STR_FMT(after->site));
	if (before->threads != after->threads)
		return err_set(err, ERR_INVALID,
		               "`threads` cannot change while the agent runs: it is %u; restart the agent for %u",
		               before->threads, after->threads);
	if (strcmp(before->state, after->state) != 0)
		return err_set(err, ERR_INVALID,
		               "`state` cannot change while the agent runs: it is `%s`; restart the agent for `%s`",
		               before->state, after->state);
	return 0;
}

/* ---- Replicated resources ---------------------------------------------------------------------------------------- */

/* What the engine works with, for as long as it does. */
struct engine_wares {
	struct proxy_config *config;
	struct proxy_gate *gate;
	struct proxy_carriage carriage;
	struct engine_service services[LIMIT_AGENT_SERVICES];
};

static void wares_free(void *owner)
{
	struct engine_wares *wares = owner;
	proxy_gate_free(wares->gate);
	proxy_config_drop(wares->config);
	free(wares);
}

static void set_up_engine(struct engine *engine, struct proxy_config *config, struct proxy_shared *shared)
{
	struct engine_wares *wares = calloc(1, sizeof(*wares));
	CHECK(wares);
	wares->config = proxy_config_keep(config);
	wares->gate = proxy_gate_new(shared->quotas, config);
	wares->carriage = (struct proxy_carriage){shared->memory, wares->config};
	for (uint32_t i = 0; i < config->services_count; i++)
		wares->services[i] = (struct engine_service){.name = config->services[i].name,
		                                             .instances = config->services[i].instances,
		                                             .instances_count = config->services[i].instances_count,
		                                             .tls = config->services[i].instances_tls,
		                                             .names = config->services[i].instances_names,
		                                             .credential = config->services[i].credential};
	engine_configure(engine, &(struct engine_setup){.glue = config->glue,
	                                                .services = wares->services,
	                                                .services_count = config->services_count,
	                                                .hooks = config->hooks,
	                                                .hooks_count = config->hooks_count,
	                                                .answer_ms = config->timeouts.answer_ms,
	                                                .api = str_of(config->api.text),
	                                                .gate = proxy_gate_engine(wares->gate),
	                                                .carrier = proxy_carriage_engine(&wares->carriage),
	                                                .owner = wares,
	                                                .release = wares_free});
}

/* The key of what the store keeps secret: made once, and kept beside the site's own. */
static int take_store_key(const char *state, struct buf *key, struct err *err)
{
	struct buf path = {0};
	buf_printf(&path, "%s/store.key", state);
	int code = 0;
	if (access(buf_c(&path), F_OK) == 0)
		code = agent_secret_read(buf_c(&path), TRUST_BOX_KEY_BYTES + 1, key, err);
	else if ((code = trust_box_key_make(key, err)) == 0)
		code = agent_file_write(state, "store.key", buf_str(key), true, err);
	buf_free(&path);
	return code;
}

/* A site that is part of a mesh has a store. One that cannot be used is told; everything else goes on without it. */
static void agent_engine_configure(struct agent *agent, struct proxy_config *config)
{
	struct engine *engine = atomic_load(&agent->shared.engine);
	struct agent_identity *identity = agent_mesh_identity(agent->mesh);
	struct buf folder = {0};
	struct err err = {0};
	struct buf key = {0};
	if (!engine && identity && take_store_key(config->state, &key, &err) != 0)
		log_event(&agent->log, LOG_ERROR, "replicated resources are not available", LOG_STR("error", str_of(err.text)));
	else if (!engine && identity) {
		buf_printf(&folder, "%s/store", config->state);
		struct engine_options options = {.folder = buf_c(&folder),
		                                 .self = identity->about.id,
		                                 .log = &agent->log,
		                                 .hash_key = agent->shared.hash_key,
		                                 .key = buf_str(&key)};
		if (engine_open(&engine, &options, &err) != 0)
			log_event(&agent->log, LOG_ERROR, "replicated resources are not available",
			          LOG_STR("error", str_of(err.text)));
		else if (agent->seen)
			show_sites(agent, engine);
	}
	if (key.at)
		explicit_bzero(key.at, key.length);
	buf_free(&key);
	buf_free(&folder);
	if (engine)
		set_up_engine(engine, config, &agent->shared);
	atomic_store(&agent->shared.engine, engine);
}

/* The port for other agents comes first: it publishes what the loops need to open theirs. */
static int take_config(struct agent *agent, struct proxy_config *config, struct err *err)
{
	int code = agent_mesh_check(config, err);
	if (code == 0)
		code = open_fronts(agent, config, err);
	if (code)
		return code;
	code = agent_mesh_configure(agent->mesh, config, err);
	if (code) {
		close_descriptors(agent, fronts_count(config));
	} else {
		agent_engine_configure(agent, config);
		apply(agent, config);
	}
	return code;
}

static int reload_file(struct agent *agent, struct err *err)
{
	struct proxy_config *config;
	agent_notify(AGENT_NOTIFY_RELOADING);
	int code = agent_config_load(agent->options, &config, err);
	if (code == 0) {
		code = check_reload(agent->config, config, err);
		if (code == 0)
			code = take_config(agent, config, err);
		if (code)
			proxy_config_drop(config);
	}
	if (code == 0)
		log_event(&agent->log, LOG_INFO, "configuration reloaded", LOG_STR("file", str_of(agent->options->path)));
	else
		log_event(&agent->log, LOG_ERROR, "configuration refused; the old one stays",
		          LOG_STR("error", str_of(err->text)));
	agent_notify(AGENT_NOTIFY_READY);
	return code;
}

/* ---- Jobs of the API -------------------------------------------------------------------------------------------- */

static void run_job(struct agent *agent, struct api_job *job)
{
	if (api_job_is_reload(job)) {
		struct err err = {0};
		if (agent->stopping)
			err_set(&err, ERR_UNAVAILABLE, "the agent is stopping");
		else
			reload_file(agent, &err);
		api_job_reloaded(job, err.text);
		return;
	}
	agent_mesh_catch_up(agent->mesh);
	struct agent_identity *identity = agent_mesh_identity(agent->mesh);
	struct api_mesh mesh = {.context = agent->authority,
	                        .functions = &agent_authority_functions,
	                        .site = agent_mesh_site(agent->mesh),
	                        .roots = identity ? identity->roots : NULL,
	                        .signs = identity && identity->root_key ? trust_key_id(identity->root_key) : 0,
	                        .seal = agent_mesh_seal(agent->mesh),
	                        .config = agent->config,
	                        .paths = agent->shared.paths,
	                        .now = agent_now()};
	api_job_run(job, &mesh);
}

static void errand_task(struct http_task *task)
{
	struct errand *errand = (struct errand *)task;
	if (errand->agent->over)
		api_job_free(errand->job);
	else
		run_job(errand->agent, errand->job);
	free(errand);
}

/* From a loop's thread. */
static void ask(void *context, struct api_job *job)
{
	struct agent *agent = context;
	struct errand *errand = calloc(1, sizeof(*errand));
	CHECK(errand);
	*errand = (struct errand){{.run = errand_task}, agent, job};
	http_loop_post(agent->loop, &errand->task);
}

static struct engine *current_engine(void *context)
{
	return atomic_load(&((struct agent *)context)->shared.engine);
}

static struct proxy_config *current_config(void *context)
{
	struct agent *agent = context;
	pthread_mutex_lock(&agent->lock);
	struct proxy_config *config = proxy_config_keep(agent->config);
	pthread_mutex_unlock(&agent->lock);
	return config;
}

/* ---- Start and stop --------------------------------------------------------------------------------------------- */

/* Each connection takes a descriptor, and most requests two. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void stop_late(struct http_timer *timer)
{
	struct agent *agent = (struct agent *)((char *)timer - offsetof(struct agent, stop_timer));
	log_event(&agent->log, LOG_WARN, "stopped with requests under way");
	http_loop_stop(agent->loop);
}

static void stop(struct agent *agent)
{
	if (agent->stopping) { /* told twice: at once, then */
		stop_late(&agent->stop_timer);
		return;
	}
	agent->stopping = true;
	log_event(&agent->log, LOG_INFO, "stopping");
	agent_notify(AGENT_NOTIFY_STOPPING);
	agent_mesh_leave(agent->mesh);
	agent->draining = agent->workers_count;
	for (uint32_t w = 0; w < agent->workers_count; w++) {
		agent->workers[w].task.run = stop_task;
		http_loop_post(agent->workers[w].loop, &agent->workers[w].task);
	}
	http_timer_set(agent->loop, &agent->stop_timer, agent->config->timeouts.stop_ms);
}

static void signalled(struct http_source *source, uint32_t events)
{
	(void)events;
	struct agent *agent = (struct agent *)((char *)source - offsetof(struct agent, signals));
	struct signalfd_siginfo info;
	while (read(source->fd, &info, sizeof(info)) == sizeof(info)) {
		struct err err = {0};
		if (info.ssi_signo != SIGHUP)
			stop(agent);
		else if (!agent->stopping)
			reload_file(agent, &err);
	}
}

static int open_control(struct agent *agent, struct err *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is told by the write */
	int code = http_loop_new(&agent->loop, err);
	if (code)
		return code;
	agent->stop_timer.fire = stop_late;
	agent->signals.ready = signalled;
	agent->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (agent->signals.fd < 0)
		return err_set(err, ERR_IO, "cannot wait for signals: %s", strerror(errno));
	struct agent_mesh_options mesh = {.loop = agent->loop,
	                                  .log = &agent->log,
	                                  .hash_key = agent->shared.hash_key,
	                                  .publish = publish,
	                                  .context = agent};
	agent->mesh = agent_mesh_new(&mesh);
	agent->authority = agent_authority_new(agent->mesh);
	agent->renewal = agent_renewal_new(agent->mesh);
	return http_loop_add(agent->loop, &agent->signals, EPOLLIN, err);
}

static int start_workers(struct agent *agent, uint32_t count, struct err *err)
{
	agent->workers = calloc(count, sizeof(*agent->workers));
	agent->proxies = calloc(count, sizeof(struct proxy *));
	CHECK(agent->workers && agent->proxies);
	for (uint32_t w = 0; w < count; w++) {
		struct worker *worker = &agent->workers[w];
		worker->agent = agent;
		int code = http_loop_new(&worker->loop, err);
		if (code)
			return code;
		worker->proxy = agent->proxies[w] = proxy_new(worker->loop, &agent->shared);
		agent->workers_count++;
	}
	agent->api = (struct api_agent){.context = agent,
	                                .config = current_config,
	                                .engine = current_engine,
	                                .proxies_count = count,
	                                .proxies = agent->proxies,
	                                .ask = ask};
	for (uint32_t w = 0; w < count; w++) {
		int failed = pthread_create(&agent->workers[w].thread, NULL, run_worker, &agent->workers[w]);
		if (failed)
			return err_set(err, ERR_IO, "cannot start a thread: %s", strerror(failed));
		agent->workers[w].started = true;
	}
	return 0;
}

static void stop_workers(struct agent *agent)
{
	for (uint32_t w = 0; w < agent->workers_count; w++) {
		struct worker *worker = &agent->workers[w];
		if (worker->started) {
			http_loop_stop(worker->loop);
			pthread_join(worker->thread, NULL);
		}
	}
}

static void free_workers(struct agent *agent)
{
	for (uint32_t w = 0; w < agent->workers_count; w++) {
		struct worker *worker = &agent->workers[w];
		http_loop_finish(worker->loop); /* answers of the API are for exchanges that are still there */
		proxy_free(worker->proxy);
		http_loop_free(worker->loop);
	}
	if (agent->loop)
		http_loop_finish(agent->loop); /* the last words of the workers, which lie in their memory */
	free(agent->workers);
	free(agent->proxies);
}

static void free_agent(struct agent *agent)
{
	agent->over = true;
	stop_workers(agent);
	struct engine *engine = atomic_exchange(&agent->shared.engine, NULL);
	engine_stop(engine); /* it has answers for the loops, until here */
	free_workers(agent);
	engine_close(engine);
	proxy_mesh_drop(agent->seen);
	agent_renewal_free(agent->renewal);
	agent_authority_free(agent->authority);
	agent_mesh_free(agent->mesh);
	if (agent->signals.fd >= 0)
		close(agent->signals.fd);
	if (agent->loop)
		http_loop_free(agent->loop);
	proxy_config_drop(agent->config);
	if (agent->shared.memory)
		proxy_memory_free(agent->shared.memory);
	proxy_paths_free(agent->shared.paths);
	proxy_quotas_free(agent->shared.quotas);
	sem_destroy(&agent->done);
	pthread_mutex_destroy(&agent->lock);
}

static int start(struct agent *agent, struct err *err)
{
	struct proxy_config *config;
	int code = agent->options->allow_core ? 0 : agent_forbid_core(err); /* before it has any secret */
	if (code == 0)
		code = agent_config_load(agent->options, &config, err);
	if (code)
		return code;
	agent->log.level = config->log_level;
	if (agent->options->allow_core)
		log_event(&agent->log, LOG_WARN, "a crash would leave a core, with all secrets in it");
	code = open_control(agent, err);
	if (code == 0)
		code = start_workers(agent, config->threads, err);
	if (code == 0)
		code = take_config(agent, config, err);
	if (code) {
		proxy_config_drop(config);
		return code;
	}
	log_event(&agent->log, LOG_INFO, "ready", LOG_STR("site", config->site),
	          LOG_INT("services", config->services_count), LOG_INT("threads", config->threads));
	agent_notify(AGENT_NOTIFY_READY);
	return 0;
}

int agent_run(const struct agent_options *options)
{
	struct agent agent = {
		.options = options, .log = {.level = LOG_INFO, .sink = log_stderr_sink()}, .signals = {.fd = -1}};
	struct err err = {0};
	ssize_t got = getrandom(&agent.shared.hash_key, sizeof(agent.shared.hash_key), 0);
	CHECK(got == sizeof(agent.shared.hash_key));
	sem_init(&agent.done, 0, 0);
	pthread_mutex_init(&agent.lock, NULL);
	agent.shared.log = &agent.log;
	agent.shared.memory = proxy_memory_new(agent.shared.hash_key);
	agent.shared.paths = proxy_paths_new(agent.shared.hash_key);
	agent.shared.quotas = proxy_quotas_new();
	agent.shared.api = api_handle;
	agent.shared.api_context = &agent.api;
	raise_descriptor_limit();
	int code = start(&agent, &err);
	if (code)
		log_event(&agent.log, LOG_ERROR, "cannot start", LOG_STR("error", str_of(err.text)));
	else
		http_loop_run(agent.loop);
	free_agent(&agent);
	return code ? 1 : 0;
}
