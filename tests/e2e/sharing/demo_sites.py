"""A demo, and what the tests of sharing need in it."""
import demo_process


class Sites:
    """A demo of three sites with an image at each that is nowhere else."""

    def __init__(self, demo):
        self.demo = demo
        self.images = {}
        for site in demo.sites:
            url = demo.url(site, "image") + "/images"
            image = demo_process.ask(url, "POST", json_body={"name": f"only at {site}"}).json["id"]
            made = demo_process.ask(f"{url}/{image}/file", "PUT", body=f"the bytes of {site}'s image".encode())
            self.images[site] = made.json

    def __getattr__(self, name):
        return getattr(self.demo, name)

    def image_id(self, site):
        return self.images[site]["id"]

    def boot(self, at, image_of, headers=None, path="/servers"):
        """Asks compute for a server with the image that exists only at image_of."""
        return demo_process.ask(self.url(at, "compute") + path, "POST", headers,
                                json_body={"name": "vm", "image": self.image_id(image_of)})

    def via(self, at="Site1", **headers):
        """(site of compute, site of the image service that it reaches)"""
        answer = demo_process.ask(self.url(at, "compute") + "/whoami?via=image", headers=headers)
        assert answer.status == 200, answer
        return answer.json["site"], answer.json["via"]["site"]
