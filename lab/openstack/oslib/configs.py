"""The configuration of one site's services. This is all that the lab changes of OpenStack: no line of its code, and of what the
packages bring no file."""
import json

from .layout import FRONTS, PASSWORD, REGION, API_PORT, PEER_PORT, BROKER_PORT

# Services that come as WSGI applications. As Debian's files have it, but for AppArmor and for the log: answers are without
# Content-Length, and the connection is closed after each.
UWSGI = """\
[uwsgi]
plugins = python3
master = true
die-on-term = true
no-orphans = true
lazy-apps = true
enable-threads = true
thunder-lock = true
buffer-size = 65535
rem-header = Content-Length
processes = 1
threads = 8
"""

KEYSTONE = """\
[DEFAULT]
log_dir = {folder}/log
log_file = keystone.log
[database]
connection = {database}
[identity]
password_hash_rounds = 4
[token]
provider = fernet
expiration = 14400
[fernet_tokens]
key_repository = {folder}/keys/fernet
[credential]
key_repository = {folder}/keys/credential
[cache]
enabled = true
backend = dogpile.cache.memory
"""

CREDENTIALS = """\
auth_url = {identity}
auth_type = password
project_domain_name = Default
user_domain_name = Default
project_name = service
username = {user}
password = {password}
"""

AUTHTOKEN = """\
[keystone_authtoken]
www_authenticate_uri = {identity}
service_token_roles_required = true
""" + CREDENTIALS

GLANCE = """\
[DEFAULT]
bind_host = {inside}
bind_port = {port}
workers = 0
log_file = {folder}/log/glance.log
enabled_backends = fs:file
[glance_store]
default_backend = fs
[fs]
filesystem_store_datadir = {folder}/images
[os_glance_staging_store]
filesystem_store_datadir = {folder}/staging
[os_glance_tasks_store]
filesystem_store_datadir = {folder}/tasks
[database]
connection = {database}
[paste_deploy]
flavor = keystone
config_file = /etc/glance/glance-api-paste.ini
"""

PLACEMENT = """\
[DEFAULT]
log_file = {folder}/log/placement.log
[api]
auth_strategy = keystone
[placement_database]
connection = {database}
"""

NOVA = """\
[DEFAULT]
my_ip = {inside}
host = {host}
state_path = {folder}/nova
log_dir = {folder}/log
transport_url = rabbit://guest:guest@{inside}:{broker}/
compute_driver = fake.FakeDriver
enabled_apis = osapi_compute
osapi_compute_listen = {inside}
osapi_compute_listen_port = {port}
osapi_compute_workers = 1
service_down_time = 180
[api]
auth_strategy = keystone
[api_database]
connection = {api_database}
[database]
connection = {database}
[conductor]
workers = 1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 30
[quota]
instances = 200
cores = 400
server_groups = 200
[wsgi]
api_paste_config = /etc/nova/api-paste.ini
[oslo_concurrency]
lock_path = {folder}/nova/lock
[oslo_messaging_rabbit]
amqp_durable_queues = true
[oslo_messaging_notifications]
driver = noop
[vnc]
enabled = false
[glance]
endpoint_override = {image}
[neutron]
endpoint_override = {network}
auth_type = none
[cache]
enabled = false
[service_user]
send_service_user_token = true
{service_user}[placement]
region_name = {region}
"""

OPENRC = """\
export OS_AUTH_URL={identity}/v3 OS_USERNAME={user} OS_PASSWORD={password} OS_PROJECT_NAME={user}
export OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default OS_IDENTITY_API_VERSION=3 OS_REGION_NAME={region}
export OS_COMPUTE_API_VERSION=2.90
"""

# How the scope gets from what a user asks of Nova to what Nova then asks of others (docs/openstack.md).
CARRY = {"request-id": ["request-id:X-OpenStack-Request-ID:req-"],
         "token": ["append:X-Auth-Token", "append:X-Subject-Token"],
         "osprofiler": ["osprofiler:osprofiler.keys"]}

# Which Keystone a service asks about a token: that of the scope, if it names one. Services send it as X-Subject-Token.
JUDGED = ["append:X-Auth-Token:identity"]
ASKED = ["append:X-Subject-Token:identity"]

