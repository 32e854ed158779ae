"""The stand-in for vLLM: a process of its own that answers as vLLM 0.32 answers. No model is in it.

Figures come from measured boots or from the scenario, never from the product's arithmetic.
"""
