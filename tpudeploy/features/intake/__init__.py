"""Profiles from what people have: a model id, a docker or vllm command, a compose file, a manifest, a task."""
