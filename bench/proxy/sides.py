"""What is compared: for each side, how its proxies are configured and started.

A side's start() is given a Setting and returns (the port to send requests to, its proxies' processes).
"""
import dataclasses
import os
import pathlib

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
    bind 127.0.0.1:{port}
    {choose}
    default_backend Site1
backend Site1
    server one 127.0.0.1:{upstream}
backend Site2
    server two 127.0.0.1:{upstream}
backend unknown
    http-request deny deny_status 400
"""

LUA_FETCH = "use_backend %[lua.scope_backend(app)]"
LUA_TUNED = "use_backend %[req.fhdr(Scope),lua.scope_backend_known(app)] if { req.fhdr(Scope) -m found }"


def haproxy(setting, choose="", upstream=None):
    port = setting.stage.port()
    configuration = setting.stage.file(f"haproxy.{port}.cfg", HAPROXY.format(
        port=port, choose=choose, upstream=upstream or setting.backend_port, connections=setting.connections_max,
        lua_load=f"lua-load {HERE / 'scope.lua'}" if choose else "",
        splice="option splice-request\n    option splice-response" if setting.splice else ""))
    return port, [setting.stage.start("haproxy", ["haproxy", "-db", "-q", "-f", configuration], setting.core)]


def haproxy_chain(setting, choose=""):
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
threads: 1
hop_key: "bench-only-key-0123456789abcdef"
services:
  app:
    front: 127.0.0.1:{front}
    instances: [127.0.0.1:{backend}]
"""


def agents(setting, sites):
    """As many agents as sites, which know each other. All have the same backend."""
    ports = {site: {what: setting.stage.port() for what in ("api", "peer", "front")} for site in sites}
    processes = []
    for site in sites:
        text = CHEOPS.format(site=site, backend=setting.backend_port, **ports[site])
        others = [f"  {other}: {{address: 127.0.0.1:{ports[other]['peer']}}}" for other in sites if other != site]
        if others:
            text += "\n".join(["peers:", *others, ""])
        configuration = setting.stage.file(f"{site}.{ports[site]['api']}.yaml", text)
        processes.append(setting.stage.start(f"agent-{site}", [setting.cheops, "agent", "-c", configuration],
                                             setting.core))
    for site, process in zip(sites, processes):
        setting.stage.wait_ready(process, ports[site]["api"], "/cheops/v1/health")
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
    Side("haproxy-haproxy", "HAProxy to HAProxy", haproxy_chain, needs="haproxy"),
    Side("cheops-remote", "Cheops, scope there", cheops_two, REMOTE, needs="cheops"),
]
