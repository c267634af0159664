#include "agent/tokens.h"

#include "agent/file.h"
#include "agent/identity.h"
#include "base/check.h"
#include "base/text.h"

#include <openssl/crypto.h>
#include <stdlib.h>

enum {
	DIGEST_DIGITS = 2 * sizeof(((struct agent_token *)NULL)->digest),
	TOKEN_LINE_BYTES = DIGEST_DIGITS + 1 + 20 + 1 + 1 + 1 + LIMIT_AGENT_NAME_BYTES + 1,
	ISSUED_LINE_BYTES = 16 + 1 + LIMIT_AGENT_NAME_BYTES + 1,
};

/* ---- Lines ------------------------------------------------------------------------------------------------------- */

struct lines {
	const char *folder;
	const char *name;
	size_t bytes_most;
	bool (*take)(void *context, const char *line); /* false: that is no line of such a file */
	void *context;
};

static int take_lines(const struct lines *lines, struct buf *text, struct err *err)
{
	unsigned number = 1;
	if (text->length > lines->bytes_most)
		return err_set(err, ERR_LIMIT, "it has more than %zu bytes", lines->bytes_most);
	if (memchr(buf_c(text), '\0', text->length))
		return err_set(err, ERR_CORRUPT, "there is a zero byte in it");
	for (char *line = text->at, *end; line && *line; line = end + 1, number++) {
		end = strchr(line, '\n');
		if (!end)
			return err_set(err, ERR_CORRUPT, "line %u has no end; the file was cut", number);
		*end = '\0';
		if (!lines->take(lines->context, line))
			return err_set(err, ERR_CORRUPT, "line %u is not as the agent writes it", number);
	}
	return 0;
}

/* No file, no lines. */
static int read_lines(const struct lines *lines, struct err *err)
{
	struct buf path = {0}, text = {0};
	buf_printf(&path, "%s/%s", lines->folder, lines->name);
	int code = agent_file_read(buf_c(&path), lines->bytes_most + 1, &text, err);
	if (code == 0) {
		code = take_lines(lines, &text, err);
		if (code)
			err_context(err, code, "`" TEXT_PATH_FMT "` is damaged; mend it or restore it from a backup",
			            TEXT_PATH(buf_c(&path)));
	}
	buf_free(&path);
	buf_free(&text);
	return code == ERR_NOT_FOUND ? 0 : code;
}

/* What the rest of a line is: a name that could have been written there. */
static bool read_name(char name[LIMIT_AGENT_NAME_BYTES + 1], const char *text)
{
	size_t length = strlen(text);
	if (length > LIMIT_AGENT_NAME_BYTES || !text_is_printable(str_make(text, length)))
		return false;
	memcpy(name, text, length + 1);
	return true;
}

/* Each line has one spelling: what was read is written again, and has to come out the same. */
static bool is_line(struct buf *again, const char *line)
{
	bool same = again->length == strlen(line) + 1 && memcmp(again->at, line, again->length - 1) == 0;
	buf_free(again);
	return same;
}

/* ---- The file of tokens ------------------------------------------------------------------------------------------ */

static void put_token(struct buf *text, const struct agent_token *token)
{
	for (size_t i = 0; i < sizeof(token->digest); i++)
		buf_printf(text, "%02x", token->digest[i]);
	buf_printf(text, " %lld %d %s\n", (long long)token->ends_ms, token->used, token->name);
}

static bool read_token(struct agent_token *token, const char *line)
{
	struct buf again = {0};
	char *rest;
	for (size_t i = 0; i < sizeof(token->digest); i++) {
		int high = str_hex_value(line[2 * i]), low = high < 0 ? -1 : str_hex_value(line[2 * i + 1]);
		if (low < 0)
			return false;
		token->digest[i] = (unsigned char)(high * 16 + low);
	}
	token->ends_ms = strtoll(line + DIGEST_DIGITS, &rest, 10);
	if (strncmp(rest, " 0 ", 3) != 0 && strncmp(rest, " 1 ", 3) != 0)
		return false;
	token->used = rest[1] == '1';
	if (!read_name(token->name, rest + 3))
		return false;
	put_token(&again, token);
	return is_line(&again, line);
}

static struct agent_token *add_token(struct agent_tokens *tokens)
{
	struct agent_token *grown = realloc(tokens->at, (tokens->count + 1) * sizeof(*grown));
	CHECK(grown);
	tokens->at = grown;
	struct agent_token *token = &grown[tokens->count++];
	*token = (struct agent_token){0};
	return token;
}

static bool take_token(void *context, const char *line)
{
	struct agent_tokens *tokens = context;
	return tokens->count < AGENT_TOKENS_MOST && read_token(add_token(tokens), line);
}

int agent_tokens_load(struct agent_tokens *tokens, const char *folder, struct err *err)
{
	const struct lines lines = {.folder = folder,
	                            .name = "tokens",
	                            .bytes_most = (size_t)AGENT_TOKENS_MOST * TOKEN_LINE_BYTES,
	                            .take = take_token,
	                            .context = tokens};
	if (tokens->loaded)
		return 0;
	int code = read_lines(&lines, err);
	tokens->loaded = code == 0;
	if (code)
		tokens->count = 0;
	return code;
}

void agent_tokens_free(struct agent_tokens *tokens)
{
	free(tokens->at);
	*tokens = (struct agent_tokens){0};
}

static int store_tokens(const struct agent_tokens *tokens, const char *folder, struct err *err)
{
	struct buf text = {0};
	CHECK(tokens->loaded);
	for (uint32_t i = 0; i < tokens->count; i++)
		put_token(&text, &tokens->at[i]);
	int code = agent_file_write(folder, "tokens", buf_str(&text), true, err);
	buf_free(&text);
	return code;
}

