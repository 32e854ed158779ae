"""Which zones and provisioning models can serve a deployment now, and why the others cannot."""
