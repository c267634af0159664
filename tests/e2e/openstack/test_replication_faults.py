"""Parts of a site are killed and started again in the middle of what is done at two: nothing is lost, nothing is made twice."""
import pytest
from openstack_lab import wait_for
from test_replication import BOTH, create, image, settled, wait_active


def named(lab, site, name):
    """Ids of images of that name, as that site's Glance has them."""
    return [each["id"] for each in lab.ask(site, "image", f"/v2/images?name={name}", direct=True).json["images"]]


@pytest.mark.parametrize("part", ["glance", "keystone", "mariadb", "agent"])
def test_the_other_site_lacks_a_part(lab, part):
    """Command 4, and a change; then what was killed comes back, and gets both."""
    name, path = lab.name("debian"), lab.file(200000)
    with lab.without("Site2", part):
        made = create(lab, path, lab.name("debian"))
        assert lab.openstack("Site1", f"image set {made} --name {name} --property os_distro=debian").status == 0
    there = wait_active(lab, "Site2", made)
    settled(lab, made)
    there = image(lab, "Site2", made)
    assert (there["name"], there["os_distro"], there["size"]) == (name, "debian", 200000)
    assert named(lab, "Site2", name) == [made]
    assert lab.openstack("Site2", f"image delete {made}").status == 0
    wait_for(lambda: image(lab, "Site1", made) is None, f"{made} to be gone from Site1")


@pytest.mark.parametrize("part", ["glance", "keystone"])
def test_this_site_lacks_a_part(lab, part):
    """The command fails, as it would without Cheops; what there is, is at both sites or at none. Then it works."""
    name, path = lab.name("debian"), lab.file(200000)
    with lab.without("Site1", part):
        run = lab.openstack("Site1", f"image create {name} --disk-format raw --container-format bare --file {path}", BOTH)
        assert run.status != 0, run
    assert named(lab, "Site1", name) == named(lab, "Site2", name) == []
    made = create(lab, path, name)
    wait_active(lab, "Site2", made)
    settled(lab, made)
    assert named(lab, "Site1", name) == named(lab, "Site2", name) == [made]
