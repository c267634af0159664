#include "routing.h"

#include <string.h>
#include <strings.h>

#include "limits.h"
#include "memory.h"

#define JSON_TYPE "application/json"
#define PATCH_TYPE "application/merge-patch+json"

/* The bytes of the path that stand for {id} are *id, *length. */
static bool matches(const char *pattern, const char *path, const char **id, size_t *length)
{
	const char *brace = strchr(pattern, '{');
	*id = NULL;
	*length = 0;
	if (brace == NULL)
		return strcmp(pattern, path) == 0;
	size_t before = (size_t)(brace - pattern);
	if (strncmp(pattern, path, before) != 0)
		return false;
	*id = path + before;
	*length = strcspn(*id, "/");
	return *length > 0 && *length <= LIMIT_ID_BYTES && strcmp(*id + *length, strchr(brace, '}') + 1) == 0;
}

static bool answers(const struct route *route, const char *method)
{
	return strcmp(route->method, method) == 0 || (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

/* "GET, HEAD, DELETE" of one path, as it grows. */
struct allowed {
	char text[128];
};

static void allow(struct allowed *allowed, const char *method)
{
	size_t length = strlen(allowed->text);
	snprintf(allowed->text + length, sizeof(allowed->text) - length, "%s%s", length > 0 ? ", " : "", method);
	if (strcmp(method, "GET") == 0)
		allow(allowed, "HEAD");
}

/* Where to look for a path. */
struct search {
	const char *method;
	const char *path;
	bool in_project; /* the path was below that of a project, and is what followed */
};

static const struct route *find_in(const struct route *routes, const struct search *search, char **id,
                                   struct allowed *allowed)
{
	for (const struct route *route = routes; route->pattern != NULL; route++) {
		const char *found;
		size_t length;
		if ((search->in_project && !route->in_project) || !matches(route->pattern, search->path, &found, &length))
			continue;
		if (answers(route, search->method)) {
			*id = found == NULL ? NULL : need(strndup(found, length));
			return route;
		}
		allow(allowed, route->method);
	}
	return NULL;
}

/* What follows /projects/PROJECT, of which `*project` is that; NULL if the path is not below one. */
static const char *below_project(const char *path, const char **project, size_t *length)
{
	static const char projects[] = "/projects/";
	if (strncmp(path, projects, strlen(projects)) != 0)
		return NULL;
	*project = path + strlen(projects);
	*length = strcspn(*project, "/");
	const char *rest = *project + *length;
	return *length > 0 && *length <= LIMIT_ID_BYTES && *rest == '/' ? rest : NULL;
}

static const struct route *find_in_project(const struct route *routes, const char *method, const char *path,
                                           struct routing_found *found, struct allowed *allowed)
{
	const char *project;
	size_t length;
	struct search search = {.method = method, .path = below_project(path, &project, &length), .in_project = true};
	const struct route *route = search.path == NULL ? NULL : find_in(routes, &search, &found->id, allowed);
	if (route != NULL)
		found->project = need(strndup(project, length));
	return route;
}

const struct route *routing_find(const struct route *routes, const char *method, const char *path,
                                 struct routing_found *found, struct reply *refusal)
{
	struct allowed allowed = {""};
	struct search search = {.method = method, .path = path};
	const struct route *route = find_in(routes, &search, &found->id, &allowed);
	if (route == NULL)
		route = find_in(common_routes, &search, &found->id, &allowed);
	if (route == NULL)
		route = find_in_project(routes, method, path, found, &allowed);
	if (route != NULL)
		return route;
	if (allowed.text[0] == '\0') {
		*refusal = reply_error(404, "nothing is at %.255s", path);
		return NULL;
	}
	*refusal = reply_error(405, "%.32s is not possible at %.255s, but these are: %s", method, path, allowed.text);
	refusal->header_name = "Allow";
	refusal->header_value = text_of("%s", allowed.text);
	return NULL;
}

/* A media type compares without its parameters (RFC 9110, 8.3.1). */
static bool is_type(const char *content_type, const char *type)
{
	size_t length = strcspn(content_type, "; \t");
	return length == strlen(type) && strncasecmp(content_type, type, length) == 0;
}

bool routing_accepts(const struct route *route, const char *content_type, struct reply *refusal)
{
	if (content_type == NULL || is_type(content_type, JSON_TYPE))
		return true;
	if (route->body == ROUTE_PATCH && is_type(content_type, PATCH_TYPE))
		return true;
	bool patch = route->body == ROUTE_PATCH;
	const char *accepted = patch ? PATCH_TYPE ", " JSON_TYPE : JSON_TYPE;
	*refusal = reply_error(415, "the body is %.100s; accepted here: %s", content_type, accepted);
	refusal->header_name = patch ? "Accept-Patch" : "Accept";
	refusal->header_value = text_of("%s", accepted);
	return false;
}
