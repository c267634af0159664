/* The order of operations, checked by SPIN: every interleaving of issuing, delivery and execution at three members.
 *
 * What is checked is the code itself. Promela chooses what happens next, and holds all state; src/replica/order.c and
 * order_next.c are compiled into the verifier and say what is to be done. scripts/model runs it, with these settings:
 *
 *   LIMIT      operations, with the create
 *   LOSES      1: a delete loses against what is concurrent
 *   SENSITIVE  1: `relative` depends on everything, and the rules say that its order is to be kept
 *   REPLAYS    1: the create can be run again as a replace
 *   EVERYWHERE 1: begin with the create delivered and run at all members, which leaves room for one operation more
 *
 * An operation is issued at any member, at any moment, with any effect but `create`, and with one of two stamps, so that the
 * order T of concurrent ones is any. It has seen what is handled there. It is delivered to each other member once all that it
 * had seen is there, and run there, or not, as order_next() says, one step at a time.
 *
 * Asserted:
 *   after each step   the state of a member is what its X gives, run from the start; and if nothing new came, it would come
 *                     to an end within so many steps
 *   when a member has nothing to run
 *                     it has the state that E gives, of what it knows, or is stuck. With REPLAYS nobody is ever stuck
 *   when it is quiet  (all is delivered, and nobody has anything to run) all have the same state. If some are stuck, one
 *                     issues its state as a replace, as one that had seen all: one that is settled, or else the nearest to
 *                     E. When the others have run that, all have the same state
 */
#define MEMBERS 3
#define OPS (LIMIT + 1) /* one more, to repair */

byte n; /* operations so far */
byte effect[OPS], issuer[OPS], stamp[OPS], seen[OPS];
int put_value[OPS], put_field[OPS]; /* of a repair */
byte known[MEMBERS];                /* sets of operations are bits */
byte x_count[MEMBERS], x_op[MEMBERS * (OPS + 1)], x_how[MEMBERS * (OPS + 1)];
bit here[MEMBERS];
int value[MEMBERS], field[MEMBERS];
bit repaired;

c_decl {
\#include "replica/order.h"
\#include <string.h>

struct item {
	int here, value, field;
};

struct view {
	struct order_op ops[OPS];
	uint32_t vectors[OPS][MEMBERS];
	uint32_t world[OPS], index[OPS];
	struct order_set set;
	struct order_sequence sequence;
	struct order_step_done done[OPS + 1];
	uint32_t done_count;
};
}

