/* cheops-sample: one of three small REST services, to try things with. Arguments, environment, signals. */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "access_log.h"
#include "disk.h"
#include "limits.h"
#include "listener.h"
#include "login.h"
#include "memory.h"
#include "peers.h"
#include "server.h"

enum { EXIT_USAGE = 2 };

static const char help[] =
	"usage: cheops-sample SERVICE --listen HOST:PORT --data DIR [--forward MODE] [--access-log FILE]\n"
	"                             [--quota N] [--token-key FILE]\n"
	"\n"
	"One of three small REST services that work together:\n"
	"  image      images: records, and their bytes; secrets\n"
	"  compute    servers, which boot from images; volumes, stacks, projects\n"
	"  network    ports on the site's flat network, and pools\n"
	"\n"
	"Options:\n"
	"  --listen HOST:PORT   where to serve; port 0 takes a free one, and says which\n"
	"  --data DIR           where the state is kept; made if it is not there\n"
	"  --forward MODE       which headers of a request go along with the calls made on its behalf (default: headers)\n"
	"                         headers      all but those of one connection or one body\n"
	"                         baggage      baggage\n"
	"                         trace        traceparent and tracestate\n"
	"                         request-id   X-Request-Id\n"
	"                         header=NAME  NAME\n"
	"                         none         none\n"
	"  --access-log FILE    append one JSON line per request, with all of its headers\n"
	"  --quota N            at most N images, servers, pools and so on: 403 for more\n"
	"  --token-key FILE     ask everybody for a token that was made with this key: POST /tokens makes one\n"
	"  -h, --help           this help\n"
	"\n"
	"Environment:\n"
	"  SITE_NAME            where this instance is, as /whoami answers (default: the host's name)\n"
	"  COMPUTE_URL, IMAGE_URL, NETWORK_URL\n"
	"                       where the other services are, such as http://127.0.0.1:9292\n"
	"  FORWARD              default of --forward\n"
	"\n"
	"SIGTERM or SIGINT ends it once the requests being answered are done. Exit status: 0 fine, 1 failed, 2 wrong "
	"usage.\n";

static const struct service *const services[] = {&compute_service, &image_service, &network_service};

struct arguments {
	const struct service *service;
	const char *listen, *data, *forward, *access_log, *quota, *token_key;
	unsigned long quota_records;
	const char *site;
	char host[256]; /* for `site` */
};

/* Says what is wrong, ending with the value, and returns the status to exit with. */
static int wrong(const char *what, const char *value)
{
	fprintf(stderr, "cheops-sample: %s%s\nTry: cheops-sample --help\n", what, value);
	return EXIT_USAGE;
}

/* ---- arguments ---------------------------------------------------------------------------------------------------- */

/* -1, or the status to exit with. */
static int parse_options(int argc, char **argv, struct arguments *arguments)
{
	static const struct option known[] = {
		{"listen", required_argument, NULL, 'l'},  {"data", required_argument, NULL, 'd'},
		{"forward", required_argument, NULL, 'f'}, {"access-log", required_argument, NULL, 'a'},
		{"quota", required_argument, NULL, 'q'},   {"token-key", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
	};
	for (int option; (option = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
		switch (option) {
		case 'l': arguments->listen = optarg; break;
		case 'd': arguments->data = optarg; break;
		case 'f': arguments->forward = optarg; break;
		case 'a': arguments->access_log = optarg; break;
		case 'q': arguments->quota = optarg; break;
		case 't': arguments->token_key = optarg; break;
		case 'h': return fputs(help, stdout) < 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
		default: fputs("Try: cheops-sample --help\n", stderr); return EXIT_USAGE; /* getopt_long said what is wrong */
		}
	}
	return -1;
}

static int parse_service(int argc, char **argv, struct arguments *arguments)
{
	if (optind == argc)
		return wrong("which service? One of: compute, image, network", "");
	if (optind + 1 < argc)
		return wrong("one service at a time; too much: ", argv[optind + 1]);
	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
		if (strcmp(argv[optind], services[i]->name) == 0)
			arguments->service = services[i];
	}
	if (arguments->service == NULL)
		return wrong("no such service; there are compute, image and network, but not ", argv[optind]);
	if (arguments->listen == NULL)
		return wrong("--listen HOST:PORT is missing", "");
	if (arguments->data == NULL || arguments->data[0] == '\0')
		return wrong("--data DIR is missing", "");
	return -1;
}

static int parse_quota(struct arguments *arguments)
{
	if (arguments->quota == NULL)
		return -1;
	char *end;
	arguments->quota_records = strtoul(arguments->quota, &end, 10);
	bool good = arguments->quota[0] >= '1' && arguments->quota[0] <= '9' && *end == '\0';
	return good && arguments->quota_records <= LIMIT_RECORDS
	           ? -1
	           : wrong("--quota must be a number from 1 to 100000, not ", arguments->quota);
}

/* What is set but empty counts as not set. */
static const char *environment(const char *name)
{
	const char *value = getenv(name);
	return value == NULL || value[0] == '\0' ? NULL : value;
}

static int find_site(struct arguments *arguments)
{
	arguments->site = environment("SITE_NAME");
	if (arguments->site == NULL) {
		if (gethostname(arguments->host, sizeof(arguments->host) - 1) != 0)
			snprintf(arguments->host, sizeof(arguments->host), "unknown");
		arguments->site = arguments->host;
	}
	json_t *text = json_string(arguments->site);
	bool readable = text != NULL;
	json_decref(text);
	return readable ? -1 : wrong("SITE_NAME is not UTF-8", "");
}

static int parse(int argc, char **argv, struct arguments *arguments, struct peers *peers)
{
	int status = parse_options(argc, argv, arguments);
	if (status < 0)
		status = parse_service(argc, argv, arguments);
	if (status < 0)
		status = parse_quota(arguments);
	if (status >= 0)
		return status;
	if (arguments->forward == NULL)
		arguments->forward = environment("FORWARD");
	if (arguments->forward == NULL)
		arguments->forward = "headers";
	if (!forward_parse(&peers->forward, arguments->forward))
		return wrong("accepted by --forward: headers, baggage, trace, request-id, header=NAME, none; but not ",
		             arguments->forward);
	return find_site(arguments);
}

/* ---- the other services ------------------------------------------------------------------------------------------- */

static const char *const url_variables[PEERS_COUNT] = {
	[PEER_COMPUTE] = "COMPUTE_URL",
	[PEER_IMAGE] = "IMAGE_URL",
	[PEER_NETWORK] = "NETWORK_URL",
};

static int find_peers(struct peers *peers)
{
	for (int i = 0; i < PEERS_COUNT; i++) {
		const char *url = environment(url_variables[i]);
		if (url == NULL)
			continue;
		if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
			fprintf(stderr, "cheops-sample: %s is '%s'; it must begin with http:// or https://\n", url_variables[i],
			        url);
			return EXIT_USAGE;
		}
		char *trimmed = text_of("%s", url);
		for (size_t length = strlen(trimmed); length > 0 && trimmed[length - 1] == '/'; length--)
			trimmed[length - 1] = '\0'; /* paths begin with one */
		peers->urls[i] = trimmed;
	}
	return -1;
}

