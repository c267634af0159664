/* What does not lie alike at all its members (DESIGN 8).
 *
 * A replicant may lie at some of its members only (PLACED): those hold it. The others are witnesses. They hear of every operation, so
 * that they know that it is there, since when and by whom it was deleted; but they run none, fetch no bodies, have no local id, and
 * take no request for it: the data plane sends on what concerns it to one who holds it (replica_here). For the others a witness
 * that knows an operation has settled it, so nothing is kept for its sake longer than it takes to tell it.
 *
 * An indivisible resource is held by its prime. What is made in a container is held where it was made, and witnessed at the container's
 * other sites.
 *
 * Who holds it stands in the header, which comes with the first message of it: no witness ever takes itself for a holder.
 *
 * A site that is added becomes a witness by an operation, as any new member does (members.c), of which nothing is run: what it had seen, K,
 * is what the new one need not hear of any more. It settles nothing before it has that operation.
 *
 * A witness W can become a holder. Marks only grow (members.c), so there is one for that, `holds`: whoever has it is no witness, whatever it
 * was. It is set by a holder A together with a copy C for W, as for a new member. When W hears of the mark, it begins anew: it has settled nothing, and waits
 * for the copy. Why nothing is lost that it has to run behind the copy, an operation X that C had not seen:
 *   W had settled X as a witness, so others may forget X when A has settled it. A does so after C; whatever A says from then on tells of the
 *   mark first. Whoever knows of the mark takes what W has settled for nothing until W has said that it holds it (`holding`);
 *   so X and its body are kept until W has run it. W has not forgotten X either, for the same reason.
 * Bodies that W did not need as a witness it fetches then.
 */
#include "replica/replica_int.h"

static bool holds(const struct replicant *r, uint32_t member)
{
	return !r->members[member].removed && !member_witnesses(&r->members[member]);
}

/* Something has no effect there, and a person let that be; and nothing is left that could still be decided otherwise. */
static bool is_let_be(const struct report *report)
{
	bool let_be = report->lacking;
	for (uint32_t i = 0; i < report->exceptions_count; i++) {
		if (report->exceptions[i].state != EXCEPTION_DISMISSED)
			return false;
		let_be = true;
	}
	return let_be;
}

/* It was to hold it, its service refused to make it, and that was let be. As long as all that were to hold it are there, one of them
 * has it, or it is deleted; when one of them is gone, perhaps nobody has. */
bool witness_holds_nothing(const struct replicant *r, uint32_t member)
{
	const struct report *report = &r->members[member].report;
	if (r->span != REPLICA_PLACED || !holds(r, member) || report->created ||
	    vector_is_zero(report->settled, r->members_count) || !is_let_be(report))
		return false;
	for (uint32_t i = 0; i < r->members_count; i++)
		if (r->members[i].removed && !member_witnesses(&r->members[i]))
			return true;
	return false;
}

/* It has it, as far as is known, and will. */
static bool is_sure(const struct replicant *r, uint32_t member)
{
	return holds(r, member) && !r->members[member].leaving && r->members[member].report.created;
}

bool witness_sends_on(const struct replicant *r)
{
	return is_witness(r) ||
	       (r->span == REPLICA_PLACED && (r->newcomer || members_is_leaving(r) || witness_holds_nothing(r, r->self)));
}

/* Those that have it before those that are about to, or are about to leave. */
uint32_t witness_holders(const struct replicant *r, site_id *holders, uint32_t most)
{
	uint32_t count = 0;
	site_id prime = witness_prime(r), self = r->members[r->self].site;
	if (prime != 0 && prime != self && most > 0)
		holders[count++] = prime;
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < r->members_count && count < most; i++)
			if (holds(r, i) && is_sure(r, i) == (round == 0) && r->members[i].site != prime &&
			    r->members[i].site != self && !witness_holds_nothing(r, i))
				holders[count++] = r->members[i].site;
	return count;
}

/* The one that it was made with; when that is gone, or leaves and another one has it, the first by id of those: which is the same everywhere.
 * None: those that had it were removed from the mesh, and whoever else was to hold it has not made it. */
site_id witness_prime(const struct replicant *r)
{
	site_id first = 0, sure = 0;
	bool own = false;
	for (uint32_t i = 0; i < r->members_count; i++) {
		site_id site = r->members[i].site;
		if (!holds(r, i) || witness_holds_nothing(r, i))
			continue;
		own |= site == r->prime;
		if (site == r->prime && !r->members[i].leaving)
			return site;
		if (is_sure(r, i) && (sure == 0 || site < sure))
			sure = site;
		if (first == 0 || site < first)
			first = site;
	}
	return sure != 0 ? sure : own ? r->prime : first;
}

static bool comes_before(const struct replicant *r, site_id a, site_id b)
{
	return a == r->prime || (b != r->prime && a < b);
}

int replica_origin(struct replica *replica, struct replica_id id, struct replica_origin *origin)
{
	struct replicant *r;
	int code = replicant_load(replica, id, &r);
	*origin = (struct replica_origin){0};
	if (code != 0)
		return code;
	if (r->kind != REPLICANT_LIVE)
		return ERR_NOT_FOUND;
	site_id *members = origin->members;
	for (uint32_t i = 0; i < r->members_count; i++) {
		site_id site = r->members[i].site;
		if (r->members[i].added)
			continue;
		uint32_t at = origin->members_count++;
		for (; at > 0 && comes_before(r, site, members[at - 1]); at--)
			members[at] = members[at - 1];
		members[at] = site;
		origin->here |= i == r->self;
	}
	replicants_trim(replica);
	return 0;
}

