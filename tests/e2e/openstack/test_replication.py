"""An image at two sites, by one command: `openstack image create debian --file … --scope '{image: Site1 & Site2}'`, and what is done to it
then, at either site, with the other there or not."""
import hashlib
import pathlib
import secrets

from openstack_lab import CHEOPS, PASSWORD, wait_for

BOTH = "{image: Site1 & Site2}"
GIB = 1 << 30
IS_SANITIZED = b"__asan_init" in CHEOPS.read_bytes()


def create(lab, path, name, site="Site1", scope=BOTH):
    """By the real client; its id."""
    return lab.openstack(site, f"image create {name} --disk-format raw --container-format bare --file {path} -f json",
                         scope).json["id"]


def image(lab, site, wanted):
    """As that site's Glance has it, past the agent; None: it has none."""
    answer = lab.ask(site, "image", f"/v2/images/{wanted}", direct=True)
    assert answer.status in (200, 404), answer
    return answer.json if answer.status == 200 else None


def wait_active(lab, site, wanted):
    def active():
        there = image(lab, site, wanted)
        return there if there and there["status"] == "active" else None

    return wait_for(active, f"{wanted} at {site} to be active")


def settled(lab, wanted, *sites):
    """Nothing is on its way any more, and nothing was refused, as these sites know it."""
    for site in sites or lab.sites:
        def calm(site=site):
            answer = lab.ask(site, "api", f"/cheops/v1/replicants/{wanted}")
            return answer.status == 404 or answer.json["state"] in ("settled", "deleted")

        wait_for(calm, lambda site=site: f"{wanted} to settle: " + lab.cheops(site, "ops", "--of", wanted).stdout)


def boot(lab, site, wanted, called=None):
    """Of that image, named by its id unless told otherwise."""
    name = lab.name("vm")
    made = lab.openstack(site, f"server create {name} --image {called or wanted} --flavor m1.tiny --nic none --wait -f json").json
    assert made["status"] == "ACTIVE"
    assert lab.servers(site)[name]["image"]["id"] == wanted


def test_a_list_of_both_shows_it_once(lab):
    made = create(lab, lab.file(), lab.name("debian"))
    wait_active(lab, "Site2", made)
    settled(lab, made)
    listed = lab.openstack("Site2", "image list -f value -c ID", BOTH).out.split()
    assert listed.count(made) == 1, listed


def test_record_and_bytes_at_both(lab):
    path, name = lab.file(300000), lab.name("debian")
    made = create(lab, path, name)
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    for site in lab.sites:
        there = wait_active(lab, site, made)
        assert (there["id"], there["name"], there["checksum"], there["size"]) == (made, name, md5, 300000)
        assert lab.ask(site, "image", f"/v2/images/{made}/file", direct=True).bytes == path.read_bytes()
    settled(lab, made)
    assert [each["ID"] for each in lab.openstack("Site2", f"image list --name {name} -f json").json] == [made]
    with lab.apart():
        for site in lab.sites:
            boot(lab, site, made, called=name)


def test_changed_and_deleted_from_either(lab):
    path, names = lab.file(), [lab.name("debian"), lab.name("debian")]
    made = create(lab, path, names[0])
    wait_active(lab, "Site2", made)
    settled(lab, made)
    assert lab.openstack("Site2", f"image set {made} --name {names[1]}").status == 0
    assert lab.openstack("Site1", f"image set {made} --property os_distro=debian --tag stable").status == 0
    settled(lab, made)
    for site in lab.sites:
        there = image(lab, site, made)
        assert (there["name"], there["os_distro"], there["tags"]) == (names[1], "debian", ["stable"]), site
    assert lab.openstack("Site1", f"image unset {made} --property os_distro --tag stable").status == 0
    settled(lab, made)
    for site in lab.sites:
        there = image(lab, site, made)
        assert "os_distro" not in there and there["tags"] == [], site
    assert lab.openstack("Site2", f"image delete {made}").status == 0
    for site in lab.sites:
        wait_for(lambda site=site: image(lab, site, made) is None, f"{made} to be gone from {site}")
    again = lab.ask("Site1", "image", "/v2/images", "POST", body={"id": made, "name": names[0]})
    assert again.status == 409, again  # Glance keeps it: an id is never used twice
    other = create(lab, path, names[0])
    assert other != made
    wait_active(lab, "Site2", other)


