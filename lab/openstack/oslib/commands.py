"""Which command each service of a site is, and with which environment; and the environment of a client."""
import os
import pathlib
import re

from .layout import AGENT, API_PORT, BROKER_PORT, PASSWORD

HERE = pathlib.Path(__file__).resolve().parents[1]
PLUGIN = HERE.parents[1] / "clients" / "openstack"
ORDER = ("epmd", "rabbitmq", "mariadb", "network-stub", "keystone", "agent-token", "glance", "placement", "nova-conductor",
         "nova-scheduler", "nova-api", "nova-compute")  # in which they are started; Nova hangs on a broker that is gone, so it is stopped first


def mariadb(folder):
    """A small one, for sites that are thrown away: nothing waits for the disk. What it has said is done is with the kernel, so that it outlives a
    server that is killed."""
    return ["/usr/sbin/mariadbd", "--no-defaults", "--user=root", f"--datadir={folder}/data", f"--socket={folder}/sock",
            f"--pid-file={folder}/pid", "--skip-networking", "--innodb-buffer-pool-size=64M",
            "--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=0", "--innodb-log-file-size=16M",
            "--performance-schema=0", "--skip-log-bin", "--max-connections=200", "--skip-name-resolve",
            "--character-set-server=utf8mb3", "--collation-server=utf8mb3_general_ci"]


def uwsgi(folder, listen, program):
    return ["/usr/bin/uwsgi_python3", "--ini", f"{folder}/etc/uwsgi.ini", "--http-socket", listen, "--wsgi-file", program]


def of(site, name):
    """(command, environment) of the service of that name at a site."""
    folder, env = site.folder, environment()
    nova = ["--config-file", f"{folder}/etc/nova/nova.conf"]
    if name == "epmd":
        env["ERL_EPMD_ADDRESS"] = "127.0.0.1"
        return ["/usr/bin/epmd", "-port", site.epmd_port()], env
    if name == "rabbitmq":
        return ["/usr/lib/rabbitmq/bin/rabbitmq-server"], {**env, **broker_environment(site)}
    if name == "mariadb":
        return mariadb(folder / "mariadb"), env
    if name == "network-stub":
        return ["/usr/bin/python3", HERE / "network-stub", site.inside, site.port("network")], env
    if name == "keystone":
        env["OS_KEYSTONE_CONFIG_DIR"] = f"{folder}/etc/keystone"
        return uwsgi(folder, f"{site.inside}:{site.port('identity')}", "/usr/bin/keystone-wsgi-public"), env
    if name == "agent-token":
        env.update(OS_AUTH_URL=f"http://{site.inside}:{site.port('identity')}/v3", OS_USERNAME=AGENT, OS_PASSWORD=PASSWORD,
                   OS_PROJECT_NAME="service")
        return ["/usr/bin/python3", HERE / "agent-token", folder / "agent.token", "--api", f"{site.inside}:{API_PORT}"], env
    if name == "placement":
        env["OS_PLACEMENT_CONFIG_DIR"] = f"{folder}/etc/placement"
        return uwsgi(folder, f"{site.inside}:{site.port('placement')}", "/usr/bin/placement-api"), env
    if name == "glance":
        return ["/usr/bin/glance-api", "--config-file", f"{folder}/etc/glance/glance-api.conf"], env
    if name == "nova-compute":
        return ["/usr/bin/python3", HERE / "nova-compute", *nova], env
    return [f"/usr/bin/{name}", *nova], env


def environment():
    """Nothing of the user's: it could lead services elsewhere, or to a Python that is not Debian's."""
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root"}


def client_environment(folder, user="admin"):
    """What OpenStackClient needs to be told at the site of that folder: Debian's Python, with the plugin that is in the tree
    (`openstack --scope ...`), and the settings of the site."""
    openrc = folder / ("openrc" if user == "admin" else "openrc-demo")
    settings = dict(re.findall(r"(OS_\w+)=(\S+)", openrc.read_text(encoding="utf-8")))  # export NAME=VALUE ...
    return {**settings, "PATH": "/usr/bin:" + os.environ["PATH"], "PYTHONPATH": str(PLUGIN)}


def broker_environment(site):
    """RABBITMQ_ALLOW_INPUT, though there is none: the script becomes the broker then, and does not wait for it as another process, which
    would outlive a script that is killed."""
    folder = site.folder / "rabbitmq"
    return {
        "HOME": str(folder), "RABBITMQ_ALLOW_INPUT": "1", "RABBITMQ_NODENAME": f"{site.name.lower()}@localhost",
        "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf", "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia",
        "RABBITMQ_LOG_BASE": f"{folder}/log", "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/enabled_plugins",
        "RABBITMQ_PID_FILE": f"{folder}/pid", "RABBITMQ_CONF_ENV_FILE": os.devnull,
        "RABBITMQ_DIST_PORT": str(site.dist_port()), "RABBITMQ_NODE_PORT": str(BROKER_PORT),
        "ERL_EPMD_PORT": str(site.epmd_port()), "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
            "-noinput -kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none"}
