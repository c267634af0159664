/* Runs that failed once: each showed a mistake in the room, or in a check, mended since. They are run as
 *
 *     cheops-sim --vary --seed SEED --steps STEPS
 *
 * A seed means another run once the room or the plan of faults changes what it draws; they stay, as any seed is worth as
 * much as another. Where the cause can be told in a story of a few sites, tests/unit/site has that story. */
#ifndef SIM_SEEDS_H
#define SIM_SEEDS_H

#include <stdint.h>

struct sim_named_seed {
	const char *what; /* it was */
	uint64_t seed;
	uint32_t steps;
};

static const struct sim_named_seed sim_named_seeds[] = {
	{"a new site's first comparison was dropped by one that did not know it yet: sites that joined together did not "
     "know each other for half a minute, and called each other lost",
     1, 150},
	{"the same, with a site that started again with nothing", 4, 150},
	{"strangers were given 7.5 s to answer: the deaths of sites that had just joined were seen late", 11, 150},
	{"a removal during a partition was not known in the other half until tables were compared by chance: there the "
     "removed site was believed, and called others lost",
     158, 150},
	{"the same, in more company", 19, 150},
	{"the one who accused missed the denial, and nobody corrected it", 291, 150},
	{"a rumour missed one of 25 sites: it was sent too few times where there are few", 126, 150},
	{"a removal during a partition too short for anybody to become lost", 307, 150},
	{"after a partition all compared tables with all who came back, at once: 225 datagrams in one second from one site",
     33, 150},
	{"a site with nothing left but its key, a clock an hour late and a new address: its card was older than the known "
     "one, "
     "so all answered to the old address",
     10105, 1200},
	{"a site that missed a denial, and was not the accuser, called a live one lost when its time was over", 508, 1200},
};

/* Those that need a crowd, in which sites are revoked and lied about:
 *
 *     cheops-sim --seed SEED --steps STEPS --sites SITES --faults FAULTS --kinds revoke,liar --calm 0 --crashes 0 --warm */
struct sim_named_crowd {
	struct sim_named_seed named;
	uint32_t sites;
	uint32_t faults;
};

static const struct sim_named_crowd sim_named_crowds[] = {
	{{"records of the authority go to all sites at once: the check excused that for the rest of a step only, while it "
      "looks at "
      "whole seconds (with 1 000 sites and seed 3: 1076 datagrams in one second, of a liar that revoked another)",
      5, 50},
     300,
     6},
};

