"""What agents are asked while they start."""
import json
import subprocess
import threading

from demo_process import BOUND_S, CHEOPS, ask, environment, wait_for


def test_api_can_be_asked_from_the_first_moment(mesh):
    """A health check does not wait until all event loops have their configuration."""
    config = mesh.config("Site1", {"image": "http://127.0.0.1:1"}, threads=64)
    (mesh.folder / "agent.yaml").write_text(json.dumps(config))
    for _ in range(5):
        agent = subprocess.Popen([CHEOPS, "agent", "-c", mesh.folder / "agent.yaml"], env=environment(),
                                 stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        answers = []

        def health():
            if agent.poll() is not None:
                return True
            try:
                answers.append(ask(f"http://{config['api']}/cheops/v1/health").json["site"])
            except OSError:
                return False
            return True

        askers = [threading.Thread(target=wait_for, args=(health, "the API")) for _ in range(4)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join(BOUND_S)
        agent.terminate()
        assert agent.wait(BOUND_S) == 0 and answers == ["Site1"] * 4
