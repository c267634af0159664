"""Who holds what is in a container, when the site that had it is removed from the mesh, and that of another one refused to make it."""
import pytest
from container_lab import Lab, demo_process, files_lab, known_at, wait_known
from files_lab import wait_for


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = Lab(tmp_path_factory.mktemp("lost"), 3)
    yield made
    made.stop()


def limit(site, quota):
    """Its compute service takes so many of each kind from now on."""
    site.service.terminate()
    site.service.wait(demo_process.BOUND_S)
    with open(site.folder / "compute.log", "ab") as log:
        site.service = site.services["compute"] = files_lab.subprocess.Popen(  # pylint: disable=consider-using-with
            [str(files_lab.SAMPLE), "compute", "--listen", site.own.removeprefix("http://"),
             "--data", str(site.folder / "compute"), "--quota", str(quota)],
            env=demo_process.environment({"IMAGE_URL": site.image, "SITE_NAME": site.name}),
            stdin=files_lab.subprocess.DEVNULL, stdout=log, stderr=log)
    wait_for(lambda: answers(site), f"the service of {site.name} to answer")


def answers(site):
    try:
        return files_lab.ask(f"{site.own}/projects").status == 200
    except OSError:
        return False


def state_at(site, meta_id, of):
    answer = known_at(site, meta_id)
    return {each["site"]: each["state"] for each in answer.json["members"]}.get(of) if answer.status == 200 else None


def test_nobody_is_sent_to_a_site_that_refused_it(lab, cheops):
    """Site3 and Site2 were to hold it. Site2 has no room, which its people let be; then Site3 is removed."""
    project = lab.project("loses its holder", scope="Site1 % Site2 % Site3")
    assert project.make("fills", at=2).status == 201
    limit(lab[2], 1)
    made = project.make("shared", at=3, scope="Site3 & Site2")
    assert made.status == 201, made
    child, operation = made.json["id"], made.header("Cheops-Operation")
    wait_known(project, child)
    wait_for(lambda: state_at(lab[1], child, "Site2") == "rejected", "Site1 to know that Site2 has refused it")
    assert cheops("ops", "dismiss", operation, "--api", lab[2].config["api"]).status == 0
    wait_for(lambda: state_at(lab[1], child, "Site2") != "rejected", "Site1 to know that this was let be")
    assert project.ask(1, child).json["name"] == "shared"
    removed = cheops("site", "remove", "Site3", "--yes", "--api", lab[1].config["api"])
    assert removed.status == 0, removed
    for number in (1, 2):
        gone = wait_for(lambda number=number: is_gone(project.ask(number, child)), f"Site{number} to know that nobody has it")
        assert gone.json["type"].endswith("site-removed"), gone


def is_gone(answer):
    return answer if answer.status == 410 else None
