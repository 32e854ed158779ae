"""What a machine is given: the request, the startup script, the docker and vLLM commands, and their fingerprints."""