/* The same for replicated resources: cheops-sim-replica --vary --seed SEED --steps STEPS. */
static const struct sim_named_seed choir_named_seeds[] = {
	{"what was rejected and is run again was taken for settled meanwhile, and forgotten by the others", 282, 200},
	{"what was never made at a member was not taken for deleted there", 493, 200},
	{"a doubt of which nothing could be left was shown, and could not be judged", 172, 200},
	{"what a person wanted to be run again, of what was deleted meanwhile, was answered to nobody", 376, 200},
	{"changes were issued of what may never have been created", 312, 200},
	{"what a create in doubt had made was forgotten when it was deleted", 352, 200},
	{"what was withheld lost its place when something was forgotten, and was run twice", 198, 200},
	{"a create that refers to one which is rejected waited for ever", 180, 200},
	{"an operation in the midst of what was done was run again, as if it were the end", 203, 200},
	{"a PUT had made what was not there, and nothing was ever out of line", 1043, 200},
	{"the create was needed though a PUT had made it: the PUT was run again and again", 2574, 200},
	{"a create that could not be repeated as a replace was run as a create: twice there", 646, 200},
	{"a person's word took the number of what was being executed", 2034, 200},
	{"a repair that could not help was repeated for ever", 1254, 200},
	{"what was withheld was run among what was forgotten: its order was lost", 3201, 200},
	{"two that were withheld, one of which was issued: the other one lost its place", 3579, 200},
	{"a repair that was due spun while its lane waited", 295, 200},
	{"what a person let be was taken for having set what earlier ones would have set: their rejection was not shown "
     "any more",
     27387, 200},
	{"the same, without a fault", 17533, 200},
	{"a delete that one service refused, and a person let be, was never forgotten there", 15282, 200},
	{"the same, and a user went on to change it, where the others had forgotten it", 21677, 200},
	{"who was stuck with what the others had deleted waited for a state that nobody had", 20454, 200},
	{"two that took each other for unreachable answered each message with another one", 23540, 200},
	{"what is gone was told once for each message that came from a slow line", 24950, 200},
	{"two that lacked something did not agree on which of them does, and each waited for the other", 10639, 200},
	{"what became due again because a person had something run was forgotten by the others", 15234, 200},
	{"a member that had deleted it was waited for to give its state", 12407, 200},
	{"what was withheld was issued behind a delete", 23966, 200},
	{"what had lost against something in doubt was not run when that did not happen", 3262, 200},
	{"what was gone had something pending: reports of members on what was forgotten here before", 104387, 200},
	{"two deletes, each of which lost: each site waited for the other to give what neither had", 5812, 200},
	{"a state was taken where a delete had been rejected: that was shown, and could not be judged", 6922, 200},
	{"a session had not what was acknowledged in it while an earlier operation was made sure of", 23, 200},
	{"in a check: an inquiry that died with its agent was taken for the operation, which a person then dismissed",
     18312, 200},
	{"the same: it was run twice", 29046, 200},
	{"in the model: a PUT that had made a zone, and was not answered, was refused when it was repeated", 23055, 200},
	{"in the model: a person took away what a create in doubt had made while its agent was asking", 9587, 200},
	{"in a check: the state that a site gives counts there at once", 10921, 200},
	{"the same, within one event", 28863, 200},
	{"in a check: what was undone by a person's verdict, and is run again, comes behind what had seen it", 6973, 200},
	{"in a check: what a person wants to be run again is not settled", 24453, 200},
	{"what refers to something that was in doubt, and never came to be, waited for ever at the other members", 2808,
     200},
	{"what was rejected at one member, and so did not win against a delete there, was forgotten: so was why it was "
     "gone "
     "there",
     19524, 200},
	{"what a replace had made needless was forgotten before that lost, by the rules, against an append", 17645, 200},
	{"who had deleted it, and refused what came after, was waited for to decide on that", 2257, 200},
	{"who was stuck with a doubt that a person let be was taken for undecided", 18221, 200},
	{"a state was given that lacked what others had accepted", 361, 200},
	{"the same, of a stuck one", 1450, 200},
	{"a delete that a person had run again, and then let be, was not let go by who was stuck", 34610, 200},
	{"who had deleted it, which lost, was waited for to give it, since another one lacked what a person let be", 20048,
     200},
};

/* The same with users who add to one name: cheops-sim-replica --vary --rivals --seed SEED --steps STEPS. */
static const struct sim_named_seed choir_named_rivals[] = {
	{"who had run something late was taken for lacking it, and got the state of one that lacked more", 127, 200},
	{"the same, among several", 37, 200},
	{"each lacked something that others had accepted, and one of them gave its state", 361, 200},
	{"the same, after two names had become one", 121, 200},
	{"the same, and it was given several times", 789, 200},
	{"who was stuck gave its state while another one was away, and covered what that one's users had done", 951, 200},
	{"the same, of two", 628, 200},
	{"a create that was refused, as the name was taken, made the site forget who had it", 2932, 200},
};

/* With resources that lie at some of their members only, among others: --vary --placed --seed SEED --steps STEPS. */
static const struct sim_named_seed choir_named_placed[] = {
	{"in a check: what was withheld, and may have happened, was taken for issued, and a delete for lost against it",
     8722, 200},
	{"in a check: a stamp that was lost with a failed commit counted; and what a restart issued was stamped before "
     "what "
     "had come meanwhile",
     6580, 200},
	{"in a check: a user's operation that may have had its effect was made sure of before what was due again meanwhile",
     13442, 200},
	{"in the model: a person took the effect of an earlier run, which was undone since, for that of one that never "
     "began",
     15506, 200},
	{"what was withheld, and had happened, was dropped for a delete that was then refused: it was in one copy alone",
     16437, 200},
	{"in a check: what was rejected before the item was made was taken for rejected then, though it is to be tried "
     "again",
     29225, 200},
	{"in a check: two deletes, each of which lost, left nobody that could give it, and a witness was to take it for "
     "gone",
     94643, 200},
};

