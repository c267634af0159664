"""Things of OpenStack beyond images, servers and tenants, at two sites: named by who makes them, and those that stay a site's own."""
from openstack_lab import wait_for

BOTH = "{identity: Site1 & Site2}"


def done(answer, *statuses):
    assert answer.status in (statuses or (200, 201, 202, 204)), answer
    return answer


def everywhere(lab, answer):
    """Until the operation of this answer was carried out at both sites, as the first one knows."""
    path = f"/cheops/v1/operations/{answer.header('Cheops-Operation')}"

    def applied():
        shown = lab.ask("Site1", "api", path)
        return shown.status == 200 and all(each["state"] == "applied" for each in shown.json["members"])

    wait_for(applied, lambda: f"all to be done: {lab.ask('Site1', 'api', path)}")


def there(lab, service, path, until=lambda found: True):
    """What both sites have, past their agents; waited for until it is so."""
    found = {}

    def has(site):
        answer = lab.ask(site, service, path, direct=True)
        found[site] = answer
        return answer.status == 200 and until(answer.json)

    for site in lab.sites:
        wait_for(lambda site=site: has(site), lambda site=site: f"{path} at {site}: {found[site]}")


def gone(lab, service, path):
    for site in lab.sites:
        wait_for(lambda site=site: lab.ask(site, service, path, direct=True).status == 404, f"{path} to be gone from {site}")


def test_federation(lab):
    """A mapping, an identity provider, a protocol: each PUT by its name."""
    name = lab.name("idp")
    rules = [{"local": [{"user": {"name": "{0}"}}], "remote": [{"type": "REMOTE_USER"}]}]
    idp = f"/v3/OS-FEDERATION/identity_providers/{name}"
    for path, body in ((f"/v3/OS-FEDERATION/mappings/{name}", {"mapping": {"rules": rules}}), (idp, {"identity_provider": {"enabled": True}}),
                       (f"{idp}/protocols/saml2", {"protocol": {"mapping_id": name}})):
        everywhere(lab, done(lab.ask("Site1", "identity", path, "PUT", scope=BOTH, body=body), 201))
        there(lab, "identity", path)
    done(lab.ask("Site2", "identity", idp, "PATCH", body={"identity_provider": {"enabled": False}}), 200)
    there(lab, "identity", idp, lambda found: found["identity_provider"]["enabled"] is False)
    for path in (f"{idp}/protocols/saml2", idp, f"/v3/OS-FEDERATION/mappings/{name}"):
        done(lab.ask("Site2", "identity", path, "DELETE"), 204)
        gone(lab, "identity", path)


def test_what_only_a_user_himself_may_make(lab):
    """An application credential: at one site at a time, and shown in a list of both."""
    name = lab.name("key")
    me = done(lab.ask("Site1", "identity", "/v3/users?name=admin", direct=True)).json["users"][0]["id"]
    path = f"/v3/users/{me}/application_credentials"
    body = {"application_credential": {"name": name, "roles": [{"name": "admin"}]}}
    refused = lab.ask("Site1", "identity", path, "POST", scope=BOTH, body=body)
    assert refused.status == 501, refused
    made = done(lab.ask("Site1", "identity", path, "POST", body=body), 201).json["application_credential"]["id"]
    listed = done(lab.ask("Site2", "identity", path, scope=BOTH)).json["application_credentials"]
    assert [each["id"] for each in listed] == [made]
    done(lab.ask("Site1", "identity", f"{path}/{made}", "DELETE"), 204)
