"""One emulated TPU VM: its own root folder, address and processes; a closed world (ARCHITECTURE.md).

The cloud side (tpu.py) knows a machine only by what stands here.
"""