static void forget_peers(struct peers *peers)
{
	for (int i = 0; i < PEERS_COUNT; i++)
		free((char *)peers->urls[i]);
}

/* ---- running ------------------------------------------------------------------------------------------------------ */

/* A thousand connections and as many calls need more files than many systems allow at first. */
static void allow_many_files(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static bool take_data(const struct arguments *arguments)
{
	int dir = disk_open_dir(arguments->data);
	char *name = text_of("%s.lock", arguments->service->name);
	int status = dir < 0 ? dir : disk_lock(dir, name);
	if (status == -EWOULDBLOCK)
		fprintf(stderr, "cheops-sample: another %s service uses %s\n", arguments->service->name, arguments->data);
	else if (status != 0)
		fprintf(stderr, "cheops-sample: cannot use %s: %s\n", arguments->data, strerror(-status));
	free(name);
	if (dir >= 0)
		close(dir);
	return status == 0;
}

static int serve(const struct arguments *arguments, const struct server_options *options)
{
	/* Blocked before there are threads, so that all of them have them blocked, and sigwait() gets them. */
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	char name[LISTENER_NAME_BYTES];
	int listener = listener_open(arguments->listen, name);
	if (listener < 0)
		return EXIT_FAILURE;
	struct server *server = server_start(listener, options);
	if (server == NULL)
		return EXIT_FAILURE;
	fprintf(stderr, "cheops-sample: %s at %s listens on http://%s\n", options->service->name, options->site, name);
	int signal_number;
	sigwait(&ends, &signal_number);
	server_stop(server);
	return EXIT_SUCCESS;
}

static int run_with(const struct arguments *arguments, struct server_options *options)
{
	if (arguments->access_log != NULL && (options->log = access_log_open(arguments->access_log)) == NULL)
		return EXIT_FAILURE;
	if (arguments->token_key != NULL && (options->login = login_open(arguments->token_key)) == NULL)
		return EXIT_FAILURE;
	options->peers->client = client_open();
	int status = serve(arguments, options);
	client_close(options->peers->client);
	return status;
}

static int run(const struct arguments *arguments, struct peers *peers)
{
	if (!take_data(arguments))
		return EXIT_FAILURE;
	struct server_options options = {.service = arguments->service,
	                                 .site = arguments->site,
	                                 .data = arguments->data,
	                                 .peers = peers,
	                                 .quota = (unsigned)arguments->quota_records};
	int status = run_with(arguments, &options);
	login_close(options.login);
	access_log_close(options.log);
	return status;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {0};
	struct peers peers = {0};
	int status = parse(argc, argv, &arguments, &peers);
	if (status < 0)
		status = find_peers(&peers);
	if (status < 0) {
		signal(SIGPIPE, SIG_IGN); /* a client that went away is an error of its connection only */
		allow_many_files();
		status = run(&arguments, &peers);
	}
	forget_peers(&peers);
	return status;
}