c_code {
static struct arena arena;

/* Not set, assign and relative: defaults, unless SENSITIVE. By effect. */
static uint8_t resolutions[ORDER_EFFECTS * ORDER_EFFECTS];

static void setup(void)
{
	memset(resolutions, ORDER_DEFAULT, sizeof(resolutions));
	if (SENSITIVE) {
		resolutions[ORDER_RELATIVE * ORDER_EFFECTS + ORDER_RELATIVE] = ORDER_KEEP;
		resolutions[ORDER_ASSIGN * ORDER_EFFECTS + ORDER_RELATIVE] = ORDER_KEEP;
		resolutions[ORDER_RELATIVE * ORDER_EFFECTS + ORDER_ASSIGN] = ORDER_KEEP;
	}
	arena_init(&arena, 0);
}

static uint32_t number_of(int op)
{
	uint32_t number = 1;
	for (int i = 0; i < op; i++)
		number += now.issuer[i] == now.issuer[op];
	return number;
}

/* What a member knows, as order.h wants it. */
static void look(int member, struct view *view)
{
	uint32_t count = 0;
	arena_reset(&arena);
	memset(view, 0, sizeof(*view));
	for (int i = 0; i < now.n; i++) {
		if (!(now.known[member] >> i & 1))
			continue;
		for (int j = 0; j < i; j++)
			if (now.seen[i] >> j & 1)
				view->vectors[count][now.issuer[j]]++;
		view->ops[count] = (struct order_op){.member = now.issuer[i],
		                                     .number = number_of(i),
		                                     .stamp = now.stamp[i],
		                                     .seen = view->vectors[count],
		                                     .effect = now.effect[i],
		                                     .class = now.effect[i]};
		view->world[count] = (uint32_t)i;
		view->index[i] = count++;
	}
	view->set = (struct order_set){
		.ops = view->ops,
		.ops_count = count,
		.members_count = MEMBERS,
		.rules = {.classes = ORDER_EFFECTS, .resolutions = resolutions, .delete_loses = LOSES, .create_replays = REPLAYS}};
	order_build(&arena, &view->set, &view->sequence);
	view->done_count = now.x_count[member];
	for (uint32_t i = 0; i < view->done_count; i++) {
		view->done[i].op = view->index[now.x_op[member * (OPS + 1) + (int)i]];
		view->done[i].how = (enum order_done)now.x_how[member * (OPS + 1) + (int)i];
	}
}

static void keep_done(int member, const struct view *view)
{
	memset(&now.x_op[member * (OPS + 1)], 0, OPS + 1);
	memset(&now.x_how[member * (OPS + 1)], 0, OPS + 1);
	now.x_count[member] = (unsigned char)view->done_count;
	for (uint32_t i = 0; i < view->done_count; i++) {
		now.x_op[member * (OPS + 1) + (int)i] = (unsigned char)view->world[view->done[i].op];
		now.x_how[member * (OPS + 1) + (int)i] = (unsigned char)view->done[i].how;
	}
}

/* ---- The service: a value, and a field. It refuses what is not there. */
static int serve(struct item *item, int op, int as_replace)
{
	int create = now.effect[op] == ORDER_CREATE && !as_replace;
	if (now.effect[op] == ORDER_DELETE || create) {
		if (create && item->here)
			return 0;
		*item = (struct item){.here = create, .value = create ? 23 : 0};
		return 1;
	}
	if (!item->here)
		return 0;
	if (now.effect[op] == ORDER_CREATE)
		*item = (struct item){.here = 1, .value = 23};
	else if (now.effect[op] == ORDER_REPLACE && now.put_value[op] >= 0)
		*item = (struct item){.here = 1, .value = now.put_value[op], .field = now.put_field[op]};
	else if (now.effect[op] == ORDER_REPLACE)
		*item = (struct item){.here = 1, .value = 100 * op};
	else if (now.effect[op] == ORDER_ASSIGN)
		item->field = op;
	else if (SENSITIVE)
		item->value = (item->value * 3 + item->field * 7 + op) % 10007;
	else
		item->value += 1 << (4 * op);
	return 1;
}

static struct item item_of(int member)
{
	return (struct item){now.here[member], now.value[member], now.field[member]};
}

static void keep_item(int member, struct item item)
{
	now.here[member] = (unsigned)item.here & 1;
	now.value[member] = item.value;
	now.field[member] = item.field;
}

static int same(struct item x, struct item y)
{
	return x.here == y.here && (!x.here || (x.value == y.value && x.field == y.field));
}

/* ---- What may happen */
static int is_handled(const struct view *view, uint32_t op)
{
	const struct order_place *place = &view->sequence.places[op];
	for (uint32_t i = 0; i < view->done_count; i++)
		if (view->done[i].op == op || (place->fate == ORDER_OBSOLETE && view->done[i].op == place->by))
			return 1;
	return place->fate == ORDER_SUPERSEDED;
}

/* What is handled, with all that those had seen; its own, and what they had seen, always. */
static int seen_by(int member)
{
	struct view view;
	int handled = 0;
	look(member, &view);
	for (uint32_t i = 0; i < view.set.ops_count; i++)
		if (is_handled(&view, i))
			handled |= 1 << view.world[i];
	for (int i = 0; i < now.n; i++)
		if ((handled >> i & 1) && (now.seen[i] & ~handled))
			handled &= ~(1 << i);
	for (int i = 0; i < now.n; i++)
		if (now.issuer[i] == member)
			handled |= 1 << i | now.seen[i];
	return handled;
}

static int issue(int member, int what, int later, int is_repair)
{
	int op = now.n, sees = is_repair ? (1 << now.n) - 1 : op == 0 ? 0 : seen_by(member);
	now.effect[op] = (unsigned char)what;
	now.issuer[op] = (unsigned char)member;
	now.seen[op] = (unsigned char)sees;
	now.put_value[op] = is_repair ? now.value[member] : -1;
	now.put_field[op] = is_repair ? now.field[member] : 0;
	now.stamp[op] = (unsigned char)(1 + later);
	for (int i = 0; i < op; i++)
		if ((sees >> i & 1) && now.stamp[i] + 1 + later > now.stamp[op])
			now.stamp[op] = (unsigned char)(now.stamp[i] + 1 + later);
	struct item item = item_of(member);
	if (!is_repair) {
		serve(&item, op, 0);
		keep_item(member, item);
	}
	now.n++;
	now.known[member] |= (unsigned char)(1 << op);
	now.x_op[member * (OPS + 1) + now.x_count[member]] = (unsigned char)op;
	now.x_how[member * (OPS + 1) + now.x_count[member]++] = ORDER_DONE;
	return 1;
}

static int can_execute(int member);

/* Members meet only through operations. Once all are issued, one member after the other can be looked at. */
static int may_go_on(int member)
{
	for (int i = 0; now.n >= LIMIT && i < member; i++)
		if (now.known[i] != (1 << now.n) - 1 || can_execute(i))
			return 0;
	return 1;
}

static int can_deliver(int member, int op)
{
	return may_go_on(member) && op < now.n && !(now.known[member] >> op & 1) && !(now.seen[op] & ~now.known[member]);
}

static int can_deliver_some(int member)
{
	for (int op = 0; op < now.n; op++)
		if (can_deliver(member, op))
			return 1;
	return 0;
}

static struct order_next next_of(int member, struct view *view)
{
	struct order_next next;
	look(member, view);
	order_next(&arena, &view->set, &view->sequence, view->done, view->done_count, &next);
	return next;
}

static int can_execute(int member)
{
	struct view view;
	struct order_next next = next_of(member, &view);
	return next.action == ORDER_RUN || next.action == ORDER_RERUN;
}

static int is_stuck(int member)
{
	struct view view;
	return next_of(member, &view).action == ORDER_STUCK;
}

static void execute(int member)
{
	struct view view;
	struct order_next next = next_of(member, &view);
	struct item item = item_of(member);
	int done = serve(&item, (int)view.world[next.op], next.as_replace);
	keep_item(member, item);
	order_step(view.done, &view.done_count, &next, done ? ORDER_DONE : ORDER_REJECTED);
	keep_done(member, &view);
}

static int is_quiet(void)
{
	for (int member = 0; member < MEMBERS; member++)
		if (now.known[member] != (1 << now.n) - 1 || can_execute(member))
			return 0;
	return 1;
}

static void begin(void)
{
	setup();
	issue(0, ORDER_CREATE, 0, 0);
	for (int member = 1; EVERYWHERE && member < MEMBERS; member++) {
		now.known[member] = 1;
		execute(member);
	}
}

/* ---- What must hold */
static int is_as_executed(int member)
{
	struct item item = {0};
	for (int i = 0; i < now.x_count[member]; i++)
		if (now.x_how[member * (OPS + 1) + i] != ORDER_REJECTED)
			serve(&item, now.x_op[member * (OPS + 1) + i], now.x_how[member * (OPS + 1) + i] == ORDER_REPLAYED);
	return same(item, item_of(member));
}

/* With nothing new, and nothing refused. */
static int comes_to_an_end(int member)
{
	struct view view;
	struct order_next next = next_of(member, &view);
	for (int i = 0; next.action == ORDER_RUN || next.action == ORDER_RERUN; i++) {
		if (i > (OPS + 1) * (OPS + 1))
			return 0;
		order_step(view.done, &view.done_count, &next, ORDER_DONE);
		order_next(&arena, &view.set, &view.sequence, view.done, view.done_count, &next);
	}
	return 1;
}

static struct item item_of_sequence(int member)
{
	struct view view;
	struct item item = {0};
	look(member, &view);
	for (uint32_t i = 0; i < view.sequence.ops_count; i++)
		serve(&item, (int)view.world[view.sequence.ops[i]], 0);
	return item;
}

static int is_right(int member)
{
	return (!REPLAYS && is_stuck(member)) || same(item_of(member), item_of_sequence(member));
}

/* At its end, when it is right, how it came there makes no difference any more: as if it had run E. */
static void finish(int member)
{
	struct view view;
	if (now.n < LIMIT || now.repaired || now.known[member] != (1 << now.n) - 1 ||
	    next_of(member, &view).action != ORDER_NOTHING || !is_right(member))
		return;
	view.done_count = view.sequence.ops_count;
	for (uint32_t i = 0; i < view.done_count; i++)
		view.done[i] = (struct order_step_done){.op = view.sequence.ops[i]};
	keep_done(member, &view);
}

static int all_same(void)
{
	for (int member = 0; member < MEMBERS; member++)
		if (is_stuck(member) || !same(item_of(member), item_of(0)))
			return 0;
	return 1;
}

static int some_stuck(void)
{
	for (int member = 0; member < MEMBERS; member++)
		if (is_stuck(member))
			return 1;
	return 0;
}

/* Who gives its state: one that is settled, or else the nearest. */
static int repairer(void)
{
	int best = 0;
	uint32_t most = 0;
	for (int member = 0; member < MEMBERS; member++) {
		struct view view;
		struct order_next next = next_of(member, &view);
		uint32_t distance = next.action == ORDER_STUCK ? next.distance + 1 : UINT32_MAX;
		if (distance > most) {
			most = distance;
			best = member;
		}
	}
	return best;
}
}

