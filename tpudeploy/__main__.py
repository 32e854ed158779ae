"""python -m tpudeploy."""

from tpudeploy.cli.main import run

run()
