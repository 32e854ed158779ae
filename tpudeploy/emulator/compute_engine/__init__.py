"""Compute Engine: TPU instances and groups of them, operations, machine types and images; networks and regions.

The methods are rows of services/methods.py. Instances live on the same clock as queued resources, and meet the same
trouble.
"""
