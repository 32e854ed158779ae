"""The port of a node is Google's business; the server's is the profile's, whoever emulates the cloud."""

from __future__ import annotations

import json

from command_line import PROFILE, Open


def test_a_node_whose_runtime_listens_on_8470_is_reached_at_the_port_of_the_profile(cli: Open) -> None:
    """Every cloud, and every emulator of somebody else's, reports it: 8470 is a constant of Google's."""
    at = cli()
    at.write()
    applied = at.run("apply", "-auto-approve", "gemma.yaml")
    assert applied.code == 0, applied.all
    assert "cannot be reached from here" not in applied.err, "at another port, only its own machine would vouch for it"
    assert json.loads((at.folder / "endpoints" / "gemma.json").read_text("utf-8"))["url"].endswith(":8000")


def test_where_all_nodes_share_one_address_our_own_emulator_says_which_port_is_whose(cli: Open) -> None:
    at = cli()
    at.emulator._cloud.addresses.has_own = False  # as on macOS
    at.write()
    at.write(PROFILE.replace("name: gemma", "name: second"), "second.yaml")
    applied = at.run("apply", "-auto-approve", "gemma.yaml", "second.yaml")
    assert applied.code == 0, applied.all
    urls = {json.loads(file.read_text("utf-8"))["url"] for file in (at.folder / "endpoints").iterdir()}
    assert len(urls) == 2
    assert all(url.startswith("http://127.0.0.1:") and not url.endswith(":8470") for url in urls)
