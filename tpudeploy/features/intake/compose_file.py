"""Take a compose file into a draft: the first service that serves with vLLM."""

from __future__ import annotations

import shlex

from tpudeploy.config.nodes import ListNode, MapNode, Node, ScalarNode
from tpudeploy.features.intake import tree
from tpudeploy.features.intake.draft import ProfileDraft
from tpudeploy.features.intake.launch import container_arguments, find_launches, shell_text
from tpudeploy.features.intake.launched import publish, take_arguments_variable, take_server, take_volume
from tpudeploy.features.intake.shell import Word
from tpudeploy.features.intake.source import Stop
from tpudeploy.features.intake.variables import compose_word

_UNNEEDED = frozenset(
    {
        *("privileged", "network_mode", "networks", "ipc", "restart", "runtime", "devices", "ulimits"),
        *("cap_add", "pid", "stdin_open", "tty", "init", "logging", "healthcheck", "stop_grace_period"),
        *("pull_policy", "platform", "user", "security_opt", "hostname", "labels", "gpus", "expose"),
        *("container_name", "working_dir", "profiles", "mem_limit", "cpus", "mem_reservation"),
        *("extra_hosts", "annotations"),
    }
)
_READ = frozenset(
    {"image", "command", "entrypoint", "environment", "volumes", "ports", "shm_size", "tmpfs", "env_file", "deploy"}
)
_REASONS = {
    "build": "an image that is built here has to be pushed to a registry and named under serving.image",
    "depends_on": "a profile has one server, and waits for nothing else",
    "secrets": "name it under secrets",
    "configs": "a file has to be in the image, or fetched by serving.setup",
    "extends": "values of another file are not read",
}


def take_compose(draft: ProfileDraft, root: MapNode) -> None:
    """Take a compose file. Raise Stop where no service serves with vLLM."""
    services = tree.mapping(root, "services")
    servers = [name for name, service in services.items() if _arguments(service) is not None]
    if not servers:
        hint = "what is read is a service whose image or command starts vLLM"
        raise tree.stop_at(tree.at(root, "services"), "No service of this file starts vLLM", hint)
    name = servers[0]
    for other in services:
        if other != name:
            reason = "it's another server: a profile has one" if other in servers else "a profile has the server alone"
            draft.note(f"service `{other}`", reason)
    _take_service(draft, name, services[name])


def _arguments(service: Node) -> tuple[Word, ...] | None:
    """Return the words for the engine, or None for a service that isn't vLLM."""
    words = _command(service)
    image = compose_word(tree.text(service, "image"))
    arguments = container_arguments(image.text, words)
    if arguments is not None:
        return arguments
    if (inner := shell_text(words)) is not None:
        try:
            servers = find_launches(inner.text).servers
        except Stop:
            return ()
        return servers[0].arguments if servers else None
    has_arguments = any(key.endswith("ARGS") and "--model" in word.text for key, word in _environment(service).items())
    return () if has_arguments else None


def _command(service: Node) -> tuple[Word, ...]:
    return (*_words(tree.at(service, "entrypoint")), *_words(tree.at(service, "command")))


def _words(node: Node | None) -> tuple[Word, ...]:
    """Return a command as a list has it, or as the shell splits a text."""
    match node:
        case ListNode():
            return tuple(compose_word(tree.text(item)) for item in node.items)
        case ScalarNode() if node.value is not None:
            word = compose_word(node.text)
            try:
                parts = shlex.split(word.text, comments=False)
            except ValueError as cause:
                raise tree.stop_at(node, "A quote of this command isn't closed") from cause
            return tuple(_part(part, word) for part in parts)
    return ()


def _part(part: str, whole: Word) -> Word:
    return Word(text=part, unknown=tuple(name for name in whole.unknown if f"${name}" in part or f"${{{name}" in part))


def _environment(service: Node) -> dict[str, Word]:
    """Return the variables of a service, which are a mapping, or a list of NAME=VALUE."""
    values: dict[str, Word] = {}
    for key, node in tree.mapping(service, "environment").items():
        is_null = isinstance(node, ScalarNode) and node.value is None
        values[key] = Word(text="", unknown=(key,)) if is_null else compose_word(tree.text(node))
    for item in tree.items(service, "environment"):
        name, equals, value = tree.text(item).partition("=")
        values[name.strip()] = (
            compose_word(value.strip().removeprefix(">").strip()) if equals else Word(text="", unknown=(name,))
        )
    return values


def _take_service(draft: ProfileDraft, name: str, service: Node) -> None:
    draft.model_at = service.at
    variables = _environment(service)
    if image := tree.text(service, "image"):
        draft.set_image(compose_word(image))
    draft.set_name(tree.text(service, "container_name") or name)
    draft.set_name(name)
    for variable, word in variables.items():
        if not (variable.endswith("ARGS") and "--model" in word.text):
            draft.add_variable(variable, word)
    for item in tree.items(service, "volumes"):
        _take_mount(draft, item)
    if size := tree.text(service, "shm_size"):
        draft.set(("serving", "shm_size"), size)
    words = _command(service)
    arguments = container_arguments(draft.image if not image else compose_word(image).text, words)
    inner = shell_text(words)
    if arguments is not None:
        draft.add_arguments(arguments)
    elif inner is not None:
        values = find_launches(inner.text, {key: word.text for key, word in variables.items() if not word.unknown})
        take_server(draft, values.servers[0], [], is_contained=True)
    else:
        take_arguments_variable(draft, {key: word.text for key, word in variables.items()})
    publish(draft, tuple(_port(item) for item in tree.items(service, "ports")))
    _take_rest(draft, service)


def _take_mount(draft: ProfileDraft, item: Node) -> None:
    if isinstance(item, MapNode):
        source, target = tree.text(item, "source"), tree.text(item, "target")
        draft.add_volume(compose_word(source).text, target, origin=f"`{source}:{target}`")
        return
    take_volume(draft, compose_word(tree.text(item)))


def _port(item: Node) -> Word:
    if isinstance(item, MapNode):
        published, target = tree.text(item, "published"), tree.text(item, "target")
        return compose_word(f"{published}:{target}" if published else target)
    return compose_word(tree.text(item))


def _take_rest(draft: ProfileDraft, service: Node) -> None:
    keys = tree.mapping(service)
    replicas = tree.number(service, "deploy", "replicas")
    if replicas is not None and replicas > 1:
        draft.set(("replicas",), replicas)
    rest = [f"deploy.{key}" for key in tree.mapping(service, "deploy") if key != "replicas"]
    draft.leave(
        [*(key for key in keys if key in _UNNEEDED), *rest],
        "tpudeploy starts the container with the machine's network and its TPUs, and keeps it running",
    )
    if "nvidia" in " ".join(tree.walk_keys(service)) or "gpus" in keys or "nvidia" in tree.text(service, "runtime"):
        draft.is_of_gpus = True
    for file in tree.texts(service, "env_file"):
        draft.note(f"`env_file: {file}`", "variables of another file are not read: write serving.env and secrets")
    for key in keys:
        if key not in _UNNEEDED and key not in _READ:
            draft.note(f"`{key}`", _REASONS.get(key, "a profile has nothing for it"))
