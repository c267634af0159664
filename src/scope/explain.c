/* Plans as people and programs see them. */
#include "base/timestamp.h"
#include "scope/scope_int.h"

const char *scope_step_name(enum scope_step_op op)
{
	static const char *const names[] = {
		[SCOPE_ONE] = "one",    [SCOPE_ALL_OF] = "all", [SCOPE_SPAN_OF] = "span", [SCOPE_OTHERWISE] = "otherwise",
		[SCOPE_ANY_OF] = "any",
	};
	return names[op];
}

const char *scope_consistency_name(enum scope_consistency consistency)
{
	static const char *const names[] = {
		[SCOPE_EVENTUAL] = "eventual",
		[SCOPE_STRONG] = "strong",
		[SCOPE_WEAK] = "weak",
	};
	return names[consistency];
}

const char *scope_state_name(enum scope_state state)
{
	static const char *const names[] = {
		[SCOPE_PRESENT] = "present",
		[SCOPE_UNKNOWN] = "unknown",
		[SCOPE_ABSENT] = "absent",
	};
	return names[state];
}

/* ---- For people ------------------------------------------------------------------------------------------------- */

struct drawing {
	struct buf *out;
	const struct scope_plan *plan;
	const char *dim, *bold, *warn, *plain; /* colours, or "" */
};

/* "8 ms", "0.35 ms" */
static void put_latency(struct buf *out, int64_t latency_us)
{
	buf_printf(out, "%lld", (long long)(latency_us / 1000));
	int rest = (int)(latency_us % 1000), digits = 3;
	for (; rest && rest % 10 == 0; rest /= 10)
		digits--;
	if (rest)
		buf_printf(out, ".%0*d", digits, rest);
	buf_put(out, STR(" ms"));
}

static void put_site(const struct drawing *drawing, const struct scope_step *step)
{
	struct buf *out = drawing->out;
	buf_printf(out, "%s%.*s%s %s(", drawing->bold, STR_FMT(step->site), drawing->plain, drawing->dim);
	if (str_equal(step->site, drawing->plan->at))
		buf_put(out, STR("here"));
	else if (step->latency_us == SCOPE_RTT_UNKNOWN)
		buf_put(out, STR("distance unknown"));
	else
		put_latency(out, step->latency_us);
	if (step->state != SCOPE_PRESENT) {
		buf_printf(out, ", %s%s", drawing->warn, scope_state_name(step->state));
		if (step->since_ms) {
			char since[TIMESTAMP_BYTES];
			timestamp_format(step->since_ms, since);
			buf_printf(out, " since %s", since);
		}
		buf_put(out, str_of(drawing->plain));
		buf_put(out, str_of(drawing->dim));
	}
	buf_printf(out, ")%s\n", drawing->plain);
}

static void put_group(const struct drawing *drawing, const struct scope_step *step)
{
	struct buf *out = drawing->out;
	switch (step->op) {
	case SCOPE_ALL_OF:
		buf_printf(out, "all, %s: at every one of these; ", scope_consistency_name(step->consistency));
		buf_put(out, step->consistency == SCOPE_STRONG ? STR("answered once a majority agrees\n")
		                                               : STR("answered by the first\n"));
		break;
	case SCOPE_SPAN_OF:
		buf_printf(out, "span: one resource over these; %.*s is its prime site\n", STR_FMT(step->of[0]->site));
		break;
	case SCOPE_OTHERWISE: buf_put(out, STR("otherwise: the first that works, in this order\n")); break;
	default: buf_put(out, STR("any: whichever answers first, asked in this order\n")); break;
	}
}

/* `indent` holds the branches of the levels above; it is extended for the parts and cut back. */
static void draw_step(const struct drawing *drawing, const struct scope_step *step, struct buf *indent)
{
	if (step->op == SCOPE_ONE) {
		put_site(drawing, step);
		return;
	}
	put_group(drawing, step);
	size_t length = indent->length;
	for (uint32_t i = 0; i < step->of_count; i++) {
		bool last = i + 1 == step->of_count;
		buf_put(drawing->out, buf_str(indent));
		buf_put(drawing->out, last ? STR("└─ ") : STR("├─ "));
		buf_put(indent, last ? STR("   ") : STR("│  "));
		draw_step(drawing, step->of[i], indent);
		indent->length = length;
	}
}

void scope_plan_draw(struct buf *out, const struct scope_plan *plan, bool colour)
{
	struct drawing drawing = {.out = out,
	                          .plan = plan,
	                          .dim = colour ? "\033[2m" : "",
	                          .bold = colour ? "\033[1m" : "",
	                          .warn = colour ? "\033[33m" : "",
	                          .plain = colour ? "\033[0m" : ""};
	struct buf indent = {0};
	if (plan->service.length)
		buf_printf(out, "%s%.*s%s, ", drawing.bold, STR_FMT(plan->service), drawing.plain);
	buf_printf(out, "asked at %.*s", STR_FMT(plan->at));
	if (plan->root->latency_us != SCOPE_RTT_UNKNOWN) {
		buf_put(out, STR(", expected latency "));
		put_latency(out, plan->root->latency_us);
	}
	buf_put(out, plan->with_requirements ? STR(", what is required is brought along\n") : STR("\n"));
	draw_step(&drawing, plan->root, &indent);
	for (uint32_t i = 0; i < plan->warnings_count; i++)
		buf_printf(out, "%swarning:%s %.*s\n", drawing.warn, drawing.plain, STR_FMT(plan->warnings[i]));
	buf_free(&indent);
}

/* ---- For programs ----------------------------------------------------------------------------------------------- */

static void json_step(struct buf *out, const struct scope_step *step, bool with_requirements)
{
	buf_printf(out, "{\"op\":\"%s\"", scope_step_name(step->op));
	if (with_requirements)
		buf_put(out, STR(",\"with_requirements\":true"));
	if (step->op == SCOPE_ONE) {
		buf_put(out, STR(",\"site\":"));
		buf_put_json(out, step->site);
		buf_put_char(out, '}');
		return;
	}
	if (step->op == SCOPE_ALL_OF)
		buf_printf(out, ",\"consistency\":\"%s\"", scope_consistency_name(step->consistency));
	if (step->op == SCOPE_SPAN_OF) {
		buf_put(out, STR(",\"prime\":"));
		buf_put_json(out, step->of[0]->site);
	}
	buf_put(out, step->op == SCOPE_SPAN_OF ? STR(",\"sites\":[") : STR(",\"of\":["));
	for (uint32_t i = 0; i < step->of_count; i++) {
		if (i > 0)
			buf_put_char(out, ',');
		if (step->op == SCOPE_SPAN_OF)
			buf_put_json(out, step->of[i]->site);
		else
			json_step(out, step->of[i], false);
	}
	buf_put(out, STR("]}"));
}

void scope_plan_json(struct buf *out, const struct scope_plan *plan)
{
	json_step(out, plan->root, plan->with_requirements);
}
