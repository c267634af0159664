"""What is compared: for each side, how its proxies are configured and started.

A side's start() is given a Setting and returns (the port to send requests to, its proxies' processes).
"""
import dataclasses
import json
import os
import pathlib
import subprocess
import time
import urllib.request

from stage import Failed

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Setting:
    stage: object
    programs: pathlib.Path      # where our own instruments are
    cheops: pathlib.Path
    core: int                   # of the proxies
    backend_port: int
    connections_max: int = 1000
    splice: bool = False        # HAProxy only: let the kernel move large bodies


@dataclasses.dataclass
class Side:
    name: str
    what: str
    start: object
    headers: tuple = ()
    needs: str = ""             # a program that is not ours; PACKAGES says where it comes from


PACKAGES = {"haproxy": "haproxy", "nginx": "nginx-light"}


def direct(setting):
    return setting.backend_port, []


def relay(setting):
    port = setting.stage.port()
    process = setting.stage.start("relay", [setting.programs / "relay", f"127.0.0.1:{port}",
                                            f"127.0.0.1:{setting.backend_port}"], setting.core)
    return port, [process]


# ---- HAProxy ------------------------------------------------------------------------------------------------------------

# strict-limits is off because it asks for two descriptors for each of maxconn, though idle connections need one.
HAPROXY = """
global
    nbthread 1
    maxconn {connections}
    no strict-limits
    {lua_load}
defaults
    mode http
    option http-keep-alive
    http-reuse always
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    {splice}
frontend front
    bind 127.0.0.1:{port} {accept}
    {choose}
    default_backend Site1
backend Site1
    server one 127.0.0.1:{upstream} {connect}
backend Site2
    server two 127.0.0.1:{upstream} {connect}
backend unknown
    http-request deny deny_status 400
"""

LUA_FETCH = "use_backend %[lua.scope_backend(app)]"
LUA_TUNED = "use_backend %[req.fhdr(Scope),lua.scope_backend_known(app)] if { req.fhdr(Scope) -m found }"


# As agents have it: TLS 1.3, P-256, both sides show a certificate and check the other's.
MUTUAL = "ssl crt {pair} ca-file {roots} verify required ssl-min-ver TLSv1.3"


def haproxy(setting, choose="", upstream=None, accept="", connect=""):
    port = setting.stage.port()
    configuration = setting.stage.file(f"haproxy.{port}.cfg", HAPROXY.format(
        port=port, choose=choose, upstream=upstream or setting.backend_port, connections=setting.connections_max,
        accept=accept, connect=connect, lua_load=f"lua-load {HERE / 'scope.lua'}" if choose else "",
        splice="option splice-request\n    option splice-response" if setting.splice else ""))
    return port, [setting.stage.start("haproxy", ["haproxy", "-db", "-q", "-f", configuration], setting.core)]


def certificate(setting):
    """Key and certificate in one file, and the certificate alone, which is its own root."""
    key, roots = setting.stage.folder / "bench.key", setting.stage.folder / "bench.crt"
    run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj",
         "/CN=bench", "-keyout", key, "-out", roots])
    return setting.stage.file("bench.pem", roots.read_text() + key.read_text()), roots


def haproxy_chain(setting, choose=""):
    pair, roots = certificate(setting)
    mutual = MUTUAL.format(pair=pair, roots=roots)
    second_port, second = haproxy(setting, choose, accept=mutual)
    first_port, first = haproxy(setting, choose, upstream=second_port, connect=mutual)
    return first_port, first + second


def haproxy_chain_plain(setting, choose=""):
    second_port, second = haproxy(setting, choose)
    first_port, first = haproxy(setting, choose, upstream=second_port)
    return first_port, first + second


# ---- nginx --------------------------------------------------------------------------------------------------------------

# The limits on requests for each connection are out of reach: otherwise nginx alone would open connections anew.
NGINX = """
{user}
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log crit;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    keepalive_timeout 60s;
    keepalive_requests 100000000;
    client_body_temp_path {folder}/nginx.body;
    proxy_temp_path {folder}/nginx.proxy;
    fastcgi_temp_path {folder}/nginx.fastcgi;
    uwsgi_temp_path {folder}/nginx.uwsgi;
    scgi_temp_path {folder}/nginx.scgi;
    upstream backend {{
        server 127.0.0.1:{upstream};
        keepalive 64;
        keepalive_requests 100000000;
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://backend;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }}
    }}
}}
"""


