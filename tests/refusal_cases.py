"""Faults of the emulator that have the name of the row of refusals for which they speak."""

from __future__ import annotations

SELF_NAMED = (
    "act-as",
    "billing-off",
    "external-ip-forbidden",
    "key-permission",
    "network-address",
    "network-missing",
    "organization-policy",
    "perimeter",
    "project-missing",
    "project-suspended",
    "quota-global",
    "quota-project",
    "reservation-required",
    "reservation-used",
    "scopes",
    "service-account-missing",
    "shared-network",
)