def test_an_id_of_the_user_s_own(lab):
    """Glance has it at both sites; Cheops knows the image by another one as well."""
    own = "7e0b1f66-8a52-4d5e-9b0a-" + secrets.token_hex(6)
    made = lab.ask("Site1", "image", "/v2/images", "POST", scope=BOTH, body={
        "id": own, "name": lab.name("mine"), "disk_format": "raw", "container_format": "bare"})
    assert made.status == 201, made
    wait_for(lambda: image(lab, "Site2", own), f"{own} at Site2")
    settled(lab, made.json["id"])
    for site in lab.sites:
        for known in (own, made.json["id"]):
            assert lab.ask(site, "image", f"/v2/images/{known}").status == 200
    assert lab.ask("Site2", "image", f"/v2/images/{own}", "DELETE").status == 204
    wait_for(lambda: image(lab, "Site1", own) is None, f"{own} to be gone from Site1")


def replicant(lab, *words):
    done = lab.cheops("Site1", "replicant", *words)
    assert done.returncode == 0, done
    return done.stdout


def extend(lab, only):
    """An image of Site1 alone comes to Site2 as well; its meta-id."""
    meta = replicant(lab, "adopt", f"image/v2/images/{only}").split()[0]
    replicant(lab, "extend", meta, "Site2", "--wait")
    settled(lab, meta)
    return meta


def test_an_image_comes_to_a_further_site(lab):
    """By the same id, with its file, properties, tags and members; and active or not, as it is."""
    only = lab.make_image("Site1", visibility="shared", tags=["stable", "new", "alpha"], os_distro="debian", min_disk=1)
    project = lab.openstack("Site1", "project show demo -f value -c id").out.strip()
    shared = lab.ask("Site1", "image", f"/v2/images/{only}/members", "POST", body={"member": project})
    assert shared.status == 200, shared
    meta = extend(lab, only)
    here, there = (image(lab, site, only) for site in lab.sites)
    for name in ("id", "name", "owner", "checksum", "size", "status", "visibility", "os_distro", "min_disk", "disk_format"):
        assert there[name] == here[name], name
    assert set(there["tags"]) == {"stable", "new", "alpha"}     # Glance shows them in any order
    files = [lab.ask(site, "image", f"/v2/images/{only}/file", direct=True).bytes for site in lab.sites]
    assert files[0] == files[1]
    members = lab.ask("Site2", "image", f"/v2/images/{only}/members", direct=True).json["members"]
    assert [(each["member_id"], each["image_id"]) for each in members] == [(project, only)]
    assert lab.cheops("Site2", "get", meta, "--verify").returncode == 0
    # From here on it is one as if it had been made at both.
    name = lab.name("debian")
    assert lab.openstack("Site2", f"image set {only} --name {name}").status == 0
    wait_for(lambda: image(lab, "Site1", only)["name"] == name, "its new name at Site1")
    boot(lab, "Site2", only, called=meta)
    off = lab.make_image("Site1")
    assert lab.openstack("Site1", f"image set {off} --deactivate").status == 0
    extend(lab, off)
    assert [image(lab, site, off)["status"] for site in lab.sites] == ["deactivated"] * 2
    for each in (only, off):
        assert lab.openstack("Site2", f"image delete {each}").status == 0
        wait_for(lambda each=each: image(lab, "Site1", each) is None, f"{each} to be gone from Site1")


def test_an_image_is_brought_along(lab):
    """A server at both sites, of an image that is at one of them: the scope says that it may be copied."""
    only, name = lab.make_image("Site1"), lab.name("vm")
    made = lab.boot("Site1", only, "{compute: with_requirements(Site1 & Site2)}", name)
    assert made.status == 202, made
    for site in lab.sites:
        assert lab.wait_made(site, name)["image"]["id"] == only
    settled(lab, made.json["server"]["id"])


