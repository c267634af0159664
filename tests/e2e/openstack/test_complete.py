"""apps/openstack.yaml against the services themselves: every request that they have is described, or passes on purpose.

The requests are read out of the installed services and clients (service_routes.py); no site is started.
"""
import concurrent.futures
import fnmatch
import json
import pathlib
import re
import subprocess
import sys

import pytest
from openstack_lab import CHEOPS

ROOT = pathlib.Path(__file__).parents[3]
ROUTES = pathlib.Path(__file__).with_name("service_routes.py")

# What passes as it is, and why: `METHODS PATH [KEY]`, with `*` for any text. Of several that fit, one is enough; each has to fit something.
PASSES = {
    "identity": {
        "HEAD,POST,DELETE /v3/auth/*": "log-in: tokens are a site's own",
        "GET /v3/auth/[!t]*": "what a token is good for",
        "GET /v3/auth/tokens/*": "revoked tokens are a site's own",
        "* /v3/OS-FEDERATION/identity_providers/*/protocols/*/auth": "log-in",
        "GET,HEAD /v3/OS-FEDERATION/domains": "of the token that asks",
        "GET,HEAD /v3/OS-FEDERATION/projects": "of the token that asks",
        "GET,HEAD /v3/OS-FEDERATION/saml2/metadata": "who this Keystone is",
        "* /v3/OS-OAUTH*": "log-in, with secrets that a Keystone makes",
        "* /v3/users/*/OS-OAUTH1/*": "log-in, with secrets that a Keystone makes",
        "GET,HEAD /v3/users/*/password": "not there: 405",
        "* /v3/ec2tokens": "log-in",
        "* /v3/s3tokens": "log-in",
        "POST,DELETE /v3/users/*/credentials/OS-EC2*": "secrets that a Keystone makes",
        "POST /v3/users/*/application_credentials": "only a user himself may, with a token of that Keystone",
        "POST /v3/OS-TRUST/trusts": "only a user himself may, with a token of that Keystone",
        "POST /v3/limits": "many by one request; quotas are a site's own",
        "POST /v3/registered_limits": "many by one request; quotas are a site's own",
        "GET,HEAD /v3/limits/model": "how this Keystone is configured",
        "GET,HEAD /v3/domains/config/*default": "how this Keystone is configured",
        "GET,HEAD /v3/OS-REVOKE/events": "tokens are a site's own",
        "GET,HEAD /v3/OS-SIMPLE-CERT/*": "gone: there are no such tokens any more",
    },
    "image": {
        "GET /v2/schemas/*": "what this Glance can do",
        "GET /v2/info/*": "what this Glance can do",
        "POST /v2/tasks": "work of one site",
        "DELETE /v2/stores/*": "the stores of one site",
        "PUT,DELETE /v2/cache*": "the cache of one site",
    },
    "compute": {
        "GET /v2.1/": "versions",
        "GET /v2.1/versions/*": "versions",
        "GET /v2.1/extensions*": "what this Nova can do",
        "GET /v2.1/limits": "of the token that asks, at this site",
        "POST /v2.1/servers/*/action evacuate": "hosts are the site's",
        "POST /v2.1/servers/*/action migrate": "hosts are the site's",
        "POST /v2.1/servers/*/action os-migrateLive": "hosts are the site's",
        "POST /v2.1/servers/*/action os-resetState": "what this site believes",
        "POST /v2.1/servers/*/action *Network*": "removed: 410",
        "POST /v2.1/servers/*/action os-getRDPConsole": "removed: 400",
        "POST /v2.1/servers/*/action *FloatingIp": "removed in 2.44: Neutron has them",
        "POST,DELETE /v2.1/servers/*/migrations/*": "hosts are the site's",
        "* /v2.1/servers/*/consoles*": "removed: 410",
        "GET /v2.1/servers/*/os-virtual-interfaces": "removed: 410",
        "POST /v2.1/os-aggregates/*/action *_host": "hosts are the site's",
        "POST /v2.1/os-aggregates/*/images": "the caches of its hosts",
        "PUT,DELETE /v2.1/os-services/*": "hosts are the site's",
        "* /v2.1/os-hosts*": "removed in 2.43: os-services",
        "GET /v2.1/os-hypervisors/statistics": "sums over a site",
        "PUT,DELETE /v2.1/os-quota-sets/*": "quotas are a site's own",
        "* /v2.1/os-quota-class-sets/*": "quotas are a site's own",
        "GET /v2.1/os-instance_usage_audit_log*": "the log of a site",
        "GET /v2.1/os-console-auth-tokens/*": "consoles are a site's own",
        "* /v2.1/os-assisted-volume-snapshots*": "from the site's Cinder",
        "POST /v2.1/os-server-external-events": "from the site's Neutron and Cinder",
        "* /v2.1/os-volumes_boot*": "a second name of /servers that no client uses any more",
        "* /v2.1/images*": "removed in 2.36: Glance has them",
        "* /v2.1/os-volumes*": "removed in 2.36: Cinder has them",
        "* /v2.1/os-snapshots*": "removed in 2.36: Cinder has them",
        "* /v2.1/os-baremetal-nodes*": "removed in 2.36: Ironic has them",
        "* /v2.1/os-networks*": "removed in 2.36: Neutron has them",
        "* /v2.1/os-tenant-networks*": "removed in 2.36: Neutron has them",
        "* /v2.1/os-fixed-ips*": "removed in 2.36: Neutron has them",
        "* /v2.1/os-floating-ip*": "removed in 2.36: Neutron has them",
        "* /v2.1/os-security-group*": "removed in 2.36: Neutron has them",
        "* /v2.1/os-fping*": "removed: 410",
        "* /v2.1/os-agents*": "removed: 410",
        "* /v2.1/os-cells*": "removed: 410",
        "* /v2.1/os-certificates*": "removed: 410",
        "* /v2.1/os-cloudpipe*": "removed: 410",
    },
    "placement": {
        "GET ": "versions",
        "GET /": "versions",
        "* /allocations*": "what servers of this site use; Nova asks by its own ids",
        "GET /allocation_candidates": "hosts are the site's",
        "POST /reshaper": "hosts are the site's",
    },
    "network": {
        "GET /v2.0/extensions*": "what this Neutron can do",
        "GET /v2.0/quotas/tenant": "of the token that asks",
        "GET /v2.0/quotas/*/default/*": "not there: how the SDK spells it",
        "GET /v2.0/quotas/*/details/*": "not there: how the SDK spells it",
        "PUT,DELETE /v2.0/quotas/*": "quotas are a site's own",
        "GET,DELETE /v2.0/auto-allocated-topology/*": "made of the site's networks",
        "POST,DELETE /v2.0/agents/*/*": "hosts are the site's",
        "GET /v2.0/agents/*/*loadbalancer*": "removed: Octavia",
        "GET /v2.0/agents/*/bgp-drinstances": "of neutron-dynamic-routing",
        "POST,PUT,DELETE /v2.0/ports/*/bindings*": "hosts are the site's",
        "PUT /v2.0/metering/*": "not there: labels are not changed",
        "* /v2.0/log/*": "what a site writes into its logs",
        "* /v2.0/bgp-*": "of neutron-dynamic-routing",
        "* /v2.0/bgpvpn/*": "of networking-bgpvpn",
        "* /v2.0/fw*": "of neutron-fwaas",
        "* /v2.0/lb*": "removed: Octavia",
        "* /v2.0/sfc/*": "of networking-sfc",
        "* /v2.0/vpn/*": "of neutron-vpnaas",
        "* /v2.0/*gateway*": "of a plugin that is no more (NSX)",
        "* /v2.0/qos-queues*": "of a plugin that is no more (NSX)",
    },
}

