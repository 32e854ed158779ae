"""One emulated TPU VM: its own root folder, address and processes; a closed world (ARCHITECTURE.md).

The cloud side knows a machine only by `machine.Machine` and `facts`. What runs in other processes is started by path
or by name: warden.py (keeps the script's session), shim.sh or shim.py (every command), vllm/ (the stand-in).
"""
