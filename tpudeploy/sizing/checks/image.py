"""Checks of the engine in the image: its release, the faults that are known of it, and variables that it ignores."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.catalog.engines import DIFFERENCES, FAULTS, PUBLISHED, EngineFault, is_known, numbers, release
from tpudeploy.catalog.flags import VLLM_VERSION
from tpudeploy.catalog.releases import find, table
from tpudeploy.config.keys import VARIABLE_OF_KEY
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.engine import Engine, EngineKind, EngineOrigin
from tpudeploy.domain.model import Implementation
from tpudeploy.sizing.checks.check import argument, check_for, error, model_of, warning

_IMAGE = "serving.image"
_ENV = "serving.env."
_WITNESSES = {
    EngineOrigin.BOOT: " by its last boot",
    EngineOrigin.LABELS: " by its labels",
    EngineOrigin.LOCK_FILE: " by the lock file",
}


@check_for(
    "TPU1341",
    "Image whose engine is another one than the tables', or not known",
    "A warning: flags, values and memory are known for some releases of tpu-inference, and this image contains "
    "another one. tpudeploy identifies the engine and its release by the image's name and tag, the registry's labels "
    "for its digest, a pin in the lock file with the same digest, or the engine's last boot report. For any other "
    "release, refusals become warnings and sizes are estimates.",
    "serving: {image: vllm/vllm-tpu:v0.32.0}",
)
def other_release(deployment: Deployment) -> Iterator[Diagnostic]:
    engine = deployment.engine
    if engine.kind is EngineKind.TPU_INFERENCE and is_known(engine.release):
        return
    message, hint = _difference(engine)
    yield warning(deployment, message, path=_IMAGE, hint=hint)


def _difference(engine: Engine) -> tuple[str, str]:
    """Return what is not certain of an engine that is not the tables' own, and what to do."""
    name, version = engine.image.partition("@")[0], engine.release
    of_image = version if engine.kind is EngineKind.TPU_INFERENCE else None
    tables = f"Flags and values are checked against vLLM {table(of_image)['release']}"
    row = release(version).version
    doubt = f"{tables}, and memory is computed as {row} allocates it: neither is certain"
    if engine.kind is EngineKind.TORCHTPU:
        published, limit = PUBLISHED[engine.kind], ""
        if version is not None and numbers(version) > numbers(published):
            limit = f"The newest release of {engine.kind} that is known here is {published}."
        message = f"{name} has another engine than vllm-tpu: {engine.title}. {tables}, which is not this engine's."
        return message, limit
    if engine.kind is EngineKind.UNKNOWN:
        hint = f"If it is built on vllm/vllm-tpu, keep that name and tag: HOST/vllm-tpu:v{VLLM_VERSION}."
        return f"Which engine {name} has is not known. {doubt}.", hint
    if version is None:
        hint = f"Name a release, such as vllm/vllm-tpu:v{VLLM_VERSION}; an apply notes the one that it finds at boot."
        return f"Which release {name} has is not known: nothing names one. {doubt}.", hint
    witness = _WITNESSES.get(engine.origin, "")
    hint = f"Use v{VLLM_VERSION}, or compare the first boot log with `tpudeploy size`."
    if find(version) is not None:
        doubt = f"{tables}, whose plug-in for TPU is not known. Memory is computed as {row} allocates it: not certain"
    return f"The image has vLLM {version}{witness}. {doubt} for {version}.", hint


@check_for(
    "TPU2128",
    "A release with a known fault",
    "With these settings, this engine release has a fault others have reported. The message names the fault, the "
    "source and the workaround. The server wouldn't start.",
    "serving: {image: vllm/vllm-tpu:v0.32.0}",
)
def known_fault(deployment: Deployment) -> Iterator[Diagnostic]:
    for fault in FAULTS:
        path, value = argument(deployment, fault.flag)
        shows = _loads_wrongly(deployment, fault) if fault.architecture else fault.word in str(value)
        if fault.affects(deployment.engine) and shows:
            message = f"{deployment.engine.title} {fault.what} ({fault.source})."
            path = "model.id" if fault.architecture else path
            yield error(deployment, message, path=path, hint=f"{fault.fix[0].upper()}{fault.fix[1:]}.")


def _loads_wrongly(deployment: Deployment, fault: EngineFault) -> bool:
    model = model_of(deployment)
    return (
        model is not None
        and model.architecture == fault.architecture
        and model.implementation is Implementation.JAX
        and not model.is_tied
    )


@check_for(
    "TPU2129",
    "A variable that this engine does not read",
    "The image's engine doesn't read this variable; another TPU engine does. The setting has no effect.",
    "serving: {padding_gap: null}",
)
def ignored_variable(deployment: Deployment) -> Iterator[Diagnostic]:
    difference = DIFFERENCES.get(deployment.engine.kind)
    if difference is None:
        return
    paths = {f"{_ENV}{name}": name for name in sorted(difference.ignored)}
    paths |= {".".join(map(str, key)): name for key, name in VARIABLE_OF_KEY.items() if name in difference.ignored}
    for path, name in paths.items():
        if path in deployment.attributes and path != "serving.xla_cache_path":
            message = f"{deployment.engine.kind} does not read {name}: it has no effect ({difference.source})."
            yield warning(deployment, message, path=path, hint="Leave it out.")
