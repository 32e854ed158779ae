"""Who keeps a deployment while its people sleep: a systemd unit, a Cloud Run job, or a scheduled workflow.

The unit runs `apply -watch`. The other two run `apply` every few minutes, which does the same for a deployment that
ends, starts in its hours, or is preempted, and costs less: they are billed for the seconds of each run.

Prices are unverified: list prices in us-central1 by general knowledge, to be compared with
cloud.google.com/compute/all-pricing, cloud.google.com/run/pricing and docs.github.com/billing. None of the three was
run on a real project.
"""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterable

from tpudeploy.domain.errors import ConfigError
from tpudeploy.operations.render import RenderedDeployment
from tpudeploy.version import VERSION

_WIDTH = 116
_ACCOUNT = "tpudeploy-watch"
_ROLES = "roles/tpu.admin and roles/compute.viewer, roles/iam.serviceAccountUser on the machines' account, and\
 roles/storage.objectUser on the bucket of the states"


def systemd_unit(subject: RenderedDeployment) -> str:
    """Return a unit that keeps the deployment from one computer that is always on."""
    name, profile, place = _facts(subject, needs_bucket=False)
    is_beside = place == str(subject.workspace.adapters.folder.resolve() / ".tpudeploy")
    contents = "the profile and its .tpudeploy" if is_beside else "the profile"
    environment = "" if is_beside else f"\nEnvironment={_quoted(f'TPUDEPLOY_BACKEND={place}')}"
    writable = "/srv/tpudeploy" if is_beside or place.startswith("gs://") else f"/srv/tpudeploy {_quoted(place)}"
    command = shlex.join(["/opt/tpudeploy/bin/tpudeploy", "apply", "-auto-approve", "-watch", profile])
    head = _comment(
        f"/etc/systemd/system/tpudeploy-{name}.service: keeps {name} as its profile says.",
        "An e2-micro that runs it costs about $6 a month (unverified), or nothing within Google's free tier.",
        f"It needs a user `tpudeploy`, {contents} in /srv/tpudeploy, and an account with {_ROLES}.",
        commands=(f"sudo systemctl enable --now tpudeploy-{name}; journalctl -fu tpudeploy-{name}",),
    )
    return f"""{head}
[Unit]
Description=tpudeploy keeps {name}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
User=tpudeploy
WorkingDirectory=/srv/tpudeploy{environment}
ExecStart={command.replace("%", "%%")}
# It exits with 0 once the deployment has ended for good.
Restart=on-failure
RestartSec=60
KillSignal=SIGINT
TimeoutStopSec=30
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
ReadWritePaths={writable}

[Install]
WantedBy=multi-user.target
"""


def cloud_run_job(subject: RenderedDeployment) -> str:
    """Return a job of Cloud Run that a schedule starts, with the commands that create both."""
    name, profile, place = _facts(subject, needs_bucket=True)
    project, bucket = subject.deployment.project or "PROJECT", place.removeprefix("gs://").partition("/")[0]
    account, job = f"{_ACCOUNT}@{project}.iam.gserviceaccount.com", f"tpudeploy-{name}"
    uri = f"https://run.googleapis.com/v2/projects/{project}/locations/us-central1/jobs/{job}:run"
    head = _comment(
        f"A job of Cloud Run that keeps {name} as its profile says. It mounts the bucket, which has the profile and "
        "its tpudeploy.lock.json in deploy/. Build IMAGE from the Dockerfile of tpudeploy.",
        "About 30 s of 1 vCPU and 512 MiB every ten minutes: 130,000 vCPU-seconds a month, within the free tier of "
        "Cloud Run, else about $2.50. The schedule is $0.10 a month. These prices are unverified.",
        f"{account} has {_ROLES}; {_ACCOUNT}-start has roles/run.invoker on the job alone.",
        commands=(
            f"gcloud run jobs replace FILE --project={project} --region=us-central1",
            f"gcloud scheduler jobs create http {job} --project={project} --location=us-central1 \\",
            f"  --schedule='*/10 * * * *' --http-method=POST --uri={uri} \\",
            f"  --oauth-service-account-email={_ACCOUNT}-start@{project}.iam.gserviceaccount.com",
        ),
    )
    arguments = ["apply", "-auto-approve", "-lock-timeout=5m", profile.rpartition("/")[2]]
    return f"""{head}
apiVersion: run.googleapis.com/v1
kind: Job
metadata:
  name: {json.dumps(job)}
spec:
  template:
    spec:
      taskCount: 1
      template:
        spec:
          maxRetries: 0 # the next run continues
          timeoutSeconds: 3600
          serviceAccountName: {json.dumps(account)}
          containers:
            - image: IMAGE
              workingDir: /profiles/deploy
              args: {json.dumps(arguments)}
              env:
                - name: TPUDEPLOY_BACKEND
                  value: {json.dumps(place)}
              resources:
                limits: {{cpu: "1", memory: 512Mi}}
              volumeMounts:
                - {{name: profiles, mountPath: /profiles}}
          volumes:
            - name: profiles
              csi:
                driver: gcsfuse.run.googleapis.com
                volumeAttributes: {{bucketName: {json.dumps(bucket)}}}
"""


