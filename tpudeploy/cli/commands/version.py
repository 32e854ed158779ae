"""Print the version of tpudeploy, and of the vLLM whose flags it knows."""

from __future__ import annotations

import argparse

from tpudeploy.cli import documents, exits
from tpudeploy.cli.context import Context
from tpudeploy.version import VERSION


def arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(args: argparse.Namespace, context: Context) -> int:
    from tpudeploy.catalog.flags import VLLM_VERSION

    if args.json:
        context.reply.set(documents.version(VERSION, VLLM_VERSION))
    else:
        context.terminal.data(f"tpudeploy {VERSION} (flags of vLLM {VLLM_VERSION})")
    return exits.SUCCESS
