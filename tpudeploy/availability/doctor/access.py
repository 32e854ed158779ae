"""Access: credentials, APIs, roles, the machine's service account, secrets."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.availability.diagnosis import Finding
from tpudeploy.availability.doctor.case import DoctorInput, fail, ok, unknown, warn
from tpudeploy.availability.doctor.network import has_tunnel
from tpudeploy.catalog.access import (
    COMPUTE,
    IAP,
    SECRETS,
    TELLING,
    TELLING_PERMISSIONS,
    end_permissions,
    needed_permissions,
)
from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.deployment import API_KEY, SecretRef
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.project_facts import Secret
from tpudeploy.text import words

_EVERYBODY = {"allUsers", "allAuthenticatedUsers"}
_OPAQUE = ("group:", "domain:", "principalSet:", "projectOwner:", "projectEditor:", "projectViewer:")


def credentials(case: DoctorInput) -> Iterator[Finding]:
    identity = case.facts.access.identity
    if case.offline is not None:
        yield fail("credentials", case.offline.because, case.offline.hint)
    elif isinstance(identity, Unknown):
        finding = unknown(case, "credentials", identity)
        yield fail("credentials", finding.message, finding.hint) if identity.needs_person else finding
    else:
        yield ok("credentials", f"Signed in as {identity}; the project is {case.deployment.project}.")


def apis(case: DoctorInput) -> Iterator[Finding]:
    states = case.facts.access.apis
    if isinstance(states, Unknown):
        yield unknown(case, "apis", states)
        return
    services = dict.fromkeys((*(BACKENDS[backend].service for backend in case.deployment.backends), COMPUTE))
    needed = [*services, *([SECRETS] if case.deployment.container.secrets else [])]
    useful = [*([IAP] if has_tunnel(case.deployment) else []), *TELLING]
    off = [name for name in (*needed, *useful) if not states.get(name, False)]
    hint = f"Run: gcloud services enable {' '.join(off)} --project={case.deployment.project}"
    if any(name in needed for name in off):
        yield fail("apis", f"Not enabled: {', '.join(off)}.", hint)
    elif off:
        yield warn("apis", f"Not enabled: {', '.join(off)}; some checks are not possible without it.", hint)
    else:
        yield ok("apis", f"Enabled: {', '.join(name.partition('.')[0] for name in (*needed, *useful))}.")


def roles(case: DoctorInput) -> Iterator[Finding]:
    permissions = case.facts.access.permissions
    if isinstance(permissions, Unknown):
        yield unknown(case, "roles", permissions)
        return
    lacking: dict[str, str] = {}
    roles = []
    for backend, uses in needed_permissions(case.deployment).items():
        rest = {name: use for name, use in uses.items() if name not in permissions}
        lacking |= rest
        roles += [BACKENDS[backend].admin_role] if rest else []
    command = f"gcloud projects add-iam-policy-binding {case.deployment.project}"
    hint = "\n".join(f"Run: {command} --member={_member(case)} --role={role}" for role in roles)
    message = f"You may not {words.some(f'{use} ({name})' for name, use in lacking.items())}."
    if any(name not in TELLING_PERMISSIONS for name in lacking):
        yield fail("roles", message, hint)
    elif lacking:
        yield warn("roles", message, hint)
    else:
        yield ok("roles", "You may request slices, read them, and delete them.")


def service_account(case: DoctorInput) -> Iterator[Finding]:
    account, name = case.facts.access.account, case.deployment.service_account
    if isinstance(account, Unknown):
        yield unknown(case, "account", account)
    elif account is None:
        hint = f"Run: gcloud iam service-accounts create {name.partition('@')[0]}" if name else ""
        subject = name or "The project's compute account"
        yield fail("account", f"{subject} does not exist.", hint or "Name another in placement.service_account.")
    elif account.is_disabled:
        hint = f"Run: gcloud iam service-accounts enable {account.email}"
        yield fail("account", f"{account.email} is disabled.", hint)
    elif isinstance(account.may_be_attached, Unknown):
        yield unknown(case, "account", account.may_be_attached)
    elif account.may_be_attached:
        yield ok("account", f"The machine runs as {account.email}.")
    else:
        command = f"gcloud iam service-accounts add-iam-policy-binding {account.email}"
        hint = f"Run: {command} --member={_member(case)} --role=roles/iam.serviceAccountUser"
        yield fail("account", f"You may not let a machine run as {account.email}.", hint)


def own_end(case: DoctorInput) -> Iterator[Finding]:
    """Yield whether a machine may delete its own request at its end, as far as the project's policy shows it."""
    needed = end_permissions(case.deployment)
    account, members = case.facts.access.account, case.facts.access.permissions_of_members
    if not needed:
        return
    if isinstance(account, Unknown):
        yield unknown(case, "end", account)
        return
    if isinstance(members, Unknown):
        yield unknown(case, "end", members)
        return
    email = "" if account is None else account.email
    granted = frozenset(
        permission
        for member, permissions in members.items()
        if member == f"serviceAccount:{email}" or member in _EVERYBODY
        for permission in permissions
    )
    if needed <= granted:
        yield ok("end", f"The machine may delete itself at its end, as {email}.")
        return
    lacking = ", ".join(sorted(needed - granted))
    message = f"No policy that tpudeploy can see lets {email or 'the machine'} delete its own request ({lacking})."
    hint = "Only `apply` ends it then. `tpudeploy render PROFILE role` prints the role, and how to grant it."
    yield warn("end", message, hint)


