"""List an example for each of our codes: commands that cause it, and the command that helps. Tests run them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from tpudeploy.config import codes


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An example of a code. `layer` is YAML that causes the code when merged over a valid profile with `-f FILE`.

    Otherwise `session` are shell commands, one a line, and `scenario` is YAML for the emulator that they run on.
    `command` is what to run then. `shows` is what is printed where the code itself is not. `unrun` is the reason why
    no test can run the example.
    """

    layer: str = ""
    session: str = ""
    scenario: str = ""
    command: str = "tpudeploy validate prod.yaml"
    shows: str = ""
    unrun: str = ""

    @property
    def text(self) -> str:
        """Return what `explain` shows. It is safe to paste: it writes to a new folder, and applies on the emulator."""
        script = self._script
        is_harmless = not any(word in script for word in (">", "mkdir", "touch", _APPLY))
        return script if is_harmless else f"{_NEW_FOLDER}\n{script}"

    @property
    def _script(self) -> str:
        if self.layer:
            return f"{_file('layer.yaml', self.layer)}\ntpudeploy validate prod.yaml -f layer.yaml"
        if not self.scenario and _APPLY not in self.session:
            return self.session
        emulator = f"tpudeploy emulator run {'-scenario scenario.yaml ' if self.scenario else ''}--"
        if self.unrun:  # a person types it into that shell
            run = f"{emulator} bash\n{self.session}"
        elif "\n" in self.session:
            run = f"{emulator} sh -c '\n{self.session}\n'"
        else:
            run = f"{emulator} {self.session}"
        return f"{_file('scenario.yaml', self.scenario)}\n{run}" if self.scenario else run


def _file(name: str, text: str) -> str:
    """Return the command that writes a file. A here-document would not work, because `explain` indents it."""
    lines = [shlex.quote(line) for line in text.splitlines()]
    writes = "echo" if len(lines) == 1 and "\\" not in text else r"printf '%s\n'"
    return f"{writes} {' '.join(lines)} > {name}"


def _layer(text: str, command: str = "tpudeploy validate prod.yaml") -> Example:
    return Example(layer=text, command=command)


def _session(text: str, command: str = "tpudeploy validate prod.yaml", scenario: str = "", shows: str = "") -> Example:
    return Example(session=text, command=command, scenario=scenario, shows=shows)


def _unrun(text: str, command: str, reason: str) -> Example:
    return Example(session=text, command=command, unrun=reason)


