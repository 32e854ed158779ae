"""Choose the client that drives the load of a benchmark."""

from __future__ import annotations

from tpudeploy.features.benchmark.load.client import LoadClient
from tpudeploy.features.benchmark.load.emulated import EmulatedLoad
from tpudeploy.features.benchmark.load.installed import Installed
from tpudeploy.features.benchmark.ports import LoadDriver
from tpudeploy.features.benchmark.run import Driver
from tpudeploy.wiring import Adapters


def load_driver(
    adapters: Adapters, driver: Driver, url: str, *, tokenizer: str, api_key: str | None, is_emulated: bool = False
) -> LoadDriver:
    """Return a client for this address, which an interrupt of the workspace stops.

    `is_emulated`: the emulator's stand-in answers there. Raise `errors.UsageError` where the client is not installed.
    """
    client: LoadDriver
    if driver is Driver.TPUDEPLOY:
        client = LoadClient(url, api_key=api_key)
        if is_emulated:
            client = EmulatedLoad(url, adapters.clock, client, api_key=api_key)
    else:
        client = Installed(driver, url, tokenizer=tokenizer, api_key=api_key)
    adapters.stop_too(client.stop)
    return client