# Variables of paths that are no ids of what is described: names of parts, hosts, keys that belong to a site.
NO_IDS = {"tag", "tag_value", "tag_name", "value", "group", "option", "property_name", "object_name", "resource_type", "resource_class", "host",
          "host_id", "store_id"}
NAMES_BELOW = re.compile(r"/(metadata|tags|os-extra_specs|ips|migrations|os-instance-actions|OS-EC2|rule-types)/\{\w+\}")
OF_THE_TOKEN = "/v2.1/{project_id}/"  # how a catalogue may name Nova
# Ids that have to be found also in what passes: a user names what is replicated by its meta-id.
ALWAYS = {"user_id", "project_id", "domain_id", "group_id", "server_id", "image_id", "network_id", "router_id", "floatingip_id"}
TAGGED = ["networks", "subnets", "subnetpools", "ports", "routers", "floatingips", "security-groups", "security-group-rules", "trunks",
          "network_segment_ranges"]


def routes(service):
    """[(method, path, key)], each once, whatever its variables are called."""
    found = {}
    for method, path, key in variants(service):
        found.setdefault((method, re.sub(r"\{\w+\}", "{}", path), key), (method, path, key))
    return sorted(found.values(), key=str)


def variants(service):
    said = subprocess.run([sys.executable, str(ROUTES), service], capture_output=True, text=True, timeout=300, check=False)
    assert said.returncode == 0, said.stderr
    for line in said.stdout.splitlines():
        _, method, path, key = json.loads(line)
        path = path.split("?")[0]
        if path.startswith("/v2.0/{resource_type}/"):
            for collection in TAGGED:
                yield method, path.replace("{resource_type}", collection), key
            continue
        yield method, path, key
        if service == "compute" and key is None and path != "/v2.1/":
            yield method, path.replace("/v2.1/", OF_THE_TOKEN, 1), key


