"""The requests that the installed services of OpenStack have, read out of their own code: a line of JSON for each, [service, method, path,
key]. Variables in a path are {name}; `key` is the first member of the body, where that says what is meant.

A program of its own, since these libraries change Python under those who load them (eventlet).
"""
import importlib
import inspect
import json
import pkgutil
import re
import sys


def keystone():
    import keystone.conf
    from keystone.server.flask.application import application_factory
    keystone.conf.configure()
    application = application_factory()
    for rule in application.url_map.iter_rules():
        view = getattr(application.view_functions[rule.endpoint], "view_class", None)
        for method in sorted(rule.methods - {"OPTIONS"}):
            # One class may serve a collection and its items: what does not take the variables of the path is no request.
            function = getattr(view, "get" if method == "HEAD" else method.lower(), None)
            if function is not None and takes(function, rule.arguments):
                yield method, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), None


def takes(function, variables):
    try:
        inspect.signature(function).bind(None, **dict.fromkeys(variables))
    except TypeError:
        return False
    return True


def glance():
    import routes
    from oslo_config import cfg
    cfg.CONF([], project="glance", default_config_files=[])
    from glance.api.v2 import router
    mapper = routes.Mapper()
    router.API(mapper)
    for route in mapper.matchlist:
        for method in (route.conditions or {}).get("method", []):
            yield method, f"/v2{route.routepath}", None


def nova():
    from nova.api.openstack.compute import routes
    for path, methods in routes.ROUTE_LIST:
        if not isinstance(methods, dict):
            continue  # leads to another path
        for method, (factory, function) in methods.items():
            keys = [None]
            if function == "action":
                keys = sorted(key for each in (factory.args[0], *factory.args[1]) for key, called in each.wsgi_actions.items()
                              if called not in ("_create", "_update", "_delete"))  # of FlavorManageController: methods of the resource itself
            for key in keys:
                yield method, f"/v2.1{path}", key


def placement():
    from placement import handler
    for path, methods in handler.ROUTE_DECLARATIONS.items():
        for method in methods:
            yield method, path, None


def neutron():
    """Neutron itself is not installed with the lab: what its two clients ask of it."""
    yield from by_neutronclient()
    yield from by_openstacksdk()


def by_neutronclient():
    """Each of its methods is called once, and tells what it would send."""
    from neutronclient.v2_0 import client
    sent = []

    class Client(client.Client):
        def __init__(self):
            """Nothing to connect to."""

    def send(method):
        return lambda self, path, *_, **__: sent.append((method, path)) or {}

    for name, method in {"get": "GET", "post": "POST", "put": "PUT", "delete": "DELETE"}.items():
        setattr(Client, name, send(method))
    setattr(Client, "list", lambda self, collection, path, *_, **__: sent.append(("GET", path)))
    for name, function in vars(client.Client).items():
        if inspect.isfunction(function) and not name.startswith("_") and not name.endswith("_ext"):  # those take a path
            named = [parameter.name for parameter in inspect.signature(function).parameters.values()
                     if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
            function(Client(), *("{%s}" % each for each in named[1:]))
    for method, path in sent:
        yield method, f"/v2.0{path}", None


def by_openstacksdk():
    import openstack.network.v2 as resources
    from openstack.resource import Resource
    for found in pkgutil.iter_modules(resources.__path__):
        module = importlib.import_module(f"{resources.__name__}.{found.name}")
        for each in vars(module).values():
            if not (inspect.isclass(each) and issubclass(each, Resource) and each.__module__ == module.__name__ and each.base_path):
                continue
            path = "/v2.0" + re.sub(r"%\((\w+)\)s", r"{\1}", each.base_path)
            for allowed, method, below in ((each.allow_list, "GET", ""), (each.allow_create, each.create_method, ""),
                                           (each.allow_fetch, "GET", "/{id}"), (each.allow_commit, each.commit_method, "/{id}"),
                                           (each.allow_delete, "DELETE", "/{id}")):
                if allowed:
                    yield method, path + below, None


SERVICES = {"identity": keystone, "image": glance, "compute": nova, "placement": placement, "network": neutron}

if __name__ == "__main__":
    asked = {(service, *route) for service in sys.argv[1:] for route in SERVICES[service]()}
    for each in sorted(asked, key=lambda route: [part or "" for part in route]):
        print(json.dumps(each))
