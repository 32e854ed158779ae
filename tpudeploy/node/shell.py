"""The container or the server of a deployment as lines to paste into a shell. No secret is in them: they fetch it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from tpudeploy.domain.deployment import BucketFolder, Container, Deployment, SecretRef
from tpudeploy.node import serving
from tpudeploy.node.serving import MIRROR_FOLDER

# A line that fails ends what was pasted: a server without its token would fail minutes later, for another reason.
_AND = " &&\n"
# Of several hosts: the address of this one, and whether its Ray is the head or joins it.
_OWN_ADDRESS = "export VLLM_HOST_IP=$(hostname -I | cut -d ' ' -f 1)"
_JOIN = (
    'if [ "${HEAD:?is the address of worker 0}" = "$VLLM_HOST_IP" ]; then join="--head --port=6379"; '
    'else join="--address=$HEAD:6379"; fi'
)


def docker_shell(deployment: Deployment) -> str:
    """Return lines for a shell on the machine: they fetch the secrets and a mirrored model, and run the container.

    For several hosts, they run on each with HEAD, the address of worker 0. The command that starts the server there
    follows.
    """
    container, mirror = deployment.container, deployment.mirror
    steps = [step for ref in container.secrets for step in (_fetch(ref), f"export {ref.variable}")]
    if mirror is not None:
        steps.append(_copy_weights(mirror.bucket, mirror.folder))
    words = serving.docker_run(container)
    if container.hosts == 1:
        return _AND.join([*steps, _over_lines(words)])
    # As the startup script does, with Ray's usual port.
    words = (*words[:3], "-e", "VLLM_HOST_IP", *words[3:])
    steps = [_OWN_ADDRESS, _JOIN, *steps, f'{_over_lines(words)} \\\n  $join --node-ip-address="$VLLM_HOST_IP"']
    return f"{_AND.join(steps)}\n# On worker 0, once all have joined:\n{_over_lines(serving.docker_exec(container))}"


def serve_shell(deployment: Deployment) -> str:
    """Return lines for a shell in the container, or wherever vLLM for TPU is installed: setup, then `vllm serve`.

    A secret that the shell already has is not fetched: the image has no gcloud, and `docker run -e` passes it.
    """
    container = deployment.container
    steps = []
    for ref in container.secrets:
        steps.append(f'[ -n "${{{ref.variable}:-}}" ] || {_fetch(ref)}')
        steps.append(f"export {ref.variable}")
    if deployment.mirror is not None:
        steps.append(f"[ -d {MIRROR_FOLDER} ] || {{ {_copy_weights(deployment.mirror.bucket, MIRROR_FOLDER)}; }}")
    # The container of several hosts has run the setup steps when the server starts in it.
    setup = container.setup if container.hosts == 1 else ()
    steps += [_with_variables(container, shlex.join(("/bin/bash", "-c", "--", step))) for step in setup]
    steps.append(_with_variables(container, _over_lines(container.serve)))
    return _AND.join(steps)


def shell_lines(words: Iterable[str]) -> tuple[str, ...]:
    """Return a command over several lines, with an option and its value on each."""
    lines: list[list[str]] = []
    for word in words:
        last = lines[-1] if lines else []
        needs_value = len(last) == 1 and last[0].startswith("-") and "=" not in last[0]
        has_option = any(each.startswith("-") for each in last)
        if last and (needs_value or not has_option) and not word.startswith("-"):
            last.append(word)
        else:
            lines.append([word])
    first, *rest = (shlex.join(line) for line in lines)
    return (first, *(f"  {line}" for line in rest))


def _over_lines(words: Iterable[str]) -> str:
    return " \\\n".join(shell_lines(words))


def _with_variables(container: Container, command: str) -> str:
    """Return a command with the profile's variables; by `env`, because an export cannot set some of the names."""
    if not container.environment:
        return command
    variables = shlex.join(f"{name}={value}" for name, value in container.environment.items())
    return f"env {variables} \\\n  {command}"


def _fetch(ref: SecretRef) -> str:
    """Return the assignment that fetches a secret, from the project of gcloud's settings if the profile names none."""
    parts = ref.secret.split("/")
    names = dict(zip(parts[::2], parts[1::2], strict=False)) if "/" in ref.secret else {"secrets": ref.secret}
    words = ["gcloud", "secrets", "versions", "access", names.get("versions", "latest"), f"--secret={names['secrets']}"]
    if "projects" in names:
        words.append(f"--project={names['projects']}")
    return f"{ref.variable}=$({shlex.join(words)})"


def _copy_weights(bucket: BucketFolder, folder: str) -> str:
    copy = ("gcloud", "storage", "rsync", "--recursive", f"gs://{bucket.name}/{bucket.prefix}", folder)
    return f"mkdir -p {shlex.quote(folder)}{_AND}{shlex.join(copy)}"