def explain(service, method, path, key):
    """What the description makes of it; None: it does not know it."""
    target = re.sub(r"\{(\w+)\}", lambda found: f"the-{found[1]}", path) or "/"
    body = [json.dumps({key: {}})] if key else []
    options = ["--content-type", "application/openstack-images-v2.1-json-patch"] if (service, method) == ("image", "PATCH") else []
    said = subprocess.run([str(CHEOPS), "app", "explain", "-o", "json", "--app", str(ROOT / "apps/openstack.yaml"), "--service", service, *options,
                           method, target, *body], capture_output=True, text=True, timeout=300, check=False)
    answer = json.loads(said.stdout)
    return None if said.returncode == 1 and answer == {"known": False} else answer


def fits(pattern, method, path, key):
    methods, wanted, *keys = pattern.split(" ")
    return (methods == "*" or method in methods.split(",")) and fnmatch.fnmatchcase(path, wanted) and (
        not keys or fnmatch.fnmatchcase(key or "", keys[0]))


def wrong(method, path, known, listed):
    """What is to be said against how it is read; None: nothing."""
    if known is None or known["effect"] == "pass":
        return None if listed else "is neither described nor listed as passing"
    if listed:
        return "is listed as passing, but is " + known["effect"]
    reads = known["effect"] in ("read", "list")
    if reads != (method in ("GET", "HEAD")) and not re.search(r"/action$|/remote-consoles$", path):
        return "is taken for a " + known["effect"]
    if known["effect"] == "delete" and not path.endswith(("}", "/action")):
        return "ends no item"
    if not reads and known["effect"] != "create" and not known["id"]:
        return "changes nothing that has an id"
    return None


def unseen(path, known, listed):
    """Ids in the path that are not found, where something is known of it."""
    places = {place["value"] for place in known["places"] if place["in"] == "path"}
    named = re.findall(r"\{(\w+)\}", NAMES_BELOW.sub("", path.replace(OF_THE_TOKEN, "")))
    return [name for name in named if f"the-{name}" not in places and (name in ALWAYS or not listed) and name not in NO_IDS]


@pytest.mark.parametrize("service", PASSES)
def test_every_request_is_described_or_passes_on_purpose(service):
    asked = routes(service)
    assert len(asked) > 30, asked
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        known = list(pool.map(lambda one: explain(service, *one), asked))
    used, complaints = set(), []
    for (method, path, key), answer in zip(asked, known):
        plain = path.replace(OF_THE_TOKEN, "/v2.1/")
        listed = [pattern for pattern in PASSES[service] if fits(pattern, method, plain, key)]
        used.update(listed)
        complaint = wrong(method, path, answer, listed)
        if complaint:
            complaints.append(f"{method} {path} {key or ''} {complaint}")
        elif answer and unseen(path, answer, listed):
            complaints.append(f"{method} {path}: {', '.join(unseen(path, answer, listed))} not found in the path")
    assert not complaints, "\n".join([f"{len(complaints)} of {len(asked)}:", *complaints])
    unused = sorted(set(PASSES[service]) - used)
    assert not unused, "these fit nothing"
