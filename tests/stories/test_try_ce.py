import pytest
from command_line import PROFILE, Open

GCE = PROFILE.replace("placement:\n", "placement:\n  backend: gce-instance\n")


@pytest.mark.parametrize("nodes", ["simulated", "real"])
def test_it(cli: Open, nodes: str) -> None:
    at = cli(nodes=nodes)
    profile = at.write(GCE)
    r = at.run("apply", "-auto-approve", profile)
    print(r.all)
    assert r.code == 0
    r = at.run("plan", profile, "-detailed-exitcode")
    print(r.all)
    assert r.code == 0
    r = at.run("destroy", "-auto-approve", profile)
    print(r.all)
    assert r.code == 0
