/* services, and credentials: what is known of a service as such. */
#include "glue/load.h"

#include "base/text.h"

/* ---- Credentials ------------------------------------------------------------------------------------------------- */

enum {
	CREDENTIAL_HEADERS,
	CREDENTIAL_RUN,
	CREDENTIAL_ACCOMPANY,
	CREDENTIAL_USER,
	CREDENTIAL_IMPERSONATE,
	CREDENTIAL_REFUSED,
	CREDENTIAL_JUDGE,
	CREDENTIAL_KEYS
};
static const char *const credential_keys[] = {[CREDENTIAL_HEADERS] = "headers",
                                              [CREDENTIAL_RUN] = "run",
                                              [CREDENTIAL_ACCOMPANY] = "accompany",
                                              [CREDENTIAL_USER] = "user",
                                              [CREDENTIAL_IMPERSONATE] = "impersonate",
                                              [CREDENTIAL_REFUSED] = "refused",
                                              [CREDENTIAL_JUDGE] = "judge",
                                              NULL};

static bool read_header(struct glue_load *load, const struct yaml_entry *entry, struct str *name)
{
	if (!glue_name(load, entry, "the name of a header, such as `X-Auth-Token`", name))
		return false;
	if (glue_is_token(*name))
		return true;
	glue_complain(load, ERR_INVALID, entry->value->start_mark,
	              TEXT_NAME_FMT " has " TEXT_NAME_FMT ", which is no name of a header, such as `X-Auth-Token`",
	              TEXT_NAME(entry->key), TEXT_NAME(*name));
	return false;
}

/* {header: NAME} or {claim: NAME} */
static void read_user(struct glue_load *load, const struct yaml_entry *entry, struct glue_service_about *about)
{
	enum { HEADER, CLAIM, KEYS };
	static const char *const keys[] = {[HEADER] = "header", [CLAIM] = "claim", NULL};
	struct yaml_entry found[KEYS] = {0};
	if (!glue_keys(load, entry, keys, "user: {header: X-User}", found))
		return;
	if ((found[HEADER].value == NULL) == (found[CLAIM].value == NULL)) {
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
		              "`user` has to have either `header`, as in {header: X-User}, or `claim`, as in {claim: sub}");
		return;
	}
	if (found[HEADER].value != NULL)
		read_header(load, &found[HEADER], &about->user_header);
	else
		glue_name(load, &found[CLAIM], "the name of a claim, such as `sub`", &about->user_claim);
}

static bool has_user(struct str text)
{
	return memmem(text.at, text.length, "{user}", 6) != NULL;
}

static void read_impersonate(struct glue_load *load, const struct yaml_entry *entry, struct glue_service_about *about,
                             bool user)
{
	if (!glue_mapping(load, entry, "impersonate: {Impersonate-User: \"{user}\"}", LIMIT_GLUE_HEADERS))
		return;
	size_t count = yaml_entries_count(entry->value);
	struct glue_header *headers = arena_array(load->arena, struct glue_header, count);
	about->impersonate = headers;
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry header = yaml_entry_at(&load->yaml, entry->value, i);
		struct glue_header made;
		if (!glue_is_token(header.key)) {
			glue_complain(load, ERR_INVALID, header.key_node->start_mark,
			              TEXT_NAME_FMT " is no name of a header, such as `Impersonate-User`", TEXT_NAME(header.key));
			continue;
		}
		if (!glue_key_name(load, &header, "a header", &made.name) ||
		    !glue_text(load, &header, "what the header says, such as \"{user}\"", &made.value))
			continue;
		if (has_user(made.value) && !user)
			glue_complain(load, ERR_INVALID, header.value->start_mark,
			              "`{user}` is not known: there is no `user`, such as `user: {header: X-User}`");
		headers[about->impersonate_count++] = made;
	}
}

static void read_refused(struct glue_load *load, const struct yaml_entry *entry, struct glue_credentials *credentials)
{
	size_t count = glue_list_count(entry->value);
	if (count > LIMIT_GLUE_STATUSES) {
		glue_complain(load, ERR_LIMIT, entry->value->start_mark, "`refused` has %zu codes; the limit is %d", count,
		              LIMIT_GLUE_STATUSES);
		return;
	}
	credentials->refused_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry item = glue_list_item(load, entry, i);
		if (glue_number(load, &item, "a status", 400, 599, &credentials->refused[credentials->refused_count]))
			credentials->refused_count++;
	}
}