# What makes Nova pass on a trace that is signed with one of these keys. All that it knows of a trace it tells the broker.
PROFILER_KEYS = "lab key, a newer key"
PROFILER = f"""\
[profiler]
enabled = true
hmac_keys = {PROFILER_KEYS}
connection_string = messaging://
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def credentials(site, user):
    return CREDENTIALS.format(identity=site.url("identity"), user=user, password=PASSWORD)


def authtoken(site, user):
    return AUTHTOKEN.format(identity=site.url("identity"), user=user, password=PASSWORD)


def nova(site, carry):
    made = NOVA.format(folder=site.folder, inside=site.inside, host=site.name.lower(), broker=BROKER_PORT,
                       port=site.port("compute"), database=site.database("nova"), api_database=site.database("nova_api"),
                       region=REGION, image=site.url("image"), network=site.url("network"), service_user=credentials(site, "nova"))
    profiler = PROFILER if carry == "osprofiler" else ""
    return made + credentials(site, "placement") + authtoken(site, "nova") + profiler


def broker(site):
    """Its files; vhosts and users come from one of them, which saves slow calls of rabbitmqctl."""
    folder = site.folder / "rabbitmq"
    every = {"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
    write(folder / "definitions.json", json.dumps({
        "users": [{"name": "guest", "password": "guest", "tags": "administrator"}], "vhosts": [{"name": "/"}],
        "permissions": [every], "policies": [], "queues": [], "exchanges": [], "bindings": [], "parameters": []}))
    write(folder / "enabled_plugins", "[].\n")
    write(folder / "rabbitmq.conf", f"listeners.tcp.1 = {site.inside}:{BROKER_PORT}\n"
          f"load_definitions = {folder}/definitions.json\nloopback_users = none\nvm_memory_high_watermark.absolute = 512MB\n")


def services(site, carry="request-id"):
    """All of one site. `carry`: how the scope gets through Nova, which is to be configured for it."""
    for part in ("etc/keystone", "etc/glance", "etc/placement", "etc/nova", "log", "images", "staging", "tasks", "nova", "run"):
        (site.folder / part).mkdir(parents=True, exist_ok=True)
    etc = site.folder / "etc"
    write(etc / "uwsgi.ini", UWSGI)
    write(etc / "keystone/keystone.conf", KEYSTONE.format(folder=site.folder, database=site.database("keystone")))
    write(etc / "glance/glance-api.conf",
          GLANCE.format(folder=site.folder, inside=site.inside, port=site.port("image"), database=site.database("glance"))
          + authtoken(site, "glance"))
    write(etc / "placement/placement.conf",
          PLACEMENT.format(folder=site.folder, database=site.database("placement")) + authtoken(site, "placement"))
    write(etc / "nova/nova.conf", nova(site, carry))
    broker(site)
    write(site.folder / "osprofiler.keys", PROFILER_KEYS + "\n")
    (site.folder / "osprofiler.keys").chmod(0o600)
    own = site.folder / "agent.token"  # Keystone is not there yet when the agents start: agent-token gets one then
    own.touch(mode=0o600)
    own.write_text("none yet\n", encoding="utf-8")
    for user, name in (("admin", "openrc"), ("demo", "openrc-demo")):
        write(site.folder / name, OPENRC.format(identity=site.url("identity"), user=user, password=PASSWORD, region=REGION))


def carried(service, carry):
    """`carry` of that service. By the token, Nova's calls have the scope whatever it names. Placement is asked by Nova alone, with tokens of its
    own, which any Keystone can judge."""
    if service == "compute":
        return CARRY[carry] + (JUDGED + ASKED if carry != "token" else [])
    return JUDGED if service in ("image", "network") else []


def agent(site, carry):
    """The agent's own. Only Nova makes calls on behalf of those who ask it; all ask Keystone about tokens."""
    lines = [f"site: {site.name}", f"state: {site.folder}/state", f"api: {site.inside}:{API_PORT}",
             f"peer: {site.address}:{PEER_PORT}", "threads: 1", "application: openstack", "timeouts: {stop: 3s}", "services:"]
    for service, port in FRONTS.items():
        ways = ", ".join(f'"{way}"' for way in carried(service, carry))
        lines += [f"  {service}:", f"    front: {site.address}:{port}", f"    instances: {site.inside}:{site.port(service)}",
                  f"    carry: [{ways}]", f"    credential: {{header: X-Auth-Token, file: {site.folder}/agent.token}}"]
    return "# Written by lab/openstack/up.\n" + "\n".join(lines) + "\n"