def github_workflow(subject: RenderedDeployment) -> str:
    """Return a scheduled workflow of GitHub that applies the profile of the default branch."""
    name, profile, place = _facts(subject, needs_bucket=True)
    head = _comment(
        f".github/workflows/tpudeploy-{name}.yml: keeps {name} as the profile on the default branch says. Anyone who "
        "can merge there can spend money here.",
        "A private repository pays for about 2,900 minutes a month, 2,000 of them free (unverified); a public one pays "
        "nothing. GitHub may start a schedule late, or leave one out.",
        f"The account has {_ROLES}, and is bound to this repository's default branch alone.",
    )
    command = shlex.join(["tpudeploy", "apply", "-auto-approve", "-lock-timeout=5m", profile])
    return f"""{head}
name: {json.dumps(f"tpudeploy {name}")}

on:
  schedule:
    - cron: "7,22,37,52 * * * *"
  workflow_dispatch:

permissions:
  contents: read

concurrency:
  group: {json.dumps(f"tpudeploy-{name}")}
  cancel-in-progress: false

jobs:
  apply:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    permissions:
      contents: read
      id-token: write
    env:
      TPUDEPLOY_BACKEND: {json.dumps(place)}
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with: {{persist-credentials: false}}
      - uses: actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0
        with: {{python-version: "3.13"}}
      - uses: google-github-actions/auth@7c6bc770dae815cd3e89ee6cdf493a5fab2cc093 # v3.0.0
        with:
          workload_identity_provider: ${{{{ vars.TPUDEPLOY_IDENTITY_PROVIDER }}}}
          service_account: ${{{{ vars.TPUDEPLOY_APPLY_ACCOUNT }}}}
      - run: pip install 'tpudeploy[gcs]=={VERSION}'
      - run: {json.dumps(command)}
"""


def _facts(subject: RenderedDeployment, *, needs_bucket: bool) -> tuple[str, str, str]:
    """Return the name of the deployment, its file, and where the states are. Raise `errors.ConfigError`."""
    deployment, place = subject.deployment, subject.workspace.adapters.place
    if needs_bucket and not place.startswith("gs://"):
        raise ConfigError(
            f"The state of {deployment.name} is in a folder of this computer, which no job elsewhere can read.",
            hint=f"Move it: `tpudeploy state migrate {deployment.name} gs://BUCKET`, then render with "
            "--backend gs://BUCKET.",
        )
    at = deployment.origins.get("name")
    file = f"{deployment.name}.yaml" if at is None else str(at.file)
    return deployment.name, file.removeprefix(f"{subject.workspace.adapters.folder.resolve()}/"), place


def _quoted(text: str) -> str:
    """Return one word of a unit file, in which a percent sign is a specifier."""
    return json.dumps(text, ensure_ascii=False).replace("%", "%%")


def _comment(*sentences: str, commands: Iterable[str] = ()) -> str:
    lines = [line for sentence in sentences for line in textwrap.wrap(sentence, _WIDTH, break_on_hyphens=False)]
    return "\n".join(f"# {line}" for line in [*lines, *commands])
