"""Who may do what: credentials, APIs, roles, the machine's service account, secrets."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.availability.doctor.case import Case, fail, listed, ok, unknown, warn
from tpudeploy.availability.doctor.doors import has_tunnel
from tpudeploy.catalog.access import COMPUTE, IAP, PERMISSIONS, SECRETS, TELLING, TELLING_PERMISSIONS, TPU
from tpudeploy.domain.deployment import SecretRef
from tpudeploy.domain.diagnosis import Finding
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.surroundings import Account, Secret

_API_KEY = "VLLM_API_KEY"
_EVERYBODY = {"allUsers", "allAuthenticatedUsers"}
_OPAQUE = ("group:", "domain:", "principalSet:", "projectOwner:", "projectEditor:", "projectViewer:")


def credentials(case: Case) -> Iterator[Finding]:
    who = case.around.access.identity
    if case.lacking is not None:
        yield fail("credentials", case.lacking.because, case.lacking.hint)
    elif isinstance(who, Unknown):
        known = unknown(case, "credentials", who)
        yield fail("credentials", known.message, known.hint) if who.needs_person else known
    else:
        yield ok("credentials", f"Signed in as {who}; the project is {case.deployment.project}.")


def apis(case: Case) -> Iterator[Finding]:
    states = case.around.access.apis
    if isinstance(states, Unknown):
        yield unknown(case, "apis", states)
        return
    needed = [TPU, COMPUTE, *([SECRETS] if case.deployment.container.secrets else [])]
    useful = [*([IAP] if has_tunnel(case.deployment) else []), *TELLING]
    off = [name for name in (*needed, *useful) if not states.get(name, False)]
    hint = f"Run: gcloud services enable {' '.join(off)} --project={case.deployment.project}"
    if any(name in needed for name in off):
        yield fail("apis", f"Not enabled: {', '.join(off)}.", hint)
    elif off:
        yield warn("apis", f"Not enabled: {', '.join(off)}; less can be told without.", hint)
    else:
        yield ok("apis", f"Enabled: {', '.join(name.partition('.')[0] for name in (*needed, *useful))}.")


def roles(case: Case) -> Iterator[Finding]:
    held = case.around.access.permissions
    if isinstance(held, Unknown):
        yield unknown(case, "roles", held)
        return
    lacking = [name for name in PERMISSIONS if name not in held]
    command = f"gcloud projects add-iam-policy-binding {case.deployment.project}"
    hint = f"Run: {command} --member={_member(case)} --role=roles/tpu.admin"
    message = f"You may not {listed(f'{PERMISSIONS[name]} ({name})' for name in lacking)}."
    if any(name not in TELLING_PERMISSIONS for name in lacking):
        yield fail("roles", message, hint)
    elif lacking:
        yield warn("roles", message, hint)
    else:
        yield ok("roles", "You may ask for slices, look at them, and give them back.")


def service_account(case: Case) -> Iterator[Finding]:
    found, named = case.around.access.account, case.deployment.service_account
    if isinstance(found, Unknown):
        yield unknown(case, "account", found)
    elif found is None:
        hint = f"Run: gcloud iam service-accounts create {named.partition('@')[0]}" if named else ""
        who = named or "The project's compute account"
        yield fail("account", f"{who} does not exist.", hint or "Name another in placement.service_account.")
    elif found.is_disabled:
        hint = f"Run: gcloud iam service-accounts enable {found.email}"
        yield fail("account", f"{found.email} is disabled.", hint)
    else:
        yield _acting(case, found)


def _acting(case: Case, found: Account) -> Finding:
    if isinstance(found.may_act, Unknown):
        return unknown(case, "account", found.may_act)
    if found.may_act:
        return ok("account", f"The machine runs as {found.email}.")
    command = f"gcloud iam service-accounts add-iam-policy-binding {found.email}"
    hint = f"Run: {command} --member={_member(case)} --role=roles/iam.serviceAccountUser"
    return fail("account", f"You may not let a machine run as {found.email}.", hint)


def secrets(case: Case) -> Iterator[Finding]:
    for reference in case.deployment.container.secrets:
        found = case.around.access.secrets[reference.variable]
        yield unknown(case, "secret", found) if isinstance(found, Unknown) else _secret(case, reference, found)


def _secret(case: Case, reference: SecretRef, found: Secret | None) -> Finding:
    what = f"{reference.variable}: the secret {reference.secret}"
    if found is None:
        hint = f"Run: printf %s VALUE | gcloud secrets create {reference.secret} --data-file=-"
        return fail("secret", f"{what} does not exist.", hint)
    if found.state != "ENABLED":
        hint = f"Run: printf %s VALUE | gcloud secrets versions add {reference.secret} --data-file=-"
        return fail("secret", f"{what} is {found.state or 'in no state'}.", hint)
    if reference.variable == _API_KEY and found.is_ours_to_read is False:
        hint = _grant(reference, _member(case))
        return fail("secret", f"{what} is not yours to read: apply, status and query send it.", hint)
    return _machine_s(case, reference, found, what)


def _machine_s(case: Case, reference: SecretRef, found: Secret, what: str) -> Finding:
    """Whether the machine may read it, as far as the policies of the secret and of its project tell."""
    account = case.around.access.account
    for missing in (account, found.readers):
        if isinstance(missing, Unknown):
            return unknown(case, "secret", missing)
    email = account.email if isinstance(account, Account) else ""
    readers: frozenset[str] = found.readers if isinstance(found.readers, frozenset) else frozenset()
    if f"serviceAccount:{email}" in readers or readers & _EVERYBODY:
        return ok("secret", f"{what} is there, and the machine may read it.")
    if any(member.startswith(_OPAQUE) for member in readers):
        why = Unknown(because=f"{what} is there; whether the machine is in a group that may read it cannot be seen.")
        return unknown(case, "secret", why)
    message = f"{what} is there, but nothing seen lets {email or 'the machine'} read it."
    return warn("secret", message, _grant(reference, f"serviceAccount:{email}" if email else "ACCOUNT"))


def _grant(reference: SecretRef, member: str) -> str:
    command = f"gcloud secrets add-iam-policy-binding {reference.secret}"
    return f"Run: {command} --member={member} --role=roles/secretmanager.secretAccessor"


def _member(case: Case) -> str:
    """Whom a role is to be given to, as policies write it."""
    who = case.around.access.identity
    if isinstance(who, Unknown) or "@" not in who:
        return "user:YOU"
    return f"serviceAccount:{who}" if who.endswith(".gserviceaccount.com") else f"user:{who}"
