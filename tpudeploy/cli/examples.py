"""EXAMPLES: for each code of ours, something that makes it come out, and the command that helps. Tests run them."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.config import codes
from tpudeploy.domain.frozen import frozen


@frozen
class Example:
    """`layer` is YAML that brings the code out where it is laid over a valid profile, as FILE of `-f FILE`.

    Otherwise `session` are shell commands, one a line; `trouble` is the fault of an emulator on which they bring it
    out. `command` is what to run then. `is_run` is False where only a person's timing, or a bug, brings it out.
    """

    layer: str = ""
    session: str = ""
    trouble: str = ""
    command: str = "tpudeploy validate prod.yaml"
    is_run: bool = True

    @property
    def text(self) -> str:
        """What `explain` shows."""
        lines = self.session or f"cat > layer.yaml <<END\n{self.layer}\nEND\ntpudeploy validate prod.yaml -f layer.yaml"
        if not self.trouble:
            return lines
        scenario = f"echo 'trouble: [{{fault: {self.trouble}}}]' > scenario.yaml"
        return "\n".join(
            [scenario, *(f"tpudeploy emulator run -scenario scenario.yaml -- {line}" for line in lines.splitlines())]
        )


def _layer(text: str, command: str = "tpudeploy validate prod.yaml") -> Example:
    return Example(layer=text, command=command)


def _session(text: str, command: str = "tpudeploy validate prod.yaml", trouble: str = "") -> Example:
    return Example(session=text, command=command, trouble=trouble)


def _unrun(text: str, command: str) -> Example:
    return Example(session=text, command=command, is_run=False)


_SIX = 'for n in 1 2 3 4 5 6; do echo "extends: $((n + 1)).yaml" > $n.yaml; done; cp prod.yaml 7.yaml'
_APPLY = "tpudeploy apply prod.yaml -auto-approve"
_PLAN = "tpudeploy plan prod.yaml"
_SAVE = "tpudeploy plan prod.yaml -out my.plan"
_UPGRADE = "pip install --upgrade tpudeploy"
_STATES = "mkdir -p .tpudeploy/state"
_HISTORY = "tpudeploy state history gemma"
_SWEEP = "tpudeploy size prod.yaml -sweep"
_DOCTOR = "tpudeploy doctor prod.yaml"
_STATUS = "tpudeploy status prod.yaml"

EXAMPLES: Mapping[str, Example] = {
    codes.INVALID: _session("tpudeploy plan prod.yaml -json -set tpu.type=v6e-3"),
    codes.NOT_FOUND: _session("tpudeploy validate produ.yaml", "tpudeploy init prod.yaml"),
    codes.UNREADABLE: _session("mkdir folder.yaml\ntpudeploy validate prod.yaml -f folder.yaml"),
    codes.TOO_LARGE: _session("head -c 2000000 /dev/zero | tr '\\0' '#' > long.yaml\ntpudeploy validate long.yaml"),
    codes.NOT_TEXT: _session(
        "printf 'name: caf\\351\\n' > latin1.yaml\ntpudeploy validate latin1.yaml",
        "iconv -f latin1 -t utf-8 latin1.yaml > prod.yaml",
    ),
    codes.CONTROL_CHARACTER: _layer('health: {prompt: "one\\0two"}'),
    codes.EMPTY: _session("touch empty.yaml\ntpudeploy validate empty.yaml", "tpudeploy init prod.yaml"),
    codes.SEVERAL_DOCUMENTS: _layer("name: one\n---\nname: two"),
    codes.NOT_A_MAPPING: _layer("- name: demo"),
    codes.SYNTAX: _layer("serving: {env: {GREETING: ${env:GREETING}}}"),
    codes.TAB: _layer("serving:\n\tport: 8000"),
    codes.TOO_DEEP: _layer(f"serving: {'{a: ' * 64}1{'}' * 64}"),
    codes.TOO_MANY_VALUES: _layer(
        "\n".join(
            ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
            + [f"{n}: &{n} [{', '.join([f'*{m}'] * 10)}]" for m, n in ("ab", "bc", "cd", "de", "ef")]
        )
    ),
    codes.DUPLICATE_KEY: _layer("name: one\nname: two"),
    codes.KEY_NOT_TEXT: _layer("placement: {labels: {[a]: b}}"),
    codes.TAG: _layer("name: !!binary demo"),
    codes.MERGE_KEY: _layer("<<: {name: demo}"),
    codes.NOT_FINITE: _layer("serving: {hbm_utilization: .nan}"),
    codes.CREDENTIAL: _layer(f"serving: {{env: {{GREETING: hf_{'a1B2' * 9}}}}}"),
    codes.EXTENDS_UNREADABLE: _layer("extends: nowhere.yaml"),
    codes.EXTENDS_CYCLE: _session("echo 'extends: loop.yaml' > loop.yaml\ntpudeploy validate loop.yaml"),
    codes.EXTENDS_TOO_DEEP: _session(f"{_SIX}\ntpudeploy validate 1.yaml"),
    codes.EXTENDS_FORM: _layer("extends: {file: base.yaml}"),
    codes.SET_FORM: _session(
        "tpudeploy validate prod.yaml -set serving.max_model_len",
        "tpudeploy validate prod.yaml -set serving.max_model_len=8192",
    ),
    codes.OUTSIDE_PROJECT: _session(
        "echo 'extends: /etc/base.yaml' > far.yaml\ntpudeploy validate far.yaml -untrusted",
        "tpudeploy validate far.yaml",
    ),
    codes.VARIABLE_NOT_ALLOWED: _session(
        "tpudeploy validate prod.yaml -untrusted -set 'placement.project=${env:HOME}'",
        "tpudeploy validate prod.yaml -untrusted -allow-env HOME",
    ),
    codes.SECRET_VARIABLE: _session(
        "tpudeploy validate prod.yaml -set 'placement.project=${env:MY_TOKEN}'",
        "tpudeploy validate prod.yaml -allow-env MY_TOKEN",
    ),
    codes.UNSET_VARIABLE: _layer('placement: {project: "${env:NO_SUCH_PROJECT}"}'),
    codes.INTERPOLATION_FORM: _layer('serving: {env: {GREETING: "${file:greeting.txt}"}}'),
    codes.INTERPOLATION_IN_KEY: _layer('serving: {env: {"${env:USER}": hello}}'),
    codes.UNKNOWN_KEY: _layer("tpu: {typ: v6e-4}"),
    codes.MISSING_KEY: _layer("name: null"),
    codes.WRONG_TYPE: _layer("serving: {max_model_len: many}"),
    codes.NOT_A_CHOICE: _layer("serving: {kv_cache_dtype: fp9}"),
    codes.OUT_OF_RANGE: _layer("serving: {hbm_utilization: 1.5}"),
    codes.WRONG_FORM: _layer("health: {timeout: soon}"),
    codes.NOT_SUPPORTED: _layer("tpu: {type: v6e-16}", "tpudeploy zones"),
    codes.UNKNOWN_TYPE: _layer("tpu: {type: v6e-3}", "tpudeploy zones"),
    codes.PARALLELISM: _layer("serving: {tensor_parallel_size: 3}", _SWEEP),
    codes.RUNTIME_MISMATCH: _layer("tpu: {runtime_version: v2-alpha-tpuv5-lite}"),
    codes.IDLE_CHIPS: _layer(
        "tpu: {type: v6e-4}\nserving: {tensor_parallel_size: 1}", "tpudeploy size prod.yaml -sweep"
    ),
    codes.UNKNOWN_FLAG: _layer("serving: {args: {sed: 1}}"),
    codes.FLAG_VALUE: _layer("serving: {args: {enable_prefix_caching: 3}}"),
    codes.FLAG_HAS_KEY: _layer("serving: {args: {max_num_seqs: 64}}"),
    codes.FLAG_TWICE: _layer("serving: {args: {seed: 1, max_model_len: 8192}}"),
    codes.VARIABLE_TWICE: _layer("serving: {padding_gap: 512, env: {VLLM_TPU_BUCKET_PADDING_GAP: 512}}"),
    codes.VARIABLE_NAME: _layer("serving: {env: {1ST: x}}"),
    codes.SECRET_IN_ENV: _layer("serving: {env: {VLLM_API_KEY: hello}}"),
    codes.SECRET_REFERENCE: _layer("secrets: {HF_TOKEN: my token}", "gcloud secrets list"),
    codes.FLAG_NOT_SERVED: _layer("serving: {args: {ssl_keyfile: /etc/key.pem}}"),
    codes.FLAGS_TOGETHER: _layer("serving: {args: {enable_auto_tool_choice: true, tool_call_parser: null}}"),
    codes.FLEX_WITHOUT_END: _layer("placement: {provisioning: [flex-start]}"),
    codes.RUN_TOO_LONG: _layer("placement: {max_run_duration: 9d}"),
    codes.RESERVED_ALONE: _layer("placement: {provisioning: [reserved]}"),
    codes.RESERVATION_UNUSED: _layer(
        "placement: {reservation: projects/my-project/locations/us-east5-b/reservations/my-reservation}"
    ),
    codes.REPEATED: _layer("placement: {provisioning: [spot, spot]}"),
    codes.ZONE_UNKNOWN: _layer("placement: {zones: [us-west4-z]}", "tpudeploy zones prod.yaml"),
    codes.LABEL: _layer("placement: {labels: {Team: search}}"),
    codes.VOLUME: _layer("serving: {volumes: {data: /data}}"),
    codes.UNKNOWN_PATH: _layer("lifecycle: {ignore_changes: [serving.imag]}"),
    codes.VARIABLE_MISSPELT: _layer("serving: {env: {SKIP_JAX_PRECOMPIL: '1'}}"),
    codes.OTHER_ENGINE_VERSION: _layer("serving: {image: vllm/vllm-tpu:v0.26.0}", "tpudeploy version"),
    codes.NOT_A_TPU_IMAGE: _layer("serving: {image: vllm/vllm-openai:v0.32.0}"),
    codes.FLOATING_IMAGE: _layer("serving: {image: vllm/vllm-tpu:latest}", "tpudeploy plan prod.yaml -pin"),
    # Errors, by what happens next.
    "TPU0002": _session("tpudeploy apply prod.yaml -watch -wait granted", "tpudeploy apply --help"),
    "TPU0003": _session("tpudeploy version > /dev/full", "df -h ."),
    "TPU0070": _unrun("tpudeploy plan prod.yaml", "tpudeploy version"),
    "TPU0130": _unrun("timeout -s INT 60 tpudeploy apply prod.yaml -auto-approve", _STATUS),
    "TPU1002": _session("echo '{' > tpudeploy.lock.json\ntpudeploy plan prod.yaml", "tpudeploy plan prod.yaml -pin"),
    "TPU1003": _session(
        'echo \'{"format": "tpudeploy.lock/9"}\' > tpudeploy.lock.json\ntpudeploy plan prod.yaml', _UPGRADE
    ),
    "TPU3001": _session(f"tpudeploy plan prod.yaml -out my.plan\n{_APPLY}\ntpudeploy apply my.plan", _PLAN),
    "TPU3002": _session(
        f"{_APPLY}\ntpudeploy destroy prod.yaml -auto-approve -set lifecycle.prevent_destroy=true",
        "tpudeploy plan prod.yaml -destroy",
    ),
    "TPU3003": _session("tpudeploy apply prod.yaml < /dev/null", _APPLY),
    "TPU3004": _session('echo \'{"format": "tpudeploy.plan/1"}\' > my.plan\ntpudeploy apply my.plan', _SAVE),
    "TPU3005": _session('echo \'{"format": "tpudeploy.plan/9"}\' > my.plan\ntpudeploy apply my.plan', _SAVE),
    "TPU3006": _session("tpudeploy ci apply prod.yaml", "tpudeploy ci plan prod.yaml"),
    "TPU4000": _session("tpudeploy state show demo", "tpudeploy state list"),
    "TPU4001": _unrun(f"{_APPLY} &\n{_APPLY}", f"{_APPLY} -lock-timeout 15m"),
    "TPU4002": _unrun(f"{_APPLY} &\ntpudeploy force-unlock ID -force\n{_APPLY}", _APPLY),
    "TPU4003": _session(
        f"{_STATES}\necho '{{' > .tpudeploy/state/gemma.json\n{_STATUS}", "tpudeploy state history gemma"
    ),
    "TPU4004": _session(
        f'{_STATES}\necho \'{{"format": "tpudeploy.state/9"}}\' > .tpudeploy/state/gemma.json\n{_STATUS}', _UPGRADE
    ),
    "TPU4005": _session(
        "mkdir -p .tpudeploy/runs\necho '{' > .tpudeploy/runs/broken.json\ntpudeploy bench list", "tpudeploy bench list"
    ),
    "TPU5003": _session(_APPLY, _DOCTOR, trouble="api-off"),
    "TPU5004": _session(f"{_APPLY} -timeout 10m", "tpudeploy zones prod.yaml", trouble="wait-for-ever"),
    "TPU7002": _unrun("tpudeploy emulator start &\ntpudeploy emulator start", "tpudeploy emulator run -- COMMAND"),
    "TPU7003": _session(
        "echo 'trouble: [{fault: stokout}]' > scenario.yaml\n"
        "tpudeploy emulator run -scenario scenario.yaml -- true > /dev/null",
        "tpudeploy emulator --help",
    ),
    "TPU6001": _session("tpudeploy query prod.yaml Hello", _STATUS),
}
