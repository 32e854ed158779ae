"""`model`: what is served."""

from typing import Annotated

from pydantic import Field

from tpudeploy.config.schema.base import Bucket, Form, Section, Text

_HUB = r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?"
_BUCKET = r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](?:/\S*)?"
ModelId = Annotated[
    str,
    Form(rf"{_HUB}|{_BUCKET}|/\S+", "google/gemma-4-E2B-it, gs://bucket/weights or /path/to/weights"),
]
Revision = Annotated[str, Form(r"[A-Za-z0-9][\w./-]{0,254}", "main, or a commit's forty digits")]


class ModelSpec(Section):
    id: ModelId = Field(
        description="The model that clients ask for: a Hugging Face id, or a gs:// prefix or absolute path that "
        "holds the weights. Required. Source: the first argument of `vllm serve`.",
        examples=["google/gemma-4-E2B-it"],
    )
    revision: Revision | None = Field(
        None,
        description="Branch, tag or commit on the hub. The first apply pins its commit in "
        "tpudeploy.lock.json. Default: the hub's default branch. Source: vLLM's --revision.",
        examples=["main"],
    )
    config: Text | None = Field(
        None,
        description="A Hugging Face config.json, relative to this file, for a model that the catalogue does not "
        "know: it is sized by it. Default: none.",
        examples=["./config.json"],
    )
    mirror: Bucket | None = Field(
        None,
        description="A bucket copy of the weights, fetched instead of the hub; clients still see `model.id`. The "
        "folder holds the model's files themselves, config.json among them; the VM's service account needs "
        "roles/storage.objectViewer there. Default: none.",
        examples=["gs://bucket/weights"],
    )