def secrets(case: DoctorInput) -> Iterator[Finding]:
    for reference in case.deployment.container.secrets:
        secret = case.facts.access.secrets[reference.variable]
        yield unknown(case, "secret", secret) if isinstance(secret, Unknown) else _secret(case, reference, secret)


def _secret(case: DoctorInput, reference: SecretRef, secret: Secret | None) -> Finding:
    subject = f"{reference.variable}: the secret {reference.secret}"
    if secret is None:
        hint = f"Run: printf %s VALUE | gcloud secrets create {reference.secret} --data-file=-"
        return fail("secret", f"{subject} does not exist.", hint)
    if secret.state != "ENABLED":
        hint = f"Run: printf %s VALUE | gcloud secrets versions add {reference.secret} --data-file=-"
        return fail("secret", f"{subject} is {secret.state or 'in no state'}.", hint)
    if reference.variable == API_KEY and secret.is_ours_to_read is False:
        hint = _grant(reference, _member(case))
        return fail("secret", f"{subject} is not yours to read: apply, status and query send it.", hint)
    return _machine_access(case, reference, secret, subject)


def _machine_access(case: DoctorInput, reference: SecretRef, secret: Secret, subject: str) -> Finding:
    """Return whether the machine may read it, as far as the policies of the secret and of its project show it."""
    account, readers = case.facts.access.account, secret.readers
    if isinstance(account, Unknown):
        return unknown(case, "secret", account)
    if isinstance(readers, Unknown):
        return unknown(case, "secret", readers)
    email = "" if account is None else account.email
    if f"serviceAccount:{email}" in readers or readers & _EVERYBODY:
        return ok("secret", f"{subject} exists, and the machine may read it.")
    if any(member.startswith(_OPAQUE) for member in readers):
        because = (
            f"{subject} exists. A group may read it, and tpudeploy cannot see whether the machine is in that group."
        )
        return unknown(case, "secret", Unknown(because=because))
    message = f"{subject} exists, but no policy that tpudeploy can see lets {email or 'the machine'} read it."
    return warn("secret", message, _grant(reference, f"serviceAccount:{email}" if email else "ACCOUNT"))


def _grant(reference: SecretRef, member: str) -> str:
    command = f"gcloud secrets add-iam-policy-binding {reference.secret}"
    return f"Run: {command} --member={member} --role=roles/secretmanager.secretAccessor"


def _member(case: DoctorInput) -> str:
    """Return the caller as policies write members."""
    identity = case.facts.access.identity
    if isinstance(identity, Unknown) or "@" not in identity:
        return "user:YOU"
    return f"serviceAccount:{identity}" if identity.endswith(".gserviceaccount.com") else f"user:{identity}"
