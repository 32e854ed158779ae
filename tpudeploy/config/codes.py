"""Define every diagnostic of a profile: its code, what it means, and a fix. `tpudeploy explain` shows them."""

from __future__ import annotations

from tpudeploy.domain.diagnostics import CodePage

EXPLANATIONS: dict[str, CodePage] = {}


def _code(code: str, title: str, meaning: str, fix: str) -> str:
    """Return the code, and add its page to EXPLANATIONS."""
    EXPLANATIONS[code] = CodePage(title, meaning, fix)
    return code


_RESERVED = (
    "placement: {provisioning: [reserved], zones: [us-east5-b], "
    "reservation: projects/my-project/locations/us-east5-b/reservations/my-reservation}"
)

# Reading a source.
INVALID = _code(
    "TPU1000",
    "Invalid profile",
    "The profile has problems. Each is listed with its line and its own code.",
    "tpudeploy validate prod.yaml",
)
NOT_FOUND = _code(
    "TPU1001",
    "Profile not found",
    "The file on the command line does not exist.",
    "tpudeploy init --from gemma4-e2b-v6e1",
)
UNREADABLE = _code(
    "TPU1010",
    "Unreadable file",
    "The path is a folder or a device, or you don't have permission to read it.",
    "chmod u+r prod.yaml",
)
TOO_LARGE = _code(
    "TPU1011",
    "File too large",
    "The file is larger than 1 MiB. A profile is a page of text.",
    "tpudeploy validate prod.yaml",
)
NOT_TEXT = _code(
    "TPU1012",
    "File not in UTF-8",
    "The file has bytes outside UTF-8, usually because it was saved as Latin-1. A byte-order mark is allowed.",
    "iconv -f latin1 -t utf-8 prod.yaml",
)
CONTROL_CHARACTER = _code(
    "TPU1013",
    "Control character",
    "YAML doesn't allow control characters. Values can't contain NUL: arguments, variables and paths couldn't either.",
    'health: {prompt: "one line\\nand another"}',
)
EMPTY = _code("TPU1014", "Empty file", "The file has no key.", "version: 1")
SEVERAL_DOCUMENTS = _code(
    "TPU1015",
    "Several documents",
    "The file contains a second document after `---`. A file is one profile.",
    "one file a profile",
)
NOT_A_MAPPING = _code(
    "TPU1016",
    "Not a mapping",
    "The file is a list or a single value. A profile is a mapping of keys to values.",
    "version: 1\nname: demo",
)
SYNTAX = _code(
    "TPU1017",
    "Invalid YAML",
    "The text is not YAML. Often a value needs quotes: one with `: `, with ` #`, or with `${...}` inside { }.",
    'serving: {env: {GREETING: "${env:GREETING}"}}',
)
TAB = _code(
    "TPU1018", "Tab indentation", "A line starts with a tab. YAML is indented with spaces.", "serving:\n  port: 8000"
)
TOO_DEEP = _code(
    "TPU1019", "Values nested too deep", "The nesting is deeper than any key of the format needs.", "model:\n  id: X"
)
TOO_MANY_VALUES = _code(
    "TPU1020",
    "Too many values",
    "Each use of an alias counts toward the limit, because a few lines of nested aliases can expand to billions "
    "of values.",
    "extends: base.yaml",
)
DUPLICATE_KEY = _code(
    "TPU1021",
    "Duplicate key",
    "The mapping contains the key twice, and tpudeploy doesn't guess which value you mean.",
    "serving: {port: 8000}",
)
KEY_NOT_TEXT = _code(
    "TPU1022",
    "Non-text key",
    "The key is empty, a list or a mapping. Keys are words.",
    "serving: {port: 8000}",
)
TAG = _code(
    "TPU1023", "YAML tag", "Tags (`!!float`, `!python/...`) are not part of the format.", 'model: {revision: "2.0"}'
)
MERGE_KEY = _code(
    "TPU1024",
    "Merge key",
    "`<<` isn't part of YAML 1.2. To share values, use `extends` or an overlay file.",
    "extends: base.yaml",
)
NOT_FINITE = _code(
    "TPU1025",
    "Non-finite number",
    "NaN, infinities and numbers beyond a double have no meaning here.",
    "serving: {hbm_utilization: 0.9}",
)
FOREIGN = _code(
    "TPU1026",
    "Unreadable command or file of another tool",
    "`init --from-command` or `--from-file` can't read the source beyond this place, or it doesn't say what a profile "
    "needs, such as the model. No file was written.",
    "tpudeploy init --from-command 'vllm serve google/gemma-4-E2B-it'",
)
CREDENTIAL = _code(
    "TPU1030",
    "Text that looks like a credential",
    "A profile must not contain the value of a secret, not even in a comment: profiles are committed, shown in plans "
    "and sent to Google as metadata. Keep it in Secret Manager; the VM reads it at boot with its own identity.",
    "secrets: {HF_TOKEN: hf-token}",
)
# Layers: extends, overlays, --set, ${env:...}.
EXTENDS_UNREADABLE = _code(
    "TPU1101",
    "Unreadable file in `extends`",
    "The base file doesn't exist or can't be read. Its path is relative to the file with the `extends`.",
    "extends: base.yaml",
)
EXTENDS_CYCLE = _code(
    "TPU1102",
    "Circular `extends`",
    "The profile extends itself, directly or through another file.",
    "extends: base.yaml",
)
EXTENDS_TOO_DEEP = _code(
    "TPU1103",
    "`extends` nested too deep",
    "The chain has more than 5 levels or 50 files. Beyond that, people lose track of where a value is from.",
    "extends: base.yaml",
)
EXTENDS_FORM = _code(
    "TPU1104",
    "`extends` that is not a path",
    "The value is a mapping or a number. It must be a path or a list of paths.",
    "extends: [base.yaml, prod.yaml]",
)
SET_FORM = _code(
    "TPU1105",
    "Malformed --set",
    "The argument isn't a dotted path, an equals sign and a YAML value.",
    "--set serving.max_model_len=8192",
)
OUTSIDE_PROJECT = _code(
    "TPU1106",
    "File outside the project",
    "An untrusted profile can open only files of its own project: .yaml, .yml, .json and .sh files at or below the "
    "project's folder, links followed to their end, none of them hidden. `ci` and `mcp` trust no profile: keep a "
    "copy of the file inside the project. For other commands, profiles are untrusted with -untrusted or with "
    "`untrusted` in tpudeploy.toml: leave these out if you trust the author.",
    "extends: base.yaml",
)
BOOT_SCRIPT = _code(
    "TPU1107",
    "Own script that cannot run as written",
    "A script under `boot`, or a template in the project's folder `templates/boot`, has a syntax error or a "
    "problem shellcheck reports (`validate` runs shellcheck if it's installed). Or the template's name isn't one "
    "of the shipped templates.",
    "tpudeploy validate prod.yaml",
)
UNSET_VARIABLE = _code(
    "TPU1110",
    "Unset variable",
    "The variable in `${env:NAME}` isn't set and has no default.",
    'placement: {project: "${env:PROJECT:-my-project}"}',
)
INTERPOLATION_FORM = _code(
    "TPU1111",
    "Unknown interpolation",
    "The text contains `${` but isn't ${env:NAME} or ${env:NAME:-default}. For a literal dollar before a brace, "
    "write $$.",
    'serving: {setup: ["echo $${HOME}"]}',
)
INTERPOLATION_IN_KEY = _code(
    "TPU1112", "Interpolation in a key", "A key contains ${env:NAME}. Only values can.", "name: demo-${env:USER}"
)
VARIABLE_NOT_ALLOWED = _code(
    "TPU1113",
    "Environment variable that is not allowed",
    "An untrusted profile (in `ci`, in `mcp`, or with -untrusted) reads only environment variables the operator "
    "allows by name, with -allow-env or TPUDEPLOY_ALLOW_ENV (one name a line). The value of an allowed variable "
    "is part of the profile from then on: plans, comments and scripts show it.",
    "tpudeploy ci plan prod.yaml -allow-env REGION",
)
SECRET_VARIABLE = _code(
    "TPU1114",
    "Environment variable that looks like a secret",
    "Values from the environment end up in the startup script, state and plan. So tpudeploy doesn't read a "
    "variable with TOKEN, SECRET, PASSWORD or KEY in its name. Keep the value in Secret Manager. If it isn't a "
    "secret, allow the variable by name.",
    "tpudeploy plan prod.yaml -allow-env CACHE_KEY",
)
# One key at a time.
UNKNOWN_KEY = _code(
    "TPU1201",
    "Unknown key",
    "The format doesn't have this key at this place. It may be misspelled or belong to another section.",
    "tpu: {type: v6e-4}",
)
MISSING_KEY = _code(
    "TPU1202",
    "Missing key",
    "A required key is missing: version, name, model.id, tpu.type or serving.image.",
    "tpu: {type: v6e-4}",
)
WRONG_TYPE = _code(
    "TPU1203",
    "Wrong type",
    "The value's type isn't the key's. Text that looks like a number needs quotes: 1.10 would become 1.1.",
    'model: {revision: "1.10"}',
)
NOT_A_CHOICE = _code(
    "TPU1204",
    "Invalid choice",
    "The key accepts only the listed values.",
    "serving: {kv_cache_dtype: fp8}",
)
OUT_OF_RANGE = _code(
    "TPU1205", "Number out of range", "The number is too small or too large.", "serving: {hbm_utilization: 0.9}"
)
WRONG_FORM = _code(
    "TPU1206",
    "Invalid format of a value",
    "The text doesn't have the key's form, such as 15m for a duration or 100GiB for a size.",
    "health: {timeout: 45m}",
)
NOT_SUPPORTED = _code(
    "TPU1207",
    "Not supported yet",
    "The key is reserved but not implemented in this version. Ignoring it would deploy something else than you "
    "declared.",
    "lifecycle: {update: in-place}",
)
# Keys together.
UNKNOWN_TYPE = _code(
    "TPU1301", "Unknown accelerator type", "The catalog doesn't list this TPU slice.", "tpu: {type: v6e-4}"
)
PARALLELISM = _code(
    "TPU1302",
    "Impossible parallelism",
    "The number of chips in the slice isn't a multiple of tensor_parallel_size x data_parallel_size. On TPU7x, "
    "both sizes count devices, two per chip.",
    "tpu: {type: v6e-4}\nserving: {tensor_parallel_size: 4}",
)
RUNTIME_MISMATCH = _code(
    "TPU1303",
    "Runtime for another TPU generation",
    "The runtime version is the VM image of another TPU generation.",
    "tpu: {runtime_version: v2-alpha-tpuv6e}",
)
IDLE_CHIPS = _code(
    "TPU1304",
    "Idle chips",
    "A warning: tensor_parallel_size x data_parallel_size uses fewer chips than the slice has. All of them are billed.",
    "tpu: {type: v6e-4}\nserving: {tensor_parallel_size: 4}",
)
TOPOLOGY = _code(
    "TPU1305",
    "Invalid generation and topology",
    "tpu.generation and tpu.topology together are another way to write tpu.type: v6e with 2x2 is v6e-4. One of "
    "them is missing, or the catalog has no such slice, or tpu.type names another one.",
    "tpu: {type: null, generation: v6e, topology: 2x2}",
)
EXPERIMENTAL_GENERATION = _code(
    "TPU1306",
    "TPU generation with experimental support",
    "A warning: vLLM calls support for this TPU generation experimental. Fewer models and flags are tested on it.",
    "tpu: {type: v6e-4}",
)
UNTESTED_OVER_HOSTS = _code(
    "TPU1307",
    "Untested shape of several hosts",
    "A warning: a slice of several hosts runs one server over Ray. vLLM tests v6e with tensor parallelism within "
    "a host and pipeline stages across hosts, but not with tensor parallelism across hosts.",
    "tpu: {type: v6e-16}\nserving: {tensor_parallel_size: 4, args: {pipeline_parallel_size: 4}}",
)
AMBIGUOUS_TYPE = _code(
    "TPU1308",
    "Name of a slice type with two meanings",
    "A TPU7x chip has two TensorCores. gcloud, xpk and vLLM's CI count TensorCores in the name, others count "
    "chips. So `tpu7x-8` can mean four chips or eight, at twice the price. The topology is unambiguous.",
    "tpu: {type: tpu7x-2x2x1}\nplacement: {backend: gce-instance, zones: [us-central1-c]}",
)
UNKNOWN_FLAG = _code(
    "TPU1310",
    "Unknown vLLM flag",
    "vLLM doesn't have this flag, so the server wouldn't start. If the image's release isn't in the tables, it's "
    "only a warning.",
    "serving: {args: {seed: 1}}",
)
FLAG_VALUE = _code(
    "TPU1311",
    "Invalid value of a flag",
    "The flag determines how its value is written: not at all, as one word, as several words, or as JSON.",
    "serving: {args: {enable_prefix_caching: true}}",
)
FLAG_HAS_KEY = _code(
    "TPU1312",
    "Flag with its own key",
    "The flag has its own profile key, so the value belongs there.",
    "serving: {max_model_len: 8192}",
)
FLAG_TWICE = _code(
    "TPU1313",
    "Duplicate flag",
    "The flag is set twice, through an alias or with `_` and `-`. tpudeploy doesn't guess which value you mean.",
    "serving: {args: {seed: 1}}",
)
VARIABLE_TWICE = _code(
    "TPU1314",
    "Duplicate environment variable",
    "The variable is set in two places: by a key, in `env` or in `secrets`.",
    "serving: {padding_gap: 512}",
)
VARIABLE_NAME = _code(
    "TPU1315",
    "Invalid name of an environment variable",
    "The name isn't made of letters, digits and underscores, or it starts with a digit.",
    "serving: {env: {HF_HOME: /cache}}",
)
SECRET_IN_ENV = _code(
    "TPU1316",
    "Secret in a plain value",
    "Credentials belong under `secrets`: values in `env` are visible in the startup script, the state, the plan "
    "and `docker inspect`. A name with TOKEN, SECRET, PASSWORD or KEY in it is treated as a secret, unless "
    "`serving.plain_env` names it.",
    "secrets: {HF_TOKEN: hf-token}",
)
SECRET_REFERENCE = _code(
    "TPU1317",
    "Invalid name of a secret",
    "The value isn't a Secret Manager id or projects/P/secrets/S/versions/V.",
    "secrets: {HF_TOKEN: projects/my-project/secrets/hf-token/versions/latest}",
)
FLAG_NOT_SERVED = _code(
    "TPU1318",
    "Flag that makes the endpoint unreachable",
    "An apply succeeds once the machine's address returns a completion over plain HTTP; clients get the same "
    "endpoint. TLS, another address, a socket file, a path prefix or gRPC would break both.",
    "serving: {port: 8443}",
)
FLAGS_TOGETHER = _code(
    "TPU1319",
    "Incompatible flags",
    "vLLM refuses the combination when it starts, after the slice is granted and the image is pulled.",
    "serving: {args: {enable_auto_tool_choice: true, tool_call_parser: gemma4}}",
)
FLEX_WITHOUT_END = _code(
    "TPU1320",
    "flex-start without a run duration",
    "flex-start requests need a duration, and placement.max_run_duration isn't set.",
    "placement: {provisioning: [flex-start], max_run_duration: 12h}",
)
RUN_TOO_LONG = _code(
    "TPU1321",
    "Run duration longer than 7 days",
    "Google runs a slice with an end for at most 7 days.",
    "placement: {max_run_duration: 7d}",
)
BUDGET_WITHOUT_END = _code(
    "TPU1329",
    "A budget without an end",
    "A budget can't be enforced without an end, because the slice may run forever. Google ends a run after "
    "placement.max_run_duration; lifecycle.end ends the deployment, and lifecycle.hours each day. lifecycle.idle "
    "alone is no end: while requests come, it never ends anything.",
    "lifecycle: {end: 24h}",
)
NOTIFY_TARGET = _code(
    "TPU1348",
    "A target that cannot be notified",
    "The target isn't an https URL (plain http works for localhost only) or a command. A command gets the "
    "notification on standard input and runs without a shell: quotes only group words.",
    "notify: [https://hooks.example/tpu, python3 notify.py]",
)
NEVER_IDLE = _code(
    "TPU1347",
    "An idle limit without statistics",
    "lifecycle.idle reads the engine's request counters. With statistics off there are none, so the deployment "
    "would never count as idle.",
    "lifecycle: {idle: 30m}",
)
RESERVED_ALONE = _code(
    "TPU1322",
    "`reserved` without a reservation",
    "`reserved` needs the reservation's name in placement.reservation.",
    _RESERVED,
)
RESERVATION_UNUSED = _code(
    "TPU1323",
    "Unused reservation",
    "A reservation is used only with `reserved` in placement.provisioning, in the reservation's own zone.",
    _RESERVED,
)
REPEATED = _code(
    "TPU1324",
    "Duplicate choice",
    "A list in order of preference contains a choice twice.",
    "placement: {provisioning: [spot]}",
)
ZONE_UNKNOWN = _code(
    "TPU1325",
    "Zone missing from the catalog",
    "A warning: the type hasn't been observed in this zone. Zones change, so it may exist there.",
    "placement: {zones: [us-east5-b]}",
)
BACKEND_UNSERVED = _code(
    "TPU1326",
    "Backend that does not serve the slice type",
    "Google offers v5e only in the TPU API, TPU7x only in Compute Engine, v6e and v5p in both. v5p slices of one "
    "or two chips exist only in Compute Engine.",
    "placement: {backend: queued-resource}",
)
RUN_TOO_SHORT = _code(
    "TPU1327",
    "Run duration shorter than Compute Engine accepts",
    "On Compute Engine, flex-start runs last at least 10 minutes; other runs with an end last at least 30 seconds.",
    "placement: {max_run_duration: 12h}",
)
WAIT_OUT_OF_RANGE = _code(
    "TPU1328",
    "Waiting time that Compute Engine does not accept",
    "Compute Engine keeps a flex-start request for 90 seconds to 2 hours. A shorter time is an error. With a "
    "longer time, tpudeploy sends the request again every 2 hours.",
    "placement: {valid_until: 2h}",
)
LABEL = _code(
    "TPU1330",
    "Invalid label",
    "A label has characters other than lower-case letters, digits, `_` and `-`, is longer than 63, or its key "
    "doesn't start with a letter.",
    "placement: {labels: {team: search}}",
)
VOLUME = _code(
    "TPU1331",
    "Invalid volume",
    "A volume is not two absolute paths, host:container, or two volumes use the same container path.",
    "serving: {volumes: {/data: /data}}",
)
UNKNOWN_PATH = _code(
    "TPU1332",
    "Unknown path in `ignore_changes`",
    "`ignore_changes` names a path the format doesn't have.",
    "lifecycle: {ignore_changes: [serving.image]}",
)
VARIABLE_MISSPELT = _code(
    "TPU1333",
    "Misspelled environment variable of the engine",
    "The name differs by a letter or two from a variable of vLLM or tpu_inference. The engine would start and "
    "ignore it.",
    "serving: {env: {SKIP_JAX_PRECOMPILE: '1'}}",
)
VARIABLE_REMOVED = _code(
    "TPU1337",
    "Environment variable the engine no longer reads",
    "Earlier releases of vLLM read it. This one starts and ignores it, so it has no effect.",
    "serving: {env: {VLLM_ENGINE_READY_TIMEOUT_S: '1800'}}",
)
VARIABLE_VALUE = _code(
    "TPU1335",
    "Value that the engine cannot read from an environment variable",
    "vLLM or tpu_inference can't convert the value. The engine would fail at its start, after the slice is "
    "granted and the image pulled.",
    "serving: {env: {NEW_MODEL_DESIGN: '1'}}",
)
FLAG_NOT_ON_TPU = _code(
    "TPU1334",
    "A flag that vLLM refuses on TPU",
    "The flag is for other hardware. On TPU, vLLM would refuse it at its start, after the slice is granted and "
    "the image pulled.",
    "serving: {args: {enable_sleep_mode: false}}",
)
ROUTER_KEY = _code(
    "TPU1336",
    "Unused key of this router",
    "Only a router on a VM has a machine type, and Google assigns its address. Any other router needs a listen "
    "address and has no machine type.",
    "router: {kind: smg, host: vm, machine: e2-small}",
)
FLOATING_IMAGE = _code(
    "TPU1340",
    "Floating image tag",
    "A warning: the tag moves. The first apply pins its digest in tpudeploy.lock.json, so later applies serve the"
    " same engine. Commit the file.",
    "serving: {image: vllm/vllm-tpu:v0.32.0}",
)
NOT_A_TPU_IMAGE = _code(
    "TPU1342",
    "Image for other hardware",
    "The image is vLLM for other hardware. Only the TPU image contains tpu_inference and libtpu.",
    "serving: {image: vllm/vllm-tpu:v0.32.0}",
)
REPLICA_BOUNDS = _code(
    "TPU1343",
    "Number of replicas outside of its bounds",
    "The numbers contradict each other: scale.min <= replicas <= scale.max must hold, and "
    "placement.on_demand_floor can't exceed them.",
    "replicas: 2\nscale: {min: 1, max: 4}\nplacement: {on_demand_floor: 1}",
)
RESERVED_PORT = _code(
    "TPU1344",
    "Port of another program",
    "The container shares its machine's network, where ssh, the name resolver and the TPU runtime already use "
    "this port. The server would stop after the slice is granted and the image pulled.",
    "serving: {port: 8000}",
)
NOT_A_MODEL = _code(
    "TPU1345",
    "Model whose weights cannot be loaded",
    "vLLM loads weights from the Hugging Face hub, a bucket or a folder of the container. The weights of OpenAI's"
    " hosted models, Claude and Gemini aren't published. GGUF files are for other engines.",
    "model: {id: google/gemma-4-E2B-it}",
)
RELEASE_WITHOUT_V = _code(
    "TPU1346",
    "Unpublished vLLM tag",
    "A warning: vLLM publishes its releases for TPU under tags such as v0.32.0, with a v. Otherwise, the missing "
    "tag would show up only after the slice is granted.",
    "serving: {image: vllm/vllm-tpu:v0.32.0}",
)

# Diagnostics about something that only a whole profile can lack. They are omitted while a part of it is unreadable.
OF_ABSENCE = frozenset({MISSING_KEY, FLEX_WITHOUT_END, BUDGET_WITHOUT_END, RESERVED_ALONE, RESERVATION_UNUSED})