/* ---- The header ------------------------------------------------------------------------------------------------------ */

void witness_put(struct buf *out, const struct replicant *r)
{
	put_number(out, r->prime, 8);
	for (uint32_t i = 0; i < r->members_count; i++)
		put_number(out, r->members[i].witness, 1);
}

bool witness_read(struct reader *reader, struct replicant *r)
{
	r->prime = read_64(reader);
	bool held = false;
	for (uint32_t i = 0; i < r->members_count; i++) {
		uint8_t witness = read_8(reader);
		if (witness > 1 || (witness == 1 && r->span != REPLICA_PLACED))
			return false;
		r->members[i].witness = witness;
		held |= witness == 0;
	}
	return !reader->failed && held && r->prime != 0;
}

static bool is_among(site_id site, const site_id *sites, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (sites[i] == site)
			return true;
	return false;
}

int witness_check(const struct replica *replica, const struct replica_create *create, struct err *err)
{
	bool placed = create->span == REPLICA_PLACED;
	if (create->consistency != REPLICA_EVENTUAL)
		return err_set(err, ERR_INVALID, "what spans sites cannot be `weak`");
	if (!is_among(create->prime, create->members, create->members_count))
		return err_set(err, ERR_INVALID, "its prime site is not among the members");
	if (!placed)
		return 0;
	for (uint32_t i = 0; i < create->holders_count; i++)
		if (!is_among(create->holders[i], create->members, create->members_count))
			return err_set(err, ERR_INVALID, "a site that is to hold it is not among the members");
	if (!is_among(create->prime, create->holders, create->holders_count))
		return err_set(err, ERR_INVALID, "its prime site is not among those that hold it");
	if (!is_among(replica->options.self, create->holders, create->holders_count))
		return err_set(err, ERR_INVALID, "this site is not among those that hold it");
	return 0;
}

void witness_take(struct replicant *r, const struct replica_create *create)
{
	for (uint32_t i = 0; i < r->members_count && create->span == REPLICA_PLACED; i++)
		r->members[i].witness = !is_among(r->members[i].site, create->holders, create->holders_count);
}

/* ---- What a witness does --------------------------------------------------------------------------------------------- */

static void tell_new(struct replica *replica, const struct replicant *r)
{
	const uint32_t *settled = r->members[r->self].report.settled;
	for (uint32_t i = 0; i < r->ops_count; i++)
		if (r->ops[i]->number > settled[r->ops[i]->member])
			replica_tell(replica, r, r->ops[i]->number, r->ops[i]->member, r->self, REPLICA_APPLIED);
}

/* An id that users choose is the same everywhere: who asks for it here means that one. */
static void take_name(struct replica *replica, struct replicant *r)
{
	if (!r->ids_chosen)
		return;
	for (uint32_t i = 0; i < r->members_count; i++) {
		const struct report *report = &r->members[i].report;
		if (holds(r, i) && report->local_id_bytes > 0 && !lane_is_closed(r)) {
			local_set(replica, r, str_make(report->local_id, report->local_id_bytes), report->local_id_quoted);
			return;
		}
	}
	local_clear(replica, r);
}

/* The operation that made it a witness is here, so that all that it had seen is known here, or was forgotten by all. */
static bool has_come(const struct replicant *r)
{
	for (uint32_t i = 0; i < r->ops_count; i++)
		if (r->ops[i]->adopts == r->members[r->self].site && (r->ops[i]->flags & OP_WITNESS))
			return true;
	return false;
}

void witness_follow(struct replica *replica, struct replicant *r)
{
	take_name(replica, r);
	if (r->newcomer && !has_come(r))
		return;
	r->head_dirty |= r->newcomer;
	r->newcomer = false;
	if (vector_equal(own_report(r)->settled, r->known, r->members_count))
		return;
	tell_new(replica, r);
	lane_order(r);
	r->steps_count = 0;
	for (uint32_t i = 0; i < r->sequence.ops_count; i++)
		lane_append(r, r->ops[r->sequence.ops[i]]);
	lane_settle(r);
}

/* ---- A witness that is to hold it ------------------------------------------------------------------------------------- */

static void need_blobs(struct replica *replica, const struct replicant *r)
{
	for (uint32_t i = 0; i < r->ops_count; i++) {
		struct op_row row;
		const struct op *op = r->ops[i];
		if ((op->flags & OP_BLOB) && op_fetch(replica, r, op->member, op->number, &row) == 0)
			blob_need(replica, r, op->member, op->number, &row.request, false);
	}
}

void witness_ends(struct replica *replica, struct replicant *r)
{
	struct report *own = own_report(r);
	if (r->kind != REPLICANT_LIVE)
		return;
	local_clear(replica, r);
	memset(own->settled, 0, r->members_count * sizeof(*own->settled));
	vector_copy(r->handled, r->base, r->members_count);
	r->steps_count = 0;
	r->newcomer = true;
	r->ordered = false;
	r->head_dirty = r->lane_dirty = r->report_dirty = true;
	need_blobs(replica, r);
}
