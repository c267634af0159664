"""Who listens where, and which files are whose.

A site has two addresses. At `address` its agent owns the ports that OpenStack's services usually have; the catalogue, and all
that the services know of each other, name only these. At `inside` the services themselves listen, 20000 ports further up, with
the broker and the agent's API; nobody is told of it.

    in namespaces    address 10.77.0.N, as the WAN lab has it    inside 127.0.0.1, which is another one in each namespace
    on loopback      address 127.0.N.1                           inside 127.0.N.2

    DIR/ID/SiteN/openrc         what a client reads
    DIR/ID/SiteN/agent.yaml     with agent.log, state/
    DIR/ID/SiteN/agent.token    the agent's own, of its site's Keystone
    DIR/ID/SiteN/etc/           configuration of the services
    DIR/ID/SiteN/log/           what they log (NAME.log) and print (NAME.out)
    DIR/ID/SiteN/images/        Glance's files
    DIR/ID/SiteN/mariadb/       the database server of the site: data/, sock
    DIR/ID/SiteN/keys/          Keystone's keys: the same at all sites
    DIR/template/               schemas, users and keys from which sites are made (template.py)
"""

# name in scopes: the port of the agent's front; the service is INSIDE ports further up
FRONTS = {"identity": 5000, "image": 9292, "compute": 8774, "placement": 8778, "network": 9696}
INSIDE = 20000
API_PORT, PEER_PORT, BROKER_PORT, EPMD_PORT, DIST_PORT = 8079, 8070, 5672, 4369, 25672
REGION = "RegionOne"
PASSWORD = "secret"
AGENT = "cheops"  # the user that the agents are
DATABASES = ("keystone", "glance", "placement", "nova_api", "nova_cell0", "nova")
PLACEHOLDER = "site.invalid"  # stands in the template's catalogue for the address of a site


class Site:
    """One site of a lab. `about`: what the state file says of it."""

    def __init__(self, name, number, folder, about):
        self.name = name
        self.number = number  # from 1
        self.folder = folder
        self.netns = about["netns"]
        self.address = about["address"]
        self.inside = about["inside"]

    def url(self, service):
        """Where everybody finds it: at the agent."""
        return f"http://{self.address}:{FRONTS[service]}"

    def port(self, service):
        """Of the service itself, at `inside`."""
        return FRONTS[service] + INSIDE

    def database(self, name):
        return f"mysql+pymysql://os:{PASSWORD}@localhost/{name}?unix_socket={self.folder}/mariadb/sock&charset=utf8"

    def epmd_port(self):
        """Erlang's port mapper listens on 127.0.0.1 whatever it is told, which sites on loopback share."""
        return EPMD_PORT if self.netns else EPMD_PORT + INSIDE + self.number

    def dist_port(self):
        return DIST_PORT if self.netns else DIST_PORT + self.number
