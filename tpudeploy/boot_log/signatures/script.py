"""Failures that end our startup script, in its own words (templates/boot): secrets, the mirror, docker."""

from __future__ import annotations

from tpudeploy.boot_log.signatures.row import Signature

ROWS: tuple[Signature, ...] = (
    Signature(
        name="secret-denied",
        what="The VM's service account may not read a secret",
        pattern=r"The VM's service account \S+ may not read secret \S+",
        remedy=(
            "Grant the VM's service account roles/secretmanager.secretAccessor on the secret; `tpudeploy doctor` "
            "names both and prints the command."
        ),
        example=(
            "failed: The VM's service account vm@project.iam.gserviceaccount.com may not read secret hf-token: grant "
            "it roles/secretmanager.secretAccessor. Google says: Permission denied"
        ),
    ),
    Signature(
        name="secret-missing",
        what="A secret does not exist, or is empty",
        pattern=r"Secret \S+ (?:does not exist: create it|is empty: add a version)",
        remedy="Create the secret with a version for the value, or correct its name under secrets.",
        example="failed: Secret hf-token does not exist: create it, or correct its name in the profile. Google says: -",
    ),
    Signature(
        name="secret-unreachable",
        what="Secret Manager could not be read",
        pattern=r"Secret \S+ (?:could not be read in \d+ attempts|cannot be read \(HTTP \d+\))",
        remedy=(
            "HTTP 000 is no connection: the subnet needs Private Google Access or Cloud NAT. With another status, "
            "Google's words in the line say why; check that the Secret Manager API is enabled."
        ),
        example=(
            "failed: Secret hf-token could not be read in 6 attempts (last: HTTP 000; 000 is no connection: Private "
            "Google Access or NAT is missing)"
        ),
    ),
    Signature(
        name="mirror-unusable",
        what="The weights cannot be fetched from the mirror",
        pattern=(
            r"The mirror(?:'s| gs://)[^\n]*?(?:holds no config\.json|cannot be read|cannot be a file"
            r"|could not be fetched)"
        ),
        remedy=(
            "The line says what's wrong with it. The VM's service account needs roles/storage.objectViewer on the"
            " bucket. The folder must contain the whole checkpoint including config.json."
        ),
        example=(
            "failed: The mirror gs://bucket/weights/ holds no config.json: copy the model's files there, or correct "
            "model.mirror"
        ),
    ),
    Signature(
        name="docker-missing",
        what="The machine has no docker, and cannot install it",
        pattern=r"This machine has no docker, and apt-get could not install",
        remedy=(
            "Take a runtime version whose image brings docker, or add Cloud NAT, so the machine can install docker.io."
        ),
        example=(
            "failed: This machine has no docker, and apt-get could not install docker.io: it needs a way out (NAT) or "
            "an image with docker"
        ),
    ),
    Signature(
        name="worker-missing",
        what="A worker of the slice did not join the others",
        pattern=r"worker \d+ of \d+: it has not reported yet|worker \d+ \(\S+\) (?:did not|to) join Ray",
        remedy=(
            "The server starts when every worker of the slice has joined. `tpudeploy logs` shows how far each came. "
            "If this one wrote no log, its host is faulty: delete the slice and request another one "
            "(`tpudeploy apply -replace ADDRESS` does both). If it waits for "
            "worker 0, let the workers reach one another at every port (a firewall rule for the network itself)."
        ),
        example="failed: After 2700 s, worker 2 (10.164.0.5), worker 3 (10.164.0.6) did not join Ray",
    ),
    Signature(
        name="head-unreachable",
        what="A worker of the slice did not reach worker 0",
        pattern=r"Ray of worker 0 did not listen at|The server of worker 0 was not healthy within",
        remedy=(
            "Read the log of worker 0 first: it starts the server. If it runs, let the workers reach one "
            "another at every port (a firewall rule for the network itself). If its machine is gone for good, "
            "`tpudeploy apply -replace ADDRESS` requests another slice."
        ),
        example=(
            "failed: Ray of worker 0 did not listen at 10.164.0.3:24837 within 2700 s. Either worker 0 failed, or a "
            "firewall keeps the workers apart"
        ),
    ),
)
