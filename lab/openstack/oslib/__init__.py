"""OpenStack at the sites of a lab: unmodified Debian packages, an agent in front of them. lab/openstack/up is the way in."""
