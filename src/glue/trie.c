/* A node has the literals that may come next, sorted, and what follows a variable. Of several ways the literal one is tried
 * first at each segment, from the left; a node has one way that leads to it, so a search visits each at most once. */
#include "glue/trie.h"

struct edge {
	struct str text;
	struct glue_node *node;
};

struct glue_node {
	struct edge *literals; /* by length, then by bytes */
	uint32_t literals_count;
	uint32_t literals_capacity;
	struct glue_node *variable;
	struct glue_endpoint *end;  /* of templates that end here */
	struct glue_endpoint *rest; /* of those whose last variable takes all that is left */
};

struct glue_node *glue_trie_new(struct arena *arena)
{
	return arena_new(arena, struct glue_node);
}

/* ---- Literals ---------------------------------------------------------------------------------------------------- */

static inline int compare(struct str a, struct str b)
{
	if (a.length != b.length)
		return a.length < b.length ? -1 : 1;
	return memcmp(a.at, b.at, a.length);
}

/* The first that does not come before it. */
static inline uint32_t lower_bound(const struct glue_node *node, struct str text)
{
	uint32_t low = 0, high = node->literals_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (compare(node->literals[middle].text, text) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static inline struct glue_node *literal_find(const struct glue_node *node, struct str text)
{
	uint32_t at = lower_bound(node, text);
	if (at < node->literals_count && str_equal(node->literals[at].text, text))
		return node->literals[at].node;
	return NULL;
}

static struct glue_node *literal_add(struct arena *arena, struct glue_node *node, struct str text)
{
	uint32_t at = lower_bound(node, text);
	if (at < node->literals_count && str_equal(node->literals[at].text, text))
		return node->literals[at].node;
	if (node->literals_count == node->literals_capacity) {
		uint32_t capacity = node->literals_capacity == 0 ? 2 : 2 * node->literals_capacity;
		struct edge *grown = arena_array(arena, struct edge, capacity);
		for (uint32_t i = 0; i < node->literals_count; i++)
			grown[i] = node->literals[i];
		node->literals = grown;
		node->literals_capacity = capacity;
	}
	for (uint32_t i = node->literals_count; i > at; i--)
		node->literals[i] = node->literals[i - 1];
	node->literals[at] = (struct edge){text, glue_trie_new(arena)};
	node->literals_count++;
	return node->literals[at].node;
}

/* ---- Candidates -------------------------------------------------------------------------------------------------- */

/* How many members of the query have to have a value that is told; `*` asks for less. */
static uint32_t values_asked(const struct glue_operation *operation)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < operation->conditions_count; i++)
		count += operation->conditions[i].values.count > 0;
	return count;
}

/* How much an operation asks for. Types of the service itself come before those of any service. */
static uint32_t rank(const struct glue_operation *operation)
{
	uint32_t key = operation->key.length == 0 ? 0 : str_equal(operation->key, STR("*")) ? 1 : 2;
	bool own = operation->type->service != NULL;
	return (uint32_t)own << 24 | key << 20 | operation->conditions_count << 12 | values_asked(operation) << 4 |
	       (uint32_t)(operation->contents.count > 0) << 1 | (operation->line > 0);
}

static bool has_text(struct glue_texts texts, struct str text)
{
	for (uint32_t i = 0; i < texts.count; i++) {
		if (str_equal_nocase(texts.at[i], text))
			return true;
	}
	return false;
}

static bool overlap(struct glue_texts a, struct glue_texts b)
{
	if (a.count == 0 || b.count == 0)
		return a.count == b.count;
	for (uint32_t i = 0; i < a.count; i++) {
		if (has_text(b, a.at[i]))
			return true;
	}
	return false;
}

