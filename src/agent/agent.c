/* Wiring: threads with a loop and a proxy each, and the thread of control, which listens to signals.
 *
 *   start   read the configuration, open the fronts for every thread, start the threads, tell systemd that we are ready
 *   reload  read the file again; open the fronts that are new; only when all of that went well, hand the new configuration
 *           to each loop. If anything fails, what was opened is closed and nothing has changed.
 *   stop    no new connections; requests under way end, or their time is over; a second signal does not wait
 */
#include "agent/agent.h"

#include "agent/config.h"
#include "agent/notify.h"
#include "api/api.h"
#include "base/check.h"
#include "base/log_stderr.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
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
	int *descriptors;
	struct proxy_config *config;
};

struct reload {
	struct http_task task;
	struct agent *agent;
	struct proxy_exchange *exchange;
	struct http_loop *loop;
	struct reload *next;
	char error[LIMIT_ERROR_TEXT_BYTES];
};

struct agent {
	const struct agent_options *options;
	struct log log;
	struct proxy_shared shared;
	struct api_agent api;
	struct worker *workers;
	uint32_t workers_count;
	struct proxy **proxies;
	pthread_mutex_t lock; /* of config and reloads */
	struct proxy_config *config;
	struct reload *reloads; /* asked for by the API */
	bool stopping;          /* none is taken any more */
	int wake;
	sem_t done; /* a worker has done what was posted */
	int signals;
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

static void drained(void *context)
{
	struct worker *worker = context;
	sem_post(&worker->agent->done);
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
		return config->peer.length ? &config->peer : NULL;
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
	return 0;
}

static int reload_file(struct agent *agent, struct err *err)
{
	struct proxy_config *config;
	agent_notify(AGENT_NOTIFY_RELOADING);
	int code = agent_config_load(agent->options, &config, err);
	if (code == 0) {
		code = check_reload(agent->config, config, err);
		if (code == 0)
			code = open_fronts(agent, config, err);
		if (code)
			proxy_config_drop(config);
	}
	if (code == 0) {
		apply(agent, config);
		log_event(&agent->log, LOG_INFO, "configuration reloaded", LOG_STR("file", str_of(agent->options->path)));
	} else {
		log_event(&agent->log, LOG_ERROR, "configuration refused; the old one stays",
		          LOG_STR("error", str_of(err->text)));
	}
	agent_notify(AGENT_NOTIFY_READY);
	return code;
}

static void reload_answer(struct http_task *task)
{
	struct reload *reload = (struct reload *)task;
	api_reload_done(reload->exchange, reload->error);
	free(reload);
}

/* From a loop's thread: the thread of control does it. */
static void reload_asked(void *context, const struct proxy_call *call)
{
	struct agent *agent = context;
	struct reload *reload = calloc(1, sizeof(*reload));
	CHECK(reload);
	reload->exchange = call->exchange;
	reload->loop = call->loop;
	reload->task.run = reload_answer;
	pthread_mutex_lock(&agent->lock);
	bool stopping = agent->stopping;
	if (!stopping) {
		reload->next = agent->reloads;
		agent->reloads = reload;
	}
	pthread_mutex_unlock(&agent->lock);
	if (stopping) {
		free(reload);
		api_reload_done(call->exchange, "the agent is stopping");
		return;
	}
	uint64_t one = 1;
	ssize_t put = write(agent->wake, &one, sizeof(one));
	(void)put;
}

static struct reload *take_reloads(struct agent *agent, bool stopping)
{
	pthread_mutex_lock(&agent->lock);
	struct reload *reload = agent->reloads;
	agent->reloads = NULL;
	agent->stopping = stopping;
	pthread_mutex_unlock(&agent->lock);
	return reload;
}

static void answer_reloads(struct reload *reload, const char *error)
{
	for (struct reload *next; reload; reload = next) {
		next = reload->next;
		memcpy(reload->error, error, strlen(error) + 1);
		http_loop_post(reload->loop, &reload->task);
	}
}

/* One reading of the file answers all that asked for it before. */
static void reload_for_api(struct agent *agent)
{
	uint64_t count;
	ssize_t got = read(agent->wake, &count, sizeof(count));
	(void)got;
	struct reload *reload = take_reloads(agent, false);
	if (!reload)
		return;
	struct err err = {0};
	reload_file(agent, &err);
	answer_reloads(reload, err.text);
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

static int open_signals(struct agent *agent, struct err *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	agent->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	agent->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (agent->signals < 0 || agent->wake < 0)
		return err_set(err, ERR_IO, "cannot wait for signals: %s", strerror(errno));
	return 0;
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
	                                .proxies_count = count,
	                                .proxies = agent->proxies,
	                                .reload = reload_asked};
	for (uint32_t w = 0; w < count; w++) {
		int failed = pthread_create(&agent->workers[w].thread, NULL, run_worker, &agent->workers[w]);
		if (failed)
			return err_set(err, ERR_IO, "cannot start a thread: %s", strerror(failed));
		agent->workers[w].started = true;
	}
	return 0;
}

/* Waits until all workers have drained, the time is over, or a second signal comes. */
static void wait_drained(struct agent *agent)
{
	uint64_t left_ms = agent->config->timeouts.stop_ms;
	for (uint32_t w = 0; w < agent->workers_count;) {
		if (sem_trywait(&agent->done) == 0) {
			w++;
			continue;
		}
		struct pollfd wait = {.fd = agent->signals, .events = POLLIN};
		uint64_t step_ms = left_ms < 20 ? left_ms : 20;
		struct signalfd_siginfo info = {0};
		if (step_ms > 0 && poll(&wait, 1, (int)step_ms) > 0 &&
		    read(agent->signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (step_ms == 0 || info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) {
			log_event(&agent->log, LOG_WARN, "stopped with requests under way");
			return;
		}
		left_ms -= step_ms;
	}
}

static void stop_workers(struct agent *agent)
{
	agent_notify(AGENT_NOTIFY_STOPPING);
	answer_reloads(take_reloads(agent, true), "the agent is stopping");
	for (uint32_t w = 0; w < agent->workers_count; w++) {
		agent->workers[w].task.run = stop_task;
		http_loop_post(agent->workers[w].loop, &agent->workers[w].task);
	}
	wait_drained(agent);
}

static void free_agent(struct agent *agent)
{
	for (uint32_t w = 0; w < agent->workers_count; w++) {
		struct worker *worker = &agent->workers[w];
		if (worker->started) {
			http_loop_stop(worker->loop);
			pthread_join(worker->thread, NULL);
		}
		proxy_free(worker->proxy);
		http_loop_free(worker->loop);
	}
	free(agent->workers);
	free(agent->proxies);
	if (agent->config)
		proxy_config_drop(agent->config);
	if (agent->shared.memory)
		proxy_memory_free(agent->shared.memory);
	if (agent->signals >= 0)
		close(agent->signals);
	if (agent->wake >= 0)
		close(agent->wake);
	sem_destroy(&agent->done);
	pthread_mutex_destroy(&agent->lock);
}

/* Signals and reloads, until it is to stop. */
static void control(struct agent *agent)
{
	for (;;) {
		struct pollfd waits[] = {{.fd = agent->signals, .events = POLLIN}, {.fd = agent->wake, .events = POLLIN}};
		if (poll(waits, 2, -1) < 0)
			continue;
		if (waits[1].revents)
			reload_for_api(agent);
		struct signalfd_siginfo info;
		if (!waits[0].revents || read(agent->signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (info.ssi_signo != SIGHUP)
			return;
		struct err err = {0};
		reload_file(agent, &err);
	}
}

static int start(struct agent *agent, struct err *err)
{
	struct proxy_config *config;
	int code = agent_config_load(agent->options, &config, err);
	if (code)
		return code;
	agent->log.level = config->log_level;
	code = open_signals(agent, err);
	if (code == 0)
		code = start_workers(agent, config->threads, err);
	if (code == 0)
		code = open_fronts(agent, config, err);
	if (code) {
		proxy_config_drop(config);
		return code;
	}
	apply(agent, config);
	log_event(&agent->log, LOG_INFO, "ready", LOG_STR("site", config->site),
	          LOG_INT("services", config->services_count), LOG_INT("peers", config->peers_count),
	          LOG_INT("threads", config->threads));
	agent_notify(AGENT_NOTIFY_READY);
	return 0;
}

int agent_run(const struct agent_options *options)
{
	struct agent agent = {
		.options = options, .log = {.level = LOG_INFO, .sink = log_stderr_sink()}, .signals = -1, .wake = -1};
	struct err err = {0};
	ssize_t got = getrandom(&agent.shared.hash_key, sizeof(agent.shared.hash_key), 0);
	CHECK(got == sizeof(agent.shared.hash_key));
	sem_init(&agent.done, 0, 0);
	pthread_mutex_init(&agent.lock, NULL);
	agent.shared.log = &agent.log;
	agent.shared.memory = proxy_memory_new(agent.shared.hash_key);
	agent.shared.api = api_handle;
	agent.shared.api_context = &agent.api;
	raise_descriptor_limit();
	int code = start(&agent, &err);
	if (code) {
		log_event(&agent.log, LOG_ERROR, "cannot start", LOG_STR("error", str_of(err.text)));
	} else {
		control(&agent);
		log_event(&agent.log, LOG_INFO, "stopping");
		stop_workers(&agent);
	}
	free_agent(&agent);
	return code ? 1 : 0;
}
