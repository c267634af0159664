"""Lists of what is in a container, where they cannot be put together: they are this site's own, and say so."""
import container_lab
import pytest
from files_lab import ask, wait_for


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("container-lists")
    text = container_lab.SAMPLE.read_text(encoding="utf-8")
    described = text.replace("    list: /servers\n", "    list: /servers\n    paging: {query: [limit]}\n    sort: [order]\n", 1)
    assert described != text
    (folder / "app.yaml").write_text(described, encoding="utf-8")
    made = container_lab.Lab(folder, 2, application=str(folder / "app.yaml"))
    yield made
    made.stop()


def listed(site, path):
    answer = ask(site.front + path)
    assert answer.status == 200, answer.bytes
    return [each["name"] for each in answer.json["servers"]], dict(answer.headers).get("Cheops-Partial")


def test_pages_and_orders(lab):
    """A client that always asks for pages goes on working."""
    project = lab.project("paged")
    for number in (1, 2):
        image = ask(f"{lab[number].image}/images", "POST", json_body={"name": "any"}).json["id"]
        path = f"/projects/{project.id}/servers"
        made = ask(lab[number].front + path, "POST", json_body={"name": f"at {number}", "image": image})
        assert made.status == 201, made.bytes
    for number in (1, 2):
        wait_for(lambda number=number: sorted(listed(lab[number], path)[0]) == ["at 1", "at 2"], "all to be in the list")
        assert listed(lab[number], path)[1] is None
        for query, reason in (("limit=500", "pages"), ("order=name", "order")):
            names, partial = listed(lab[number], f"{path}?{query}")
            assert names == [f"at {number}"], query
            assert partial.startswith(f'"Site{3 - number}";reason={reason};'), partial