def test_the_other_site_is_away(lab):
    """During all of it: an image is made, filled, changed; another one made and deleted again."""
    path, name = lab.file(2 << 20), lab.name("debian")
    with lab.apart():
        made = create(lab, path, lab.name("debian"))
        assert lab.openstack("Site1", f"image set {made} --name {name} --property os_distro=debian").status == 0
        short_lived = create(lab, path, lab.name("debian"))
        assert lab.openstack("Site1", f"image delete {short_lived}").status == 0
        boot(lab, "Site1", made)
        assert image(lab, "Site2", made) is None
    there = wait_active(lab, "Site2", made)
    settled(lab, made)
    settled(lab, short_lived)
    there = image(lab, "Site2", made)
    assert (there["name"], there["os_distro"], there["size"]) == (name, "debian", 2 << 20)
    assert image(lab, "Site2", short_lived) is None
    with lab.apart():
        boot(lab, "Site2", made, called=name)
        assert lab.openstack("Site2", f"image delete {made}").status == 0
        assert image(lab, "Site1", made)
    wait_for(lambda: image(lab, "Site1", made) is None, f"{made} to be gone from Site1")


def log_in(lab, site, user):
    answer = lab.ask(site, "identity", "/v3/auth/tokens", "POST", token=None, direct=True, body={"auth": {
        "identity": {"methods": ["password"], "password": {
            "user": {"name": user, "domain": {"id": "default"}, "password": PASSWORD}}},
        "scope": {"project": {"name": user, "domain": {"id": "default"}}}}})
    assert answer.status == 201, answer
    return answer.header("X-Subject-Token")


def test_the_token_expires_meanwhile(lab):
    """What a user asked for is carried out at Site2 when his token is good no more: the agent there says, with a token of its own, that
    it was good when it came. The image is the user's, not the agent's."""
    with lab.tokens_for("Site1", life_s=15), lab.apart():
        token = {"X-Auth-Token": log_in(lab, "Site1", "demo")}
        made = lab.ask("Site1", "image", "/v2/images", "POST", headers=token, scope=BOTH, body={
            "name": lab.name("debian"), "disk_format": "raw", "container_format": "bare"})
        assert made.status == 201, made
        path = f"/v2/images/{made.json['id']}"
        stored = lab.ask("Site1", "image", f"{path}/file", "PUT", body=secrets.token_bytes(4096),
                         headers={**token, "Content-Type": "application/octet-stream"})
        assert stored.status == 204, stored
        wait_for(lambda: lab.ask("Site2", "identity", "/v3/auth/tokens", direct=True, headers={
            "X-Subject-Token": token["X-Auth-Token"]}).status == 404, "the token to expire")
        assert lab.ask("Site2", "image", path, direct=True, headers=token).status == 401
    there = wait_active(lab, "Site2", made.json["id"])
    assert there["owner"] == image(lab, "Site1", made.json["id"])["owner"] != lab.openstack(
        "Site1", "project show -f value -c id service").out.strip()
    settled(lab, made.json["id"])


def peak_bytes(lab, site):
    text = pathlib.Path(f"/proc/{lab.pid(site)}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("VmHWM:"))


def test_a_gigabyte(lab):
    """Within the memory that an agent may have, at both sites."""
    path = lab.base / lab.name("large")
    with open(path, "wb") as out:
        out.write(secrets.token_bytes(1 << 20))
        out.truncate(GIB)
    try:
        made = create(lab, path, lab.name("large"))
        sums = {site: wait_active(lab, site, made)["checksum"] for site in lab.sites}
        assert len(set(sums.values())) == 1 and image(lab, "Site2", made)["size"] == GIB
        settled(lab, made)
        for site in lab.sites:
            assert IS_SANITIZED or peak_bytes(lab, site) < 40_000_000, f"{peak_bytes(lab, site) >> 20} MiB at {site}"
            assert not list(lab.path(site, "state", "store", "blobs").iterdir())
        assert lab.openstack("Site2", f"image delete {made}").status == 0
        wait_for(lambda: image(lab, "Site1", made) is None, f"{made} to be gone from Site1")
    finally:
        path.unlink()