def nginx(setting):
    port, folder = setting.stage.port(), setting.stage.folder
    configuration = setting.stage.file(f"nginx.{port}.conf", NGINX.format(
        port=port, folder=folder, upstream=setting.backend_port, connections=setting.connections_max,
        user="user root;" if os.getuid() == 0 else ""))
    return port, [setting.stage.start("nginx", ["nginx", "-p", folder, "-e", folder / "nginx.log", "-c", configuration],
                                      setting.core)]


# ---- Cheops -------------------------------------------------------------------------------------------------------------

CHEOPS = """
site: {site}
api: 127.0.0.1:{api}
peer: 127.0.0.1:{peer}
state: {site}.{api}.state
threads: 1
services:
  app:
    front: 127.0.0.1:{front}
    instances: [127.0.0.1:{backend}]
"""

JOIN_SECONDS = 20


def run(command):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{pathlib.Path(command[0]).name} {command[1]} ended with status {done.returncode}: {done.stdout}")


def ask(api, path, body=None):
    """JSON from an agent's API."""
    request = urllib.request.Request(f"http://127.0.0.1:{api}{path}", None if body is None else json.dumps(body).encode(),
                                     method="GET" if body is None else "POST")
    with urllib.request.urlopen(request, timeout=JOIN_SECONDS) as answer:
        return json.load(answer)


def wait_present(api, count):
    """Until the agent sees so many sites."""
    until = time.monotonic() + JOIN_SECONDS
    while sum(site["shown"] == "present" for site in ask(api, "/cheops/v1/sites")["sites"]) < count:
        if time.monotonic() > until:
            raise Failed(f"the agents do not see each other within {JOIN_SECONDS} s")
        time.sleep(0.02)


def agents(setting, sites):
    """As many agents as sites, which have joined. All have the same backend."""
    ports = {site: {what: setting.stage.port() for what in ("api", "peer", "front")} for site in sites}
    first, processes = ports[sites[0]]["api"], []
    for site in sites:
        configuration = setting.stage.file(f"{site}.{ports[site]['api']}.yaml",
                                           CHEOPS.format(site=site, backend=setting.backend_port, **ports[site]))
        if len(sites) > 1 and site == sites[0]:
            run([setting.cheops, "site", "init", "-c", configuration])
        elif len(sites) > 1:
            token = ask(first, "/cheops/v1/sites/tokens", {"name": site})["token"]
            run([setting.cheops, "site", "join", token, "-c", configuration])
        processes.append(setting.stage.start(f"agent-{site}", [setting.cheops, "agent", "-c", configuration], setting.core))
        setting.stage.wait_ready(processes[-1], ports[site]["api"], "/cheops/v1/health")
    for site in sites:
        wait_present(ports[site]["api"], len(sites))
    return ports[sites[0]]["front"], processes


def cheops(setting):
    return agents(setting, ["Site1"])


def cheops_two(setting):
    return agents(setting, ["Site1", "Site2"])


# ---- all of them --------------------------------------------------------------------------------------------------------

LOCAL, REMOTE = ("Scope: {app: Site1}",), ("Scope: {app: Site2}",)

# In this order, because what is compared most should be measured close together: machines have moods.
SIDES = [
    Side("direct", "no proxy", direct),
    Side("relay", "bare epoll byte relay", relay),
    Side("nginx", "nginx", nginx, needs="nginx"),
    Side("haproxy", "HAProxy", haproxy, needs="haproxy"),
    Side("cheops", "Cheops, no scope", cheops, needs="cheops"),
    Side("cheops-scope", "Cheops, scope here", cheops, LOCAL, needs="cheops"),
    Side("haproxy-lua", "HAProxy, scope by Lua", lambda s: haproxy(s, LUA_FETCH), LOCAL, needs="haproxy"),
    Side("haproxy-lua-tuned", "the same, kept", lambda s: haproxy(s, LUA_TUNED), LOCAL, needs="haproxy"),
    Side("haproxy-haproxy", "HAProxy to HAProxy, mutual TLS", haproxy_chain, needs="haproxy"),
    Side("cheops-remote", "Cheops, scope there", cheops_two, REMOTE, needs="cheops"),
    Side("haproxy-haproxy-plain", "HAProxy to HAProxy, in the clear", haproxy_chain_plain, needs="haproxy"),
]