_SIX = 'for n in 1 2 3 4 5 6; do echo "extends: $((n + 1)).yaml" > $n.yaml; done; cp prod.yaml 7.yaml'
_APPLY = "tpudeploy apply prod.yaml -auto-approve"
_PLAN = "tpudeploy plan prod.yaml"
_SAVE = "tpudeploy plan prod.yaml -out my.plan"
_UPGRADE = "tpudeploy version"
_STATES = "mkdir -p .tpudeploy/state"
_SWEEP = "tpudeploy size prod.yaml -sweep"
_SIZE = "tpudeploy size prod.yaml"
_DOCTOR = "tpudeploy doctor prod.yaml"
_STATUS = "tpudeploy status prod.yaml"
_NEW_FOLDER = 'cd "$(mktemp -d)" && cp "$OLDPWD/prod.yaml" .'
_LOGS = "tpudeploy logs prod.yaml"
_SHORTER = f"{_APPLY} -set serving.max_model_len=8192"
_BLUE_GREEN = f"{_SHORTER} -set lifecycle.update=blue-green"
_CRASH = '"error: unrecognized arguments: --no-such-flag"'
_CATCH = "python -c 'from tpudeploy import errors; print(errors.{family}.__subclasses__())'"
_FAMILY = "a base class: nothing raises it itself"

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
    codes.BOOT_SCRIPT: _session(
        "printf 'echo hello\\r\\n' > agent.sh\ntpudeploy validate prod.yaml -set 'boot.after=[agent.sh]'",
        "printf 'echo hello\\n' > agent.sh",
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
    codes.NOT_SUPPORTED: _layer("tpu: {type: v2-8}", "tpudeploy zones"),
    codes.UNKNOWN_TYPE: _layer("tpu: {type: v6e-3}", "tpudeploy zones"),
    codes.PARALLELISM: _layer("serving: {tensor_parallel_size: 3}", _SWEEP),
    codes.RUNTIME_MISMATCH: _layer("tpu: {runtime_version: v2-alpha-tpuv5-lite}"),
    codes.IDLE_CHIPS: _layer(
        "tpu: {type: v6e-4}\nserving: {tensor_parallel_size: 1}", "tpudeploy size prod.yaml -sweep"
    ),
    codes.TOPOLOGY: _layer("tpu: {type: null, generation: v6e, topology: 3x3}"),
    codes.EXPERIMENTAL_GENERATION: _layer(
        "tpu: {type: v5p-8}\nplacement: {zones: [us-east5-a]}", "tpudeploy size prod.yaml"
    ),
    codes.AMBIGUOUS_TYPE: _layer("tpu: {type: tpu7x-8}"),
    codes.UNTESTED_OVER_HOSTS: _layer("tpu: {type: v6e-16}", "tpudeploy size prod.yaml"),
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
    codes.NEVER_IDLE: _layer("serving: {args: {disable_log_stats: true}}\nlifecycle: {idle: 30m}"),
    codes.NOTIFY_TARGET: _layer("notify: ['http://hooks.example/tpu']"),
    codes.FLAG_NOT_ON_TPU: _layer("serving: {args: {enable_sleep_mode: true}}"),
    codes.FLEX_WITHOUT_END: _layer("placement: {provisioning: [flex-start]}"),
    codes.BUDGET_WITHOUT_END: _layer("budget: {day: 20}"),
    codes.RUN_TOO_LONG: _layer("placement: {max_run_duration: 9d}"),
    codes.REPLICA_BOUNDS: _layer("replicas: 5\nscale: {max: 4}"),
    codes.RESERVED_ALONE: _layer("placement: {provisioning: [reserved]}"),
    codes.RESERVATION_UNUSED: _layer(
        "placement: {reservation: projects/my-project/locations/us-east5-b/reservations/my-reservation}"
    ),
    codes.REPEATED: _layer("placement: {provisioning: [spot, spot]}"),
    codes.ZONE_UNKNOWN: _layer("placement: {zones: [us-west4-z]}", "tpudeploy zones prod.yaml"),
    codes.BACKEND_UNSERVED: _layer(
        "tpu: {type: v5litepod-4}\nplacement: {backend: gce-instance, zones: [us-central1-a]}"
    ),
    codes.RUN_TOO_SHORT: _layer("placement: {backend: gce-instance, provisioning: [flex-start], max_run_duration: 5m}"),
    codes.WAIT_OUT_OF_RANGE: _layer(
        "placement: {backend: gce-instance, provisioning: [flex-start], max_run_duration: 12h, valid_until: 6h}"
    ),
    codes.LABEL: _layer("placement: {labels: {Team: search}}"),
    codes.VOLUME: _layer("serving: {volumes: {data: /data}}"),
    codes.UNKNOWN_PATH: _layer("lifecycle: {ignore_changes: [serving.imag]}"),
    codes.VARIABLE_MISSPELT: _layer("serving: {env: {SKIP_JAX_PRECOMPIL: '1'}}"),
    codes.VARIABLE_REMOVED: _layer("serving: {env: {VLLM_USE_V1: '1'}}"),
    codes.VARIABLE_VALUE: _layer("serving: {env: {NEW_MODEL_DESIGN: 'yes'}}"),
    codes.ROUTER_KEY: _layer("router: {kind: smg, machine: e2-small}"),
    codes.NOT_A_TPU_IMAGE: _layer("serving: {image: vllm/vllm-openai:v0.32.0}"),
    codes.FLOATING_IMAGE: _layer("serving: {image: vllm/vllm-tpu:latest}", "tpudeploy plan prod.yaml -pin"),
    codes.RESERVED_PORT: _layer("serving: {port: 22}"),
    codes.NOT_A_MODEL: _layer("model: {id: gpt-4o}"),
    codes.RELEASE_WITHOUT_V: _layer("serving: {image: vllm/vllm-tpu:0.32.0}"),
    # Checks of a deployment.
    "TPU1341": _layer("serving: {image: vllm/vllm-tpu:v0.26.0}", "tpudeploy version"),
    "TPU2128": _layer(
        "serving: {image: vllm/vllm-tpu:v0.28.0, args: {kv_transfer_config: {kv_connector: TPUConnectorHMA, "
        "kv_role: kv_both, kv_connector_module_path: tpu_inference.distributed.tpu_connector_hma}}}"
    ),
    "TPU2129": _layer("serving: {image: vllm/vllm-torchtpu:v0.29.0, padding_gap: 512}"),
    "TPU2001": _layer(
        "placement: {network: {external_ip: true}}", "gcloud secrets create vllm-key --data-file=key.txt"
    ),
    "TPU2010": _layer("secrets: {VLLM_API_KEY: vllm-key}", _PLAN),
    "TPU2003": _layer("placement: {max_price_per_chip_hour: 0.01}", "tpudeploy zones prod.yaml"),
    "TPU2004": _layer("lifecycle: {on_run_end: renew}"),
    "TPU2006": _layer("name: m"),
    "TPU2005": _layer("health: {timeout: 1s}"),
    "TPU2007": _layer("placement: {max_run_duration: 2h}\nlifecycle: {on_run_end: renew}"),
    "TPU2008": _layer("placement: {max_run_duration: 1h}\nreplicas: 2\nlifecycle: {drain_timeout: 55m}"),
    "TPU2009": _layer("scale: {max: 4, cooldown: 2m}"),
    "TPU2101": _layer("model: {id: google/gemma-4-31B-it}", _SWEEP),
    "TPU2102": _layer("serving: {hbm_utilization: 0.2871}", _SWEEP),
    "TPU2103": _layer(
        "model: {id: google/gemma-4-E4B-it}\nserving: {hbm_utilization: 0.55, max_model_len: 65536}", _SWEEP
    ),
    "TPU2104": _layer("serving: {max_model_len: 262144}"),
    "TPU2105": _layer("tpu: {type: v5litepod-1}\nserving: {hbm_utilization: 0.95}", _SIZE),
    "TPU2106": _layer("model: {id: google/gemma-3-1b-it}\ntpu: {type: v6e-8}", _SWEEP),
    "TPU2107": _layer("tpu: {type: v6e-4}", _SWEEP),
    "TPU2108": _layer("serving: {kv_cache_dtype: fp8}", _SIZE),
    "TPU2109": _layer("serving: {max_num_batched_tokens: 2048, args: {disable_chunked_mm_input: true}}"),
    "TPU2110": _layer("serving: {max_num_batched_tokens: 128, max_num_seqs: 256}"),
    "TPU2111": _layer("serving: {block_size: 16}", _SIZE),
    "TPU2132": _layer("model: {id: meta-llama/Llama-2-7b-hf}\nserving: {max_model_len: 4096}", _SIZE),
    "TPU2112": _layer("serving: {padding_gap: 512}", _SIZE),
    "TPU2113": _layer("serving: {args: {kv_sharing_fast_prefill: true}}"),
    "TPU2114": _layer("serving: {args: {quantization: fp8}}"),
    "TPU2115": _layer("serving: {volumes: {}}"),
    "TPU2116": _layer("serving: {env: {HF_HOME: /dev/shm}}"),
    "TPU2117": _layer("tpu: {boot_disk_size: 40GiB}", _SIZE),
    "TPU2118": _layer("model: {id: google/gemma-4-12B-it}\ntpu: {type: v6e-4}", _SIZE),
    "TPU2119": _layer("placement: {network: {external_ip: false}}", _DOCTOR),
    "TPU2120": _layer("serving: {args: {enable_lora: true}}", _SIZE),
    "TPU2122": _layer("model: {id: Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4}"),
    "TPU2123": _layer("model: {id: google/gemma-4-e2b-it}"),
    "TPU2124": _layer(
        "serving: {args: {kv_transfer_config: {kv_connector: TPUConnector, kv_role: kv_producer, "
        "kv_connector_module_path: tpu_inference.distributed.tpu_connector}}}"
    ),
    "TPU2126": _layer("model: {id: openai/whisper-large-v3}"),
    "TPU2131": _layer("model: {id: deepseek-ai/DeepSeek-R1}"),
    "TPU2127": _layer(
        "model: {id: BAAI/bge-reranker-v2-m3}\nserving: {max_model_len: 4096}\nreplicas: 2\nrouter: {kind: smg}"
    ),
    "TPU2125": _layer("serving: {args: {tool_call_parser: hermes}}"),
    "TPU2130": _layer("model: {id: acme/Something-405B}", _SWEEP),
    "TPU2121": _layer("serving: {args: {enable_expert_parallel: true}}"),
    # Checks of a plan.
    "TPU3010": _session(f"{_APPLY}\nrm -r .tpudeploy\n{_PLAN}", "tpudeploy apply prod.yaml -adopt"),
    "TPU3011": _session(
        _PLAN, "tpudeploy gc prod.yaml", scenario="trouble: [{fault: unavailable, method: queuedResources.list}]"
    ),
    "TPU3020": _session(f"{_PLAN} -target gemma", _PLAN),
    "TPU3021": _session(
        f"{_APPLY} -set placement.zones=[us-east5-b]\n{_PLAN} -set placement.zones=[us-east5-b] -replace gemma",
        "tpudeploy zones prod.yaml",
        scenario="quota: [{class: preemptible, region: us-east5, limit: 1}]",
    ),
    "TPU3023": _layer("lifecycle: {end: 2020-12-24T18:00Z}"),
    "TPU3024": _session(
        f"{_PLAN} -set 'lifecycle.hours=Mon-Fri 08:00-19:00 UTC'", "tpudeploy render prod.yaml watch-systemd"
    ),
    "TPU3022": _session(f"{_APPLY}\n{_PLAN} -set name=search", "tpudeploy state mv gemma search"),
    "TPU3030": _session(
        _PLAN, "tpudeploy plan prod.yaml -pin", scenario="trouble: [{fault: unavailable, method: registry.*}]"
    ),
    # Errors, by what happens next.
    "TPU0002": _session("tpudeploy apply prod.yaml -watch -wait granted", "tpudeploy apply --help"),
    "TPU0003": _session("tpudeploy version > /dev/full", "df -h ."),
    "TPU0001": _unrun(_CATCH.format(family="TpudeployError"), "tpudeploy explain", _FAMILY),
    "TPU3000": _unrun(_CATCH.format(family="PlanError"), "tpudeploy explain", _FAMILY),
    "TPU0070": _unrun(_PLAN, "tpudeploy version", "it takes a bug"),
    "TPU0130": _unrun(f"timeout -s INT 60 {_APPLY}", _STATUS, "it takes a signal at the right moment"),
    "TPU1026": _session("tpudeploy init --from-command 'docker run --rm alpine'", "tpudeploy init --help"),
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
    "TPU3007": _session(f"{_APPLY} -max-cost 1 -set lifecycle.end=24h", "tpudeploy cost"),
    "TPU4000": _session("tpudeploy state show demo", "tpudeploy state list"),
    "TPU4001": _unrun(f"{_APPLY} &\n{_APPLY}", f"{_APPLY} -lock-timeout 15m", "it takes two runs at one time"),
    "TPU4002": _unrun(
        f"{_APPLY} &\ntpudeploy force-unlock ID -force\n{_APPLY}", _APPLY, "it takes two runs at one time"
    ),
    "TPU4003": _session(
        f"{_STATES}\necho '{{' > .tpudeploy/state/gemma.json\n{_STATUS}", "tpudeploy state history gemma"
    ),
    "TPU4004": _session(
        f'{_STATES}\necho \'{{"format": "tpudeploy.state/9"}}\' > .tpudeploy/state/gemma.json\n{_STATUS}', _UPGRADE
    ),
    "TPU4006": _session(
        f"{_APPLY}\ntpudeploy state migrate gemma moved\n{_STATUS}", "tpudeploy status prod.yaml --backend moved"
    ),
    "TPU4005": _session(
        "mkdir -p .tpudeploy/runs\necho '{' > .tpudeploy/runs/broken.json\ntpudeploy bench list", "tpudeploy bench list"
    ),
    "TPU5000": _session("tpudeploy gc prod.yaml", _DOCTOR, scenario="trouble: [{fault: unreachable}]"),
    "TPU5001": _session("tpudeploy gc prod.yaml", _DOCTOR, scenario="trouble: [{fault: unavailable}]"),
    "TPU5002": _session(
        f"{_APPLY} -timeout 10m",
        "tpudeploy zones prod.yaml",
        scenario="trouble: [{fault: stockout}]",
        shows="Refused in us-east5-a",
    ),
    "TPU5003": _session(_APPLY, _DOCTOR, scenario="trouble: [{fault: api-off}]"),
    "TPU5004": _session(
        f"{_APPLY} -timeout 10m", "tpudeploy zones prod.yaml", scenario="trouble: [{fault: wait-for-ever}]"
    ),
    "TPU6000": _session(_APPLY, _LOGS, scenario=f"boot: {{crash: {_CRASH}}}"),
    "TPU6001": _session("tpudeploy query prod.yaml Hello", _STATUS),
    "TPU6002": _session(f"{_APPLY} -timeout 15m", _APPLY, scenario="timings: {boot: 3600}"),
    "TPU6003": _session(_APPLY, "tpudeploy verify prod.yaml", scenario='boot: {instead: {max-model-len: "4096"}}'),
    "TPU6004": _session(
        f"{_APPLY}\n{_BLUE_GREEN}", _LOGS, scenario=f"trouble: [{{fault: boot, attempt: 2-, crash: {_CRASH}}}]"
    ),
    "TPU6005": _session(
        f'{_APPLY}\n{_APPLY} -set "serving.setup=[exit 1]"', _PLAN, scenario="boot: {setup_fails: true}"
    ),
    "TPU6006": Example(
        session=f"{_APPLY}\ntpudeploy apply prod.yaml -set serving.max_model_len=8192",
        scenario="boot: {hears_changes: false}",
        command=_APPLY,
        unrun="it takes a person who approves the plan and declines the reset",
    ),
    "TPU6007": _session(f"{_APPLY}\n{_BLUE_GREEN} -timeout 190s", _APPLY),
    "TPU6008": _unrun(f"{_APPLY}\n{_STATUS}", _LOGS, "it takes a server that stalls after it has served"),
    "TPU6010": _session(
        'printf "#!/bin/sh\\nexit 3\\n" > vllm; chmod +x vllm\n'
        f"{_APPLY}\n"
        "PATH=$PWD:$PATH tpudeploy bench prod.yaml -driver vllm -concurrency 1 -context 128 -output 128",
        "vllm bench serve --help",
    ),
    "TPU7000": _session("GITHUB_TOKEN=expired tpudeploy ci plan prod.yaml", "gh auth status"),
    "TPU7001": _session("GITHUB_API_URL=http://127.0.0.1:9 tpudeploy ci plan prod.yaml", "tpudeploy ci plan prod.yaml"),
    "TPU7002": _unrun(
        "tpudeploy emulator start &\ntpudeploy emulator start",
        "tpudeploy emulator run -- COMMAND",
        "it takes two processes that do not end",
    ),
    "TPU7003": _session(
        "echo 'trouble: [{fault: stokout}]' > scenario.yaml\n"
        "tpudeploy emulator run -scenario scenario.yaml -- true > /dev/null",
        "tpudeploy emulator --help",
    ),
}