/* The same where a delete loses: cheops-sim-replica --vary --losing-deletes --seed SEED --steps STEPS. */
static const struct sim_named_seed choir_named_losing[] = {
	{"whether it was made anew was in doubt, and a person's retry did not know any more that it had been deleted", 5557,
     200},
	{"the same, of what could be replayed", 1555, 200},
	{"what was never made here was made from a state, since a delete was known", 1189, 200},
	{"what a delete that counts had taken was made from a state, deleted again, and so on", 15964, 200},
	{"a delete was let be, and so forgotten by the others, while a user's change was being executed", 18402, 200},
	{"in a check: what is withheld has given up its number, and wins against no delete", 13366, 200},
	{"in a check: what had won against another one, and was being committed, was not known to have", 52329, 200},
};

/* The same with members that come and go: cheops-sim-replica --vary --members --seed SEED --steps STEPS. */
static const struct sim_named_seed choir_named_members[] = {
	{"in a check: a copy for a new member was taken for a create that makes all anew", 2580, 200},
	{"a state had its effect, unheard, and was refused when it was repeated: what it contained was run once more", 1114,
     200},
	{"who was stuck when it was deleted elsewhere was diverged for ever, and who was to leave waited for it", 92047,
     200},
};

/* The same with items that are there before, and are adopted: cheops-sim-replica --vary --found --seed SEED --steps STEPS. */
static const struct sim_named_seed choir_named_found[] = {
	{"the only member answered for an upload before it was durable, and dropped its body: it could not be run again",
     2092, 200},
	{"in a check: the only member has issued what was withheld, under the number that it had given up", 2274, 200},
};

/* The same of what lies at some sites only: cheops-sim-replica --vary --members --placed --seed SEED --steps STEPS. */
static const struct sim_named_seed choir_named_moved[] = {
	{"a person wanted the copy to be run again, when it had been deleted meanwhile: it was said to be pending for ever",
     2849, 200},
	{"a site became a witness behind a delete that a service had refused: so the delete was the end of it no more",
     3456, 200},
	{"a site that waits for its copy could not be given up, as the one that has it was to leave", 9194, 200},
	{"in a check: something weak was made, unheard, by an agent that died, and again when its message came twice",
     13505, 200},
	{"in a check: the last member that was left has issued what was withheld, under the number that it had given up",
     15504, 200},
	{"in the model: nobody decided on a delete that a service refused, and so nobody could on a doubt from before it",
     16437, 200},
	{"a witness forced out who had it, and relied on one that this had dropped meanwhile: both deleted it", 30397, 200},
	{"in a check: a delete was let be by a site whose users had changed the item behind it: a witness was to take it "
     "for gone",
     51152, 200},
	{"in a check: two deletes, each of which lost, left nobody that has it, and a site that was to be added then was "
     "to "
     "have it",
     63614, 200},
};

/* The same, and a site is removed from the mesh: cheops-sim-replica --vary --removal --members --placed --seed SEED --steps STEPS. */
static const struct sim_named_seed choir_named_removed[] = {
	{"who was stuck gave its state, though it was so no more since a PUT: what was still to be run was lost with it",
     30732, 200},
	{"who was to hold it waited for ever for a copy, as the last site that had one was removed from the mesh", 54281,
     200},
	{"a site was added that had been removed from the mesh since somebody had asked for it", 51978, 200},
	{"who had it was removed from the mesh, and a witness sent users on to a site whose service had refused to make "
     "it, which was let be",
     70376, 200},
	{"the same, with disks that were full", 93793, 200},
	{"who was stuck when it was deleted elsewhere was diverged for ever, though its users went on with what its "
     "service had not deleted: so "
     "who was to leave did not",
     92642, 200},
};

/* What others refer to is deleted, too: cheops-sim-replica --vary --needed --seed SEED --steps STEPS. */
static const struct sim_named_seed choir_named_needed[] = {
	{"what refers to something that is deleted here, and whose delete another site has refused, waited for it for ever",
     320, 200},
	{"the same, where it had been rejected before, and was to be tried again", 1081, 200},
	{"in a check: a create was rejected when it was to be run once more, and let be; then another site gave the state",
     3593, 200},
};

#endif