/* {service: NAME, path: /PATH} */
static void read_judge(struct glue_load *load, const struct yaml_entry *entry, struct glue_service_about *about)
{
	enum { SERVICE, PATH, KEYS };
	static const char *const keys[] = {[SERVICE] = "service", [PATH] = "path", NULL};
	struct yaml_entry found[KEYS] = {0};
	struct glue_template path;
	if (!glue_keys(load, entry, keys, "judge: {service: identity, path: /v3/endpoints}", found))
		return;
	if (found[SERVICE].value == NULL || found[PATH].value == NULL) {
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
		              "`judge` has to have `service` and `path`, as in {service: identity, path: /v3/endpoints}");
		return;
	}
	if (glue_name(load, &found[SERVICE], "the name of a service, such as `identity`", &about->judge_service) &&
	    glue_read_template(load, &found[PATH], &path)) {
		about->judge_path = path.text;
		if (path.variables_count > 0)
			glue_complain(load, ERR_INVALID, found[PATH].value->start_mark,
			              "`path` has a variable; it is a path to read");
	}
}

static void default_credentials(struct glue_load *load, struct glue_credentials *credentials)
{
	struct str *headers = arena_array(load->arena, struct str, 2);
	headers[0] = STR("Authorization");
	headers[1] = STR("Cookie");
	*credentials =
		(struct glue_credentials){.headers = {headers, 2}, .run = GLUE_FORWARD, .refused = {401}, .refused_count = 1};
}

bool glue_read_credentials(struct glue_load *load, const struct yaml_entry *entry, struct glue_service *service)
{
	static const char *const runs[] = {
		[GLUE_FORWARD] = "forward", [GLUE_IMPERSONATE] = "impersonate", [GLUE_AGENT] = "agent", NULL};
	struct glue_credentials *credentials = &service->credentials;
	struct yaml_entry found[CREDENTIAL_KEYS] = {0};
	default_credentials(load, credentials);
	if (entry->value == NULL)
		return true;
	size_t where = glue_enter(load, entry->key);
	bool fine = glue_keys(load, entry, credential_keys, "credentials: {headers: [X-Auth-Token], run: forward}", found);
	int run = GLUE_FORWARD;
	if (found[CREDENTIAL_HEADERS].value != NULL)
		credentials->headers = glue_list(load, &found[CREDENTIAL_HEADERS], LIMIT_GLUE_HEADERS, read_header);
	if (found[CREDENTIAL_RUN].value != NULL)
		glue_word(load, &found[CREDENTIAL_RUN], runs, "way to run", &run);
	credentials->run = (enum glue_credential)run;
	if (found[CREDENTIAL_ACCOMPANY].value != NULL)
		read_header(load, &found[CREDENTIAL_ACCOMPANY], &service->about.accompany);
	if (found[CREDENTIAL_ACCOMPANY].value != NULL && credentials->run != GLUE_FORWARD)
		glue_complain(
			load, ERR_INVALID, found[CREDENTIAL_ACCOMPANY].key_node->start_mark,
			"there is an `accompany`, but `run` is not `forward`: there is no credential of the user to accompany");
	if (found[CREDENTIAL_USER].value != NULL)
		read_user(load, &found[CREDENTIAL_USER], &service->about);
	if (found[CREDENTIAL_IMPERSONATE].value != NULL)
		read_impersonate(load, &found[CREDENTIAL_IMPERSONATE], &service->about, found[CREDENTIAL_USER].value != NULL);
	if (found[CREDENTIAL_REFUSED].value != NULL)
		read_refused(load, &found[CREDENTIAL_REFUSED], credentials);
	if (found[CREDENTIAL_JUDGE].value != NULL)
		read_judge(load, &found[CREDENTIAL_JUDGE], &service->about);
	if (credentials->run == GLUE_IMPERSONATE && found[CREDENTIAL_IMPERSONATE].value == NULL)
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
		              "`run` is `impersonate`, but there is no `impersonate`: which headers say on whose behalf, as in "
		              "{Impersonate-User: \"{user}\"}");
	glue_leave(load, where);
	return fine;
}

