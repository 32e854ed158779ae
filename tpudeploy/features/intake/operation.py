"""Make a profile from what there is: a model, a docker or vllm command, or a file of another tool. It writes nothing.

It says what could not be carried over, and why. No value of a secret is in the profile, in what is printed, or in an
error.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from tpudeploy.adapters import assets
from tpudeploy.adapters.files import read_file, without_quotes
from tpudeploy.catalog import choice_hint
from tpudeploy.cli.new_profile import with_limits
from tpudeploy.config.reader import MAX_BYTES
from tpudeploy.config.source import Source
from tpudeploy.domain.errors import ConfigError, UsageError
from tpudeploy.features.intake.draft import ProfileDraft
from tpudeploy.features.intake.model import profile_of_model
from tpudeploy.features.intake.read import COMMAND, read_command
from tpudeploy.features.intake.read import read_file as read_source
from tpudeploy.features.intake.settle import settle
from tpudeploy.features.intake.source import Fate, Stop, sentences_by_fate, stopped
from tpudeploy.loading import Profile
from tpudeploy.operations.arguments import Agents, Arg
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace


@result
class DraftedProfile(Result):
    """A valid profile as YAML, and what it doesn't have of its source: each a sentence that begins with the words."""

    FORMAT = "drafted-profile"
    IS_VERBATIM = True
    name: Annotated[str, "the deployment's name"]
    model: str
    accelerator_type: str
    profile: Annotated[str, "the profile, as YAML"]
    not_carried_over: Annotated[tuple[str, ...], "what the profile doesn't have of its source, and why"]
    changed: Annotated[tuple[str, ...], "what it has otherwise than its source, and why"] = ()
    file: Annotated[str | None, "where the profile was written, if it was"] = None

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return self.profile.rstrip("\n")

    def messages(self, paint: Paint) -> str:
        lines = [f"{self.model} on {self.accelerator_type}."]
        for fate, sentences in ((Fate.LEFT_OUT, self.not_carried_over), (Fate.CHANGED, self.changed)):
            if sentences:
                lines += [f"{fate}:", *(f"  - {sentence}" for sentence in sentences)]
        return "\n".join(lines)


def draft_profile(
    workspace: Workspace,
    *,
    command: Annotated[
        str,
        Arg(
            "A `docker run`, `vllm serve` or api_server command line, as one argument.",
            agents=Agents("a command line of docker or vllm"),
        ),
    ] = "",
    file: Annotated[
        Path | str | None,
        Arg("A compose file, Kubernetes manifest, SkyPilot or dstack task, or a startup script.", agents=None),
    ] = None,
    model: Annotated[
        str,
        Arg(
            "The model: a Hugging Face id.",
            metavar="ID",
            agents=Agents("a Hugging Face id, alone or for a source that does not say it"),
        ),
    ] = "",
    type: Annotated[  # noqa: A002 - the option's name
        str,
        Arg(
            "The slice type, instead of the smallest that fits.",
            agents=Agents("a slice type such as v6e-4, instead of the smallest that fits"),
        ),
    ] = "",
    shipped: Annotated[
        str,
        Arg(
            "The profile of this name that comes with tpudeploy.",
            command=False,
            agents=Agents("the name of a profile that comes with tpudeploy, such as gemma4-e2b-v6e1"),
        ),
    ] = "",
) -> DraftedProfile:
    """Return a profile made from a command, or a file of another tool, or a model id alone; or a shipped one.

    `command` is a line of docker or vllm, `file` a compose file, manifests of Kubernetes, a task of SkyPilot or dstack,
    or a startup script. With one of them, `model` stands for one that it doesn't say, and `type` for its slice.
    `shipped` is the name of a profile that comes with tpudeploy.

    Raise `errors.ConfigError` with the place where reading stopped, and its line if the file is inside the project;
    `errors.UsageError` if nothing is named.
    """
    if shipped:
        if command or file is not None or model or type:
            raise UsageError("A shipped profile is copied as it is.", hint="Leave the others out, and edit the copy.")
        return _shipped(shipped)
    if command and file is not None:
        raise UsageError("A profile is made from a command or from a file.", hint="Name one of them.")
    if not command and file is None:
        if not model:
            raise UsageError("There is nothing to make a profile from.", hint="Name a model, a command or a file.")
        return _drafted(profile_of_model(model, type))

    if command:
        return _draft_of(COMMAND, lambda: read_command(command, type), model)
    path = Path(str(file))
    content = _content(path, str(file))
    try:
        return _draft_of(path.name, lambda: read_source(str(file), content, type), model)
    except ConfigError as error:
        raise without_quotes(error, path, workspace.adapters.folder) from None


def _draft_of(origin: str, read: Callable[[], tuple[ProfileDraft, Source]], model: str) -> DraftedProfile:
    draft, source = read()
    try:
        return _drafted(settle(draft, origin, model_id=model))
    except Stop as stop:
        raise stopped(stop, source) from stop


def _shipped(name: str) -> DraftedProfile:
    """Return a profile that comes with tpudeploy. Raise `errors.UsageError` for an unknown name."""
    texts = assets.profiles()
    if name not in texts:
        raise UsageError(f"There is no shipped profile `{name}`.", hint=choice_hint(name, texts))
    text = with_limits(texts[name])
    spec = Profile.from_text(text)
    return DraftedProfile(
        name=spec.name, model=spec.model.id, accelerator_type=spec.tpu.type, profile=text, not_carried_over=()
    )


def _drafted(settled: Any) -> DraftedProfile:
    deployment, sentences = settled.deployment, sentences_by_fate(settled.notes)
    return DraftedProfile(
        name=deployment.name,
        model=deployment.model_id,
        accelerator_type=deployment.accelerator.name,
        profile=settled.text,
        not_carried_over=sentences.get(Fate.LEFT_OUT, ()),
        changed=sentences.get(Fate.CHANGED, ()),
    )


def _content(path: Path, name: str) -> bytes:
    try:
        return read_file(path, MAX_BYTES)
    except FileNotFoundError as cause:
        raise UsageError(f"There is no file `{name}`.") from cause
    except (OSError, ValueError) as cause:
        raise UsageError(f"`{name}` cannot be read: {getattr(cause, 'strerror', None) or cause}.") from cause


OPERATION = Operation(
    run=draft_profile,
    results=(DraftedProfile,),
    access=Access.OFFLINE,
    title="Draft a profile",
    tool="draft_profile",
    options=(),
)
