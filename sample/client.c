#include "client.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "limits.h"
#include "memory.h"

struct client {
	pthread_mutex_t lock;
	CURL *idle[LIMIT_IDLE_HANDLES];
	size_t idle_count;
};

struct client *client_open(void)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		need(NULL);
	struct client *client = NEW(struct client);
	pthread_mutex_init(&client->lock, NULL);
	return client;
}

void client_close(struct client *client)
{
	for (size_t i = 0; i < client->idle_count; i++)
		curl_easy_cleanup(client->idle[i]);
	pthread_mutex_destroy(&client->lock);
	free(client);
	curl_global_cleanup();
}

/* The one used last comes first: its connection is the likeliest to be open still. */
static CURL *take_handle(struct client *client)
{
	CURL *handle = NULL;
	pthread_mutex_lock(&client->lock);
	if (client->idle_count > 0)
		handle = client->idle[--client->idle_count];
	pthread_mutex_unlock(&client->lock);
	return handle != NULL ? handle : need(curl_easy_init());
}

static void give_handle_back(struct client *client, CURL *handle)
{
	curl_easy_reset(handle); /* forgets the options, keeps the connections */
	pthread_mutex_lock(&client->lock);
	bool kept = client->idle_count < LIMIT_IDLE_HANDLES;
	if (kept)
		client->idle[client->idle_count++] = handle;
	pthread_mutex_unlock(&client->lock);
	if (!kept)
		curl_easy_cleanup(handle);
}

struct receiving {
	const struct client_call *call;
	struct client_answer *answer;
	CURL *handle;
	bool too_long;
};

static size_t collect(struct receiving *receiving, const char *bytes, size_t length)
{
	struct client_answer *answer = receiving->answer;
	if (length > LIMIT_JSON_BYTES - answer->body_bytes) {
		receiving->too_long = true;
		return 0; /* ends the transfer */
	}
	answer->body = need(realloc(answer->body, answer->body_bytes + length + 1));
	memcpy(answer->body + answer->body_bytes, bytes, length);
	answer->body_bytes += length;
	answer->body[answer->body_bytes] = '\0';
	return length;
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *context)
{
	struct receiving *receiving = context;
	const struct client_call *call = receiving->call;
	size_t length = size * count;
	long status = 0;
	curl_easy_getinfo(receiving->handle, CURLINFO_RESPONSE_CODE, &status);
	if (call->piece == NULL || status / 100 != 2)
		return collect(receiving, bytes, length);
	call->piece(call->context, bytes, length);
	return length;
}

static void prepare(CURL *handle, const struct client_call *call, struct receiving *receiving)
{
	curl_easy_setopt(handle, CURLOPT_URL, call->url);
	curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	/* The other services are given by their addresses; a proxy for the web that happens to be configured is none for them. */
	curl_easy_setopt(handle, CURLOPT_PROXY, "");
	curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)LIMIT_CONNECT_MS);
	curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, (long)LIMIT_SILENCE_S);
	curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, receiving->answer->problem);
	curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(handle, CURLOPT_WRITEDATA, receiving);
	if (call->json != NULL) {
		curl_easy_setopt(handle, CURLOPT_POSTFIELDS, call->json);
		curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, (long)strlen(call->json));
	}
	curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, call->method);
	curl_easy_setopt(handle, CURLOPT_HTTPHEADER, call->headers);
}

static void conclude(CURL *handle, CURLcode code, const struct receiving *receiving)
{
	struct client_answer *answer = receiving->answer;
	long status = 0;
	curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK) {
		answer->status = (unsigned)status;
		return;
	}
	if (receiving->too_long)
		snprintf(answer->problem, sizeof(answer->problem), "its answer has over %d bytes", LIMIT_JSON_BYTES);
	else if (answer->problem[0] == '\0')
		snprintf(answer->problem, sizeof(answer->problem), "%s", curl_easy_strerror(code));
}

void client_make(struct client *client, const struct client_call *call, struct client_answer *answer)
{
	*answer = (struct client_answer){.body = need(calloc(1, 1))};
	CURL *handle = take_handle(client);
	struct receiving receiving = {.call = call, .answer = answer, .handle = handle};
	prepare(handle, call, &receiving);
	CURLcode code = curl_easy_perform(handle);
	conclude(handle, code, &receiving);
	give_handle_back(client, handle);
}

void client_answer_free(struct client_answer *answer)
{
	free(answer->body);
	answer->body = NULL;
}

char *client_escape(const char *text)
{
	char *escaped = need(curl_easy_escape(NULL, text, 0));
	char *copy = text_of("%s", escaped);
	curl_free(escaped);
	return copy;
}