/* ---- A service --------------------------------------------------------------------------------------------------- */

enum { ADDRESS, UNDER, BASE, VERSION, CARRY, CREDENTIALS, ERRORS, SERVICE_KEYS };
static const char *const service_keys[] = {[ADDRESS] = "address", [UNDER] = "under",
                                           [BASE] = "base",       [VERSION] = "version",
                                           [CARRY] = "carry",     [CREDENTIALS] = "credentials",
                                           [ERRORS] = "errors",   NULL};

static bool read_prefix(struct glue_load *load, const struct yaml_entry *entry, struct str *prefix)
{
	struct glue_template template;
	if (!glue_read_template(load, entry, &template))
		return false;
	*prefix = template.text;
	if (template.variables_count == 0 && glue_template_depth(&template) == template.segments_count)
		return true;
	glue_complain(load, ERR_INVALID, entry->value->start_mark,
	              TEXT_NAME_FMT " is no prefix; it has no variables and no `/` at its end, as in `/image`",
	              TEXT_NAME(*prefix));
	return false;
}

/* One of those that may stand before a path, or nobody would know again what is behind it. */
static void read_base(struct glue_load *load, const struct yaml_entry *entry, struct glue_service *service)
{
	struct str base;
	if (!read_prefix(load, entry, &base))
		return;
	for (uint32_t i = 0; i < service->under.count; i++)
		if (str_equal(service->under.at[i], base))
			service->about.base = base;
	if (service->about.base.length == 0)
		glue_complain(load, ERR_INVALID, entry->value->start_mark,
		              "`base` is " TEXT_NAME_FMT ", which is not among the prefixes that `under` has", TEXT_NAME(base));
}

static bool read_address(struct glue_load *load, const struct yaml_entry *entry, struct str *address)
{
	if (!glue_text(load, entry, "a URL, such as http://127.0.0.1:9292", address))
		return false;
	bool plain = address->length > 7 && memcmp(address->at, "http://", 7) == 0;
	bool tls = address->length > 8 && memcmp(address->at, "https://", 8) == 0;
	if (!plain && !tls)
		glue_complain(load, ERR_INVALID, entry->value->start_mark,
		              "`address` is " TEXT_NAME_FMT "; it has to be a URL, such as http://127.0.0.1:9292",
		              TEXT_NAME(*address));
	return plain || tls;
}

/* Behind the word: `:HEADER`, and perhaps `:PREFIX` of a request id, or `:SERVICE` that a scope has to name. */
static bool is_carrier(struct str rest, bool prefixed)
{
	if (rest.length == 0 || rest.at[0] != ':')
		return false;
	struct str header = str_make(rest.at + 1, rest.length - 1);
	const char *colon = memchr(header.at, ':', header.length);
	if (colon == NULL)
		return glue_is_token(header) && header.length <= LIMIT_AGENT_HEADER_BYTES;
	struct str last = str_make(colon + 1, (size_t)(header.at + header.length - colon - 1));
	header.length = (size_t)(colon - header.at);
	bool fits = prefixed ? (last.length == 0 || glue_is_token(last)) && last.length <= LIMIT_AGENT_PREFIX_BYTES
	                     : last.length > 0 && last.length <= LIMIT_GLUE_NAME_BYTES;
	return fits && glue_is_token(header) && header.length <= LIMIT_AGENT_HEADER_BYTES;
}

/* As in the agent's configuration: a word, and for the last two the name of a header. Keys are the agent's own to have. */
static bool read_carry(struct glue_load *load, const struct yaml_entry *entry, struct str *carry)
{
	enum { ALONE = 4, REQUEST_ID = 5, WORDS = 6 };
	static const char *const words[WORDS] = {"header", "baggage", "traceparent", "osprofiler", "append", "request-id"};
	if (!glue_name(load, entry, "how it carries a scope along, such as `header`", carry))
		return false;
	size_t length = 0;
	while (length < carry->length && carry->at[length] != ':')
		length++;
	struct str rest = str_make(carry->at + length, carry->length - length);
	for (int i = 0; i < WORDS; i++) {
		bool fits = i < ALONE ? rest.length == 0 : is_carrier(rest, i == REQUEST_ID);
		if (fits && str_equal(str_make(carry->at, length), str_of(words[i])))
			return true;
	}
	glue_complain(load, ERR_INVALID, entry->value->start_mark,
	              "`carry` has " TEXT_NAME_FMT
	              "; accepted are `header`, `baggage`, `traceparent`, `osprofiler`, `request-id:HEADER`, "
	              "`request-id:HEADER:PREFIX`, `append:HEADER` and `append:HEADER:SERVICE`",
	              TEXT_NAME(*carry));
	return false;
}