static bool same_conditions(const struct glue_operation *a, const struct glue_operation *b)
{
	for (uint32_t i = 0; i < a->conditions_count; i++) {
		bool same = false;
		for (uint32_t j = 0; j < b->conditions_count; j++)
			same |= str_equal(a->conditions[i].name, b->conditions[j].name) &&
			        overlap(a->conditions[i].values, b->conditions[j].values);
		if (!same)
			return false;
	}
	return true;
}

/* A default operation steps back for one that was written down: it has a lower rank. */
static bool clashes(const struct glue_operation *a, const struct glue_operation *b)
{
	return rank(a) == rank(b) && (a->methods & b->methods) != 0 && str_equal(a->key, b->key) && same_conditions(a, b) &&
	       overlap(a->contents, b->contents);
}

static int candidate_add(struct arena *arena, struct glue_endpoint *endpoint, struct glue_candidate candidate,
                         const struct glue_candidate **clash)
{
	for (uint32_t i = 0; i < endpoint->count; i++) {
		if (clashes(endpoint->candidates[i].operation, candidate.operation)) {
			*clash = &endpoint->candidates[i];
			return ERR_CONFLICT;
		}
	}
	if (endpoint->count == LIMIT_GLUE_OPERATIONS)
		return ERR_LIMIT;
	if (endpoint->count == endpoint->capacity) {
		uint32_t capacity = endpoint->capacity == 0 ? 2 : 2 * endpoint->capacity;
		struct glue_candidate *grown = arena_array(arena, struct glue_candidate, capacity);
		for (uint32_t i = 0; i < endpoint->count; i++)
			grown[i] = endpoint->candidates[i];
		endpoint->candidates = grown;
		endpoint->capacity = capacity;
	}
	uint32_t at = endpoint->count++;
	for (; at > 0 && rank(endpoint->candidates[at - 1].operation) < rank(candidate.operation); at--)
		endpoint->candidates[at] = endpoint->candidates[at - 1];
	endpoint->candidates[at] = candidate;
	endpoint->methods |= candidate.operation->methods;
	return 0;
}

int glue_trie_add(struct arena *arena, struct glue_node *root, const struct glue_operation *operation,
                  const struct glue_template *template, const struct glue_candidate **clash)
{
	struct glue_node *node = root;
	uint32_t steps = template->segments_count - template->takes_rest;
	for (uint32_t i = 0; i < steps; i++) {
		if (template->segments[i].at != NULL) {
			node = literal_add(arena, node, template->segments[i]);
		} else {
			if (node->variable == NULL)
				node->variable = glue_trie_new(arena);
			node = node->variable;
		}
	}
	struct glue_endpoint **endpoint = template->takes_rest ? &node->rest : &node->end;
	if (*endpoint == NULL)
		*endpoint = arena_new(arena, struct glue_endpoint);
	return candidate_add(arena, *endpoint, (struct glue_candidate){operation, template}, clash);
}

/* ---- Search ------------------------------------------------------------------------------------------------------ */

struct search {
	const struct glue_segments *segments;
	bool (*accept)(void *context, const struct glue_endpoint *endpoint);
	void *context;
};

static const struct glue_endpoint *find(const struct search *search, const struct glue_node *node, uint32_t at)
{
	const struct glue_endpoint *found;
	if (at == search->segments->count)
		return node->end != NULL && search->accept(search->context, node->end) ? node->end : NULL;
	struct str segment = search->segments->at[at];
	const struct glue_node *next = literal_find(node, segment);
	if (next != NULL && (found = find(search, next, at + 1)) != NULL)
		return found;
	if (segment.length == 0)
		return NULL;
	if (node->variable != NULL && (found = find(search, node->variable, at + 1)) != NULL)
		return found;
	return node->rest != NULL && search->accept(search->context, node->rest) ? node->rest : NULL;
}

const struct glue_endpoint *glue_trie_find(const struct glue_node *root, const struct glue_segments *segments,
                                           bool (*accept)(void *context, const struct glue_endpoint *endpoint),
                                           void *context)
{
	return find(&(struct search){segments, accept, context}, root, 0);
}
