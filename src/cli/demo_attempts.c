/* What there is to try in a demo, in the order in which the guide shows it: one entry each. demo_guide.c writes them as commands.
 * Names that have to be unique have $$ in them, the number of the user's shell, so that the guide can be run again. */
#include "cli/demo.h"

#define BOTH "-H 'Scope: Site1 & Site2' -H 'Prefer: wait=10' "
#define ALL "-H 'Scope: Site1 & Site2 & Site3' -H 'Prefer: wait=10' "

enum { SITE1, SITE2 };

const struct demo_attempt demo_attempts[] = {
	/* ---- sharing */
	{.why = "A request without a scope stays at the site that it is sent to.", .path = "/whoami?via=image"},
	{.why = "An image that exists only at Site2.",
     .sites = 2,
     .keep = "image",
     .with = "--json '{\"name\": \"debian\"}' ",
     .site = SITE2,
     .service = DEMO_IMAGE,
     .path = "/images"},
	{.sites = 2,
     .before = "echo 'the bytes of an image' | ",
     .with = "-T - ",
     .site = SITE2,
     .service = DEMO_IMAGE,
     .path = "/images/$image/file"},
	{.why = "Boot a server at Site1 from that image: the scope says where each service is to be used.",
     .sites = 2,
     .setting = "server=\"{\\\"name\\\": \\\"vm\\\", \\\"image\\\": \\\"$image\\\"}\"",
     .with = "-H 'Scope: {compute: Site1, image: Site2}' --json \"$server\" ",
     .path = "/servers"},
	{.why = "The same for clients that may set only headers that begin with X-.",
     .sites = 2,
     .with = "-H 'X-Scope: {compute: Site1, image: Site2}' --json \"$server\" ",
     .path = "/servers"},
	{.why = "The same in the path, for clients that let one set nothing but an address.",
     .sites = 2,
     .with = "--json \"$server\" ",
     .path = "/scope/compute:%20Site1,%20image:%20Site2/servers"},
	{.why = "The same as W3C baggage, which tracing libraries pass on.",
     .sites = 2,
     .with = "-H 'baggage: cheops.scope=compute:Site1%2Cimage:Site2' --json \"$server\" ",
     .path = "/servers"},
	{.why = "The same in JSON.",
     .sites = 2,
     .with = "-H 'Scope: {\"compute\": \"Site1\", \"image\": \"Site2\"}' --json \"$server\" ",
     .path = "/servers"},
	{.why = "A scope that names only image leaves compute where the request came in.",
     .sites = 2,
     .with = "-H 'Scope: {image: Site2}' --json \"$server\" ",
     .path = "/servers"},
	{.why = "Without a scope there is no such image: Site1 does not have it.",
     .sites = 2,
     .with = "--json \"$server\" ",
     .path = "/servers"},
	{.why = "Sent to Site1, runs at Site3; and from there image is Site3's.",
     .sites = 3,
     .with = "-H 'Scope: {compute: Site3}' ",
     .path = "/whoami?via=image"},
	{.why = "Which image service does compute reach? That of Site2.",
     .sites = 2,
     .with = "-H 'Scope: image/Site2' ",
     .path = "/whoami?via=image"},
	{.why = "A mistake in a scope is explained.", .with = "-H 'Scope: {image: Sit1}' ", .path = "/servers"},
	{.why = "What would be done, without doing it.",
     .with = "-H 'Scope: {compute: Site1}' -H 'Cheops-Explain: plan' ",
     .path = "/servers"},

	{.why = "A flat network belongs to its site: a server at Site1 cannot be on that of Site2. Refused before anything "
            "runs.",
     .sites = 2,
     .with = "-H 'Scope: {compute: Site1, network: Site2}' --json '{\"name\": \"vm\", \"image\": \"any\", \"network\": "
             "true}' ",
     .path = "/servers"},

	/* ---- replication */
	{.why = "One resource at three sites, from one request; it is answered once they have it, or after 10 s.",
     .sites = 3,
     .keep = "pool",
     .with = ALL "--json \"{\\\"name\\\": \\\"shared $$\\\", \\\"size\\\": 23}\" ",
     .service = DEMO_NETWORK,
     .path = "/pools"},
	{.why = "One resource at both sites, from one request; it is answered once they have it, or after 10 s.",
     .sites = 2,
     .sites_most = 2,
     .keep = "pool",
     .with = BOTH "--json \"{\\\"name\\\": \\\"shared $$\\\", \\\"size\\\": 23}\" ",
     .service = DEMO_NETWORK,
     .path = "/pools"},
	{.why = "What is changed at Site2 is changed at Site1, too.",
     .sites = 2,
     .with = "-H 'Prefer: wait=10' --json '{\"by\": 6}' ",
     .site = SITE2,
     .service = DEMO_NETWORK,
     .path = "/pools/$pool/grow"},
	{.sites = 2, .service = DEMO_NETWORK, .path = "/pools/$pool"},

	/* ---- replicated resources that refer to others */
	{.why =
         "An image and a secret at both sites, and a server that boots from the one and relies on the other, at both.",
     .sites = 2,
     .keep = "image",
     .with = BOTH "--json '{\"name\": \"everywhere\"}' ",
     .service = DEMO_IMAGE,
     .path = "/images"},
	{.sites = 2,
     .keep = "secret",
     .with = BOTH "--json '{\"name\": \"key\", \"data\": \"old\"}' ",
     .service = DEMO_IMAGE,
     .path = "/secrets"},
	{.sites = 2,
     .keep = "vm",
     .with =
         BOTH "--json \"{\\\"name\\\": \\\"vm\\\", \\\"image\\\": \\\"$image\\\", \\\"secret\\\": \\\"$secret\\\"}\" ",
     .path = "/servers"},
	{.why = "Changed at Site2, the secret is read at each site by that site's server, whoever asks for the restart.",
     .sites = 2,
     .with = "-X PATCH -H 'Prefer: wait=10' --json '{\"data\": \"new\"}' ",
     .site = SITE2,
     .service = DEMO_IMAGE,
     .path = "/secrets/$secret"},
	{.sites = 2, .with = "-H 'Prefer: wait=10' --json '{\"reboot\": null}' ", .path = "/servers/$vm/action"},
	{.sites = 2, .site = SITE2, .path = "/servers/$vm"},

	{.why =
         "At three sites it would need its image at all three: refused before anything runs, with the ways to mend it.",
     .sites = 3,
     .with = ALL "--json \"{\\\"name\\\": \\\"vm\\\", \\\"image\\\": \\\"$image\\\"}\" ",
     .path = "/servers"},

	{.why =
         "Unless it is brought along: the image is copied to Site3, then the server is made at all three. One request.",
     .sites = 3,
     .with = "-H 'Scope: with_requirements(Site1 & Site2 & Site3)' -H 'Prefer: wait=10' "
             "--json \"{\\\"name\\\": \\\"vm\\\", \\\"image\\\": \\\"$image\\\"}\" ",
     .path = "/servers"},

	/* ---- who relies on what */
	{.why =
         "Who relies on the secret? The server, as `cheops deps why` shows. Deleted all the same, the answer warns of "
         "it, and the server is at risk.",
     .sites = 2,
     .with = "-X DELETE -o /dev/null -D - -H 'Prefer: wait=10' ",
     .after = " | grep -i '^warning'",
     .service = DEMO_IMAGE,
     .path = "/secrets/$secret"},

	/* ---- replicated resources that make others */
	{.why = "A stack of three servers at both sites: each site's own service makes the three, so that there are six.",
     .sites = 2,
     .keep = "stack",
     .with = BOTH "--json \"{\\\"name\\\": \\\"web $$\\\", \\\"image\\\": \\\"$image\\\", \\\"servers\\\": 3}\" ",
     .path = "/stacks"},
	{.sites = 2, .path = "/stacks/$stack"},
	{.sites = 2, .site = SITE2, .path = "/stacks/$stack"},
	{.why = "One more at each, asked for at Site2.",
     .sites = 2,
     .with = "-X PATCH -H 'Prefer: wait=10' --json '{\"servers\": 4}' ",
     .site = SITE2,
     .path = "/stacks/$stack"},
	{.why = "What each site has of it, side by side: the same stack, of other servers.",
     .sites = 2,
     .with = "-H 'Scope: Site1 & Site2' -H 'Prefer: cheops-sites' ",
     .path = "/stacks/$stack"},

	/* ---- replicated resources in others */
	{.why = "A project at both sites; a volume at both that is in it, by the id that is the project's everywhere.",
     .sites = 2,
     .keep = "project",
     .with = BOTH "--json \"{\\\"name\\\": \\\"shop $$\\\"}\" ",
     .path = "/projects"},
	{.sites = 2, .with = BOTH "--json '{\"name\": \"data\", \"size\": 5}' ", .path = "/projects/$project/volumes"},
	{.sites = 2, .site = SITE2, .path = "/projects/$project/volumes"},
	{.why = "A name is taken in a project by the first who has it: the service's own refusal.",
     .sites = 2,
     .with = "--json '{\"name\": \"data\", \"size\": 6}' ",
     .site = SITE2,
     .path = "/projects/$project/volumes"},

	/* ---- several sites as one */
	{.why =
         "The images of both sites in one list, each with the site that it is from; what is replicated is there once.",
     .sites = 2,
     .with = "-H 'Scope: Site1 & Site2' -H 'Prefer: cheops-sites' ",
     .service = DEMO_IMAGE,
     .path = "/images"},
	{.why = "One volume over both sites: it lies at Site2, the first that is named, and is used from Site1 without a "
            "scope.",
     .sites = 2,
     .keep = "volume",
     .with = "-H 'Scope: Site2 % Site1' -H 'Prefer: wait=10' --json \"{\\\"name\\\": \\\"spanning $$\\\", "
             "\\\"size\\\": 5}\" ",
     .path = "/volumes"},
	{.sites = 2, .with = "-X PATCH --json '{\"size\": 6}' ", .path = "/volumes/$volume"},
	{.sites = 2, .site = SITE2, .path = "/volumes/$volume"},
	{.why =
         "A pool of 9 divided over both sites, 6 and 3; whoever asks for it sees the whole, with a scope the part of "
         "one.",
     .sites = 2,
     .keep = "divided",
     .with =
         "-H 'Scope: Site1 % Site2' -H 'Cheops-Divide: Site1=6 Site2=3' -H 'Prefer: wait=10' --json \"{\\\"name\\\": "
         "\\\"divided $$\\\", \\\"size\\\": 9}\" ",
     .service = DEMO_NETWORK,
     .path = "/pools"},
	{.sites = 2, .site = SITE2, .service = DEMO_NETWORK, .path = "/pools/$divided"},
	{.sites = 2, .with = "-H 'Scope: Site2' ", .service = DEMO_NETWORK, .path = "/pools/$divided"},
	{.why = "Ten more, asked for at Site2: each site gets its share, and nothing is lost.",
     .sites = 2,
     .with = "-H 'Prefer: wait=10' --json '{\"by\": 10}' ",
     .site = SITE2,
     .service = DEMO_NETWORK,
     .path = "/pools/$divided/grow"},
	{.sites = 2, .service = DEMO_NETWORK, .path = "/pools/$divided"},
	{.why =
         "One project over both sites. What is made in it lies where it was made, is listed at each, and its name is "
         "taken at all of them.",
     .sites = 2,
     .keep = "shop",
     .with = "-H 'Scope: Site1 % Site2' -H 'Prefer: wait=10' --json \"{\\\"name\\\": \\\"spanning shop $$\\\"}\" ",
     .path = "/projects"},
	{.sites = 2, .with = "--json '{\"name\": \"db\", \"size\": 5}' ", .site = SITE2, .path = "/projects/$shop/volumes"},
	{.sites = 2, .path = "/projects/$shop/volumes"},
	{.sites = 2, .with = "--json '{\"name\": \"db\", \"size\": 5}' ", .path = "/projects/$shop/volumes"},
	{0},
};