/* ---- What becomes of a token ------------------------------------------------------------------------------------- */

static void drop_old(struct agent_tokens *tokens, int64_t now_ms)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < tokens->count; i++)
		if (tokens->at[i].ends_ms > now_ms - AGENT_TOKEN_TTL_MOST_MS)
			tokens->at[kept++] = tokens->at[i];
	tokens->count = kept;
}

int agent_tokens_add(struct agent_tokens *tokens, const char *folder, const struct trust_token *token, int64_t now_ms,
                     struct err *err)
{
	drop_old(tokens, now_ms);
	if (tokens->count >= AGENT_TOKENS_MOST)
		return err_set(
			err, ERR_LIMIT,
			"%d tokens were given out and are remembered, which is the limit; each is forgotten 7 days after "
			"its end",
			AGENT_TOKENS_MOST);
	struct agent_token *kept = add_token(tokens);
	trust_token_digest(token, kept->digest);
	kept->ends_ms = token->ends_ms;
	CHECK(read_name(kept->name, token->name));
	int code = store_tokens(tokens, folder, err);
	if (code)
		tokens->count--;
	return code;
}

enum agent_token_state agent_tokens_find(struct agent_tokens *tokens, const struct trust_token *token, struct str name,
                                         int64_t now_ms, struct agent_token **found)
{
	unsigned char digest[32];
	CHECK(tokens->loaded);
	*found = NULL;
	trust_token_digest(token, digest);
	for (uint32_t i = 0; i < tokens->count; i++)
		if (CRYPTO_memcmp(tokens->at[i].digest, digest, sizeof(digest)) == 0)
			*found = &tokens->at[i];
	if (!*found)
		return AGENT_TOKEN_UNKNOWN;
	if ((*found)->used)
		return AGENT_TOKEN_USED;
	if ((*found)->ends_ms < now_ms)
		return AGENT_TOKEN_EXPIRED;
	if ((*found)->name[0] && !str_equal(str_of((*found)->name), name))
		return AGENT_TOKEN_FOR_ANOTHER;
	return AGENT_TOKEN_GOOD;
}

int agent_tokens_strike(struct agent_tokens *tokens, const char *folder, struct agent_token *token, struct err *err)
{
	token->used = true;
	int code = store_tokens(tokens, folder, err);
	token->used = code == 0;
	return code;
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

static void put_issue(struct buf *text, const struct agent_issue *issue)
{
	buf_printf(text, "%016llx %s\n", (unsigned long long)issue->id, issue->name);
}

static bool read_issue(struct agent_issue *issue, const char *line)
{
	struct buf again = {0};
	char *rest;
	issue->id = strtoull(line, &rest, 16);
	if (*rest != ' ' || rest[1] == '\0' || !read_name(issue->name, rest + 1))
		return false;
	put_issue(&again, issue);
	return is_line(&again, line);
}

static struct agent_issue *add_issue(struct agent_issued *issued)
{
	struct agent_issue *grown = realloc(issued->at, (issued->count + 1) * sizeof(*grown));
	CHECK(grown);
	issued->at = grown;
	return &grown[issued->count++];
}

static bool take_issue(void *context, const char *line)
{
	struct agent_issued *issued = context;
	return issued->count < LIMIT_SITES && read_issue(add_issue(issued), line);
}

int agent_issued_load(struct agent_issued *issued, const char *folder, struct err *err)
{
	const struct lines lines = {.folder = folder,
	                            .name = "issued",
	                            .bytes_most = (size_t)LIMIT_SITES * ISSUED_LINE_BYTES,
	                            .take = take_issue,
	                            .context = issued};
	if (issued->loaded)
		return 0;
	int code = read_lines(&lines, err);
	issued->loaded = code == 0;
	if (code)
		issued->count = 0;
	return code;
}

void agent_issued_free(struct agent_issued *issued)
{
	free(issued->at);
	*issued = (struct agent_issued){0};
}

/* All but that of `without`. */
static int store_issued(const struct agent_issued *issued, const char *folder, site_id without, struct err *err)
{
	struct buf text = {0};
	CHECK(issued->loaded);
	for (uint32_t i = 0; i < issued->count; i++)
		if (issued->at[i].id != without)
			put_issue(&text, &issued->at[i]);
	int code = agent_file_write(folder, "issued", buf_str(&text), false, err);
	buf_free(&text);
	return code;
}

int agent_issued_add(struct agent_issued *issued, const char *folder, site_id id, struct str name, struct err *err)
{
	CHECK(name.length > 0 && name.length <= LIMIT_AGENT_NAME_BYTES && text_is_printable(name));
	if (issued->count >= LIMIT_SITES)
		return err_set(err, ERR_LIMIT, "certificates were signed for %d sites, which is the limit of a mesh",
		               LIMIT_SITES);
	struct agent_issue *issue = add_issue(issued);
	*issue = (struct agent_issue){.id = id};
	memcpy(issue->name, name.at, name.length);
	int code = store_issued(issued, folder, 0, err);
	if (code)
		issued->count--;
	return code;
}

int agent_issued_forget(struct agent_issued *issued, const char *folder, site_id id, struct err *err)
{
	uint32_t kept = 0;
	int code = store_issued(issued, folder, id, err);
	if (code)
		return code;
	for (uint32_t i = 0; i < issued->count; i++)
		if (issued->at[i].id != id)
			issued->at[kept++] = issued->at[i];
	issued->count = kept;
	return 0;
}