#define CHECK(M) \
	assert(c_expr { (is_as_executed(M) && comes_to_an_end(M)) }); \
	assert(c_expr { (can_execute(M) || is_right(M)) }); \
	c_code { finish(M); }

#define ISSUE(M) \
	:: atomic { n < LIMIT && here[M] && !repaired -> \
		if \
		:: what = 1 \
		:: what = 2 \
		:: what = 3 \
		:: what = 4 \
		fi; \
		if \
		:: later = 0 \
		:: later = 1 \
		fi; \
		c_code { issue(M, Pmesh->what, Pmesh->later, 0); }; \
		what = 0; later = 0; \
		CHECK(M) \
	}

#define DELIVER(M) \
	:: atomic { c_expr { (can_deliver_some(M)) } -> \
		if \
		:: c_expr { (can_deliver(M, 0)) } -> what = 0 \
		:: c_expr { (can_deliver(M, 1)) } -> what = 1 \
		:: c_expr { (can_deliver(M, 2)) } -> what = 2 \
		:: c_expr { (can_deliver(M, 3)) } -> what = 3 \
		:: c_expr { (can_deliver(M, 4)) } -> what = 4 \
		:: c_expr { (can_deliver(M, 5)) } -> what = 5 \
		fi; \
		known[M] = known[M] | (1 << what); what = 0; CHECK(M) \
	}

#define EXECUTE(M) \
	:: atomic { c_expr { (may_go_on(M) && can_execute(M)) } -> c_code { execute(M); }; CHECK(M) }

active proctype mesh()
{
	byte what, later;
	c_code { begin(); };
	do
	ISSUE(0) ISSUE(1) ISSUE(2)
	DELIVER(0) DELIVER(1) DELIVER(2)
	EXECUTE(0) EXECUTE(1) EXECUTE(2)
	:: atomic { !repaired && c_expr { (is_quiet()) } ->
		assert(c_expr { (is_right(0) && is_right(1) && is_right(2)) });
		if
		:: c_expr { (some_stuck()) } -> repaired = 1; c_code { issue(repairer(), ORDER_REPLACE, 0, 1); }
		:: else -> assert(c_expr { (all_same()) }); break
		fi
	}
	:: atomic { repaired && c_expr { (is_quiet()) } -> assert(c_expr { (all_same()) }); break }
	od
}
