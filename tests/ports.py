"""Ports of this machine for processes that tests start later."""

from __future__ import annotations

import os
import socket
from itertools import count

# Below the ports that the kernel gives to connections, and to servers that ask for any one: such a port may be another
# process's before the one that it is meant for has started. Each process of pytest begins at a place of its own.
_numbers = count(os.getpid() * 40)


def free_port() -> int:
    """Return a port at which nobody listens, and that nobody gets by chance before it is used."""
    while True:
        port = 20_000 + next(_numbers) % 12_000
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) != 0:
                return port
