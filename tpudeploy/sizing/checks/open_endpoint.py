"""An endpoint that answers whoever reaches it: an external address, and no API key."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation, Severity

CODE = "TPU2001"
EXPLANATION = Explanation(
    "An endpoint without an API key",
    "The machine gets an external address, and vLLM asks for no key: everybody whom the firewall lets through can "
    "use the model. The default network of Google Cloud lets nobody in, and one firewall rule that opens the port "
    "changes that. Add a key, a secret in Secret Manager that vLLM, the probe and `tpudeploy query` then use; or "
    "set placement.network.external_ip: false.",
    "secrets: {VLLM_API_KEY: vllm-key}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    if not deployment.network.external_ip or any(s.variable == "VLLM_API_KEY" for s in deployment.container.secrets):
        return
    yield Diagnostic(
        code=CODE,
        severity=Severity.WARNING,
        message=f"{deployment.name} has an external address and asks for no API key.",
        path="secrets.VLLM_API_KEY",
        hint="Add secrets.VLLM_API_KEY, or set placement.network.external_ip: false.",
    )