static void read_version(struct glue_load *load, const struct yaml_entry *entry, struct glue_service_about *about)
{
	enum { PATH, POINTER, KEYS };
	static const char *const keys[] = {[PATH] = "path", [POINTER] = "pointer", NULL};
	struct yaml_entry found[KEYS] = {0};
	struct glue_template path;
	if (!glue_keys(load, entry, keys, "version: {path: /versions, pointer: /versions/0/id}", found))
		return;
	if (found[PATH].value == NULL || found[POINTER].value == NULL) {
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
		              "`version` has to have `path` and `pointer`, as in {path: /versions, pointer: /versions/0/id}");
		return;
	}
	if (glue_read_template(load, &found[PATH], &path)) {
		about->version_path = path.text;
		if (path.variables_count > 0)
			glue_complain(load, ERR_INVALID, found[PATH].value->start_mark,
			              "`path` has a variable; it is a path to read");
	}
	glue_pointer(load, &found[POINTER], &about->version_pointer);
}

static void read_service(struct glue_load *load, const struct yaml_entry *entry, const struct yaml_entry *credentials)
{
	struct glue *glue = load->glue;
	struct glue_service *service = &glue->services[glue->services_count];
	struct yaml_entry found[SERVICE_KEYS] = {0};
	if (!glue_key_name(load, entry, "a service", &service->about.name))
		return;
	glue->services_count++;
	if (str_equal(entry->key, STR("*")))
		glue->any = service;
	else if (memchr(entry->key.at, '.', entry->key.length) != NULL)
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
		              TEXT_NAME_FMT " has a dot; the name of a type, SERVICE.NAME, could not be told apart",
		              TEXT_NAME(entry->key));
	size_t where = glue_enter(load, entry->key);
	if (glue_keys(load, entry, service_keys, "image: {address: http://127.0.0.1:9292}", found)) {
		if (found[ADDRESS].value != NULL)
			read_address(load, &found[ADDRESS], &service->about.address);
		if (found[UNDER].value != NULL)
			service->under = glue_list(load, &found[UNDER], LIMIT_GLUE_PREFIXES, read_prefix);
		if (found[BASE].value != NULL)
			read_base(load, &found[BASE], service);
		if (found[VERSION].value != NULL)
			read_version(load, &found[VERSION], &service->about);
		if (found[CARRY].value != NULL) {
			struct glue_texts carry = glue_list(load, &found[CARRY], LIMIT_GLUE_VALUES, read_carry);
			service->about.carry = carry.at;
			service->about.carry_count = carry.count;
		}
		if (found[ERRORS].value != NULL)
			glue_read_shape(load, &found[ERRORS], &service->shape);
	}
	glue_read_credentials(load, found[CREDENTIALS].value != NULL ? &found[CREDENTIALS] : credentials, service);
	glue_leave(load, where);
}

void glue_read_services(struct glue_load *load, const struct yaml_entry *entry, const struct yaml_entry *credentials)
{
	struct glue *glue = load->glue;
	size_t count = entry->value != NULL ? yaml_entries_count(entry->value) : 0;
	/* One more: for `*`, if only types say so. */
	glue->services =
		arena_array(load->arena, struct glue_service, (count < LIMIT_GLUE_SERVICES ? count : LIMIT_GLUE_SERVICES) + 1);
	if (entry->value == NULL ||
	    !glue_mapping(load, entry, "services: {image: {address: http://127.0.0.1:9292}}", LIMIT_GLUE_SERVICES))
		return;
	size_t where = glue_enter(load, entry->key);
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry service = yaml_entry_at(&load->yaml, entry->value, i);
		read_service(load, &service, credentials);
	}
	glue_leave(load, where);
}
