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
    "The profile has problems; each is listed with its place, and each has a code of its own.",
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
    "The path exists, but is not a regular file, or you may not read it.",
    "chmod u+r prod.yaml",
)
TOO_LARGE = _code(
    "TPU1011",
    "File too large",
    "A source may have at most 1 MiB. A profile is a page of text.",
    "tpudeploy validate prod.yaml",
)
NOT_TEXT = _code(
    "TPU1012",
    "File that is not UTF-8 text",
    "A profile is UTF-8 text, with or without a byte-order mark.",
    "iconv -f latin1 -t utf-8 prod.yaml",
)
CONTROL_CHARACTER = _code(
    "TPU1013",
    "Control character",
    "YAML text has no control characters, and a value no NUL, because arguments, variables and paths cannot have one.",
    'health: {prompt: "one line\\nand another"}',
)
EMPTY = _code("TPU1014", "Empty file", "The file has no key.", "version: 1")
SEVERAL_DOCUMENTS = _code(
    "TPU1015", "Several documents", "One file holds one profile; a `---` begins another document.", "one file a profile"
)
NOT_A_MAPPING = _code("TPU1016", "Not a mapping", "A profile is a mapping of keys to values.", "version: 1\nname: demo")
SYNTAX = _code(
    "TPU1017",
    "Invalid YAML",
    "The text is not YAML. Often a value needs quotes: one with `: `, with ` #`, or with `${...}` inside { }.",
    'serving: {env: {GREETING: "${env:GREETING}"}}',
)
TAB = _code("TPU1018", "Tab indentation", "YAML is indented with spaces, not with tabs.", "serving:\n  port: 8000")
TOO_DEEP = _code(
    "TPU1019", "Values nested too deep", "No value of the format needs more than a few levels.", "model:\n  id: X"
)
TOO_MANY_VALUES = _code(
    "TPU1020",
    "Too many values",
    "The number of values is limited, and each use of an alias counts: a few lines of nested aliases can mean "
    "billions of values.",
    "extends: base.yaml",
)
DUPLICATE_KEY = _code(
    "TPU1021",
    "Duplicate key",
    "A mapping may have a key only once, because it is unknown which of two values is meant.",
    "serving: {port: 8000}",
)
KEY_NOT_TEXT = _code(
    "TPU1022",
    "Key that is not text",
    "A key is a word. It must not be empty, a list or a mapping.",
    "serving: {port: 8000}",
)
TAG = _code(
    "TPU1023", "YAML tag", "Tags (`!!float`, `!python/...`) are not part of the format.", 'model: {revision: "2.0"}'
)
MERGE_KEY = _code(
    "TPU1024", "Merge key", "`<<` is not part of YAML 1.2. Layers are written as files.", "extends: base.yaml"
)
NOT_FINITE = _code(
    "TPU1025",
    "Number that is not finite",
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
    "TPU1101", "Unreadable file in `extends`", "The path is relative to the file that names it.", "extends: base.yaml"
)
EXTENDS_CYCLE = _code("TPU1102", "Circular `extends`", "A profile cannot extend itself.", "extends: base.yaml")
EXTENDS_TOO_DEEP = _code(
    "TPU1103",
    "`extends` nested too deep",
    "At most 5 levels, and 50 files in total, so that a person can still follow.",
    "extends: base.yaml",
)
EXTENDS_FORM = _code(
    "TPU1104", "`extends` that is not a path", "A path, or a list of paths.", "extends: [base.yaml, prod.yaml]"
)
SET_FORM = _code(
    "TPU1105", "Malformed --set", "A dotted path, an equals sign, a YAML value.", "--set serving.max_model_len=8192"
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
    "A script under `boot`, or a template in the project's folder `templates/boot`, is not what bash reads as its "
    "author does; or shellcheck, which `validate` runs where it is installed, found a problem in it; or the template "
    "has the name of none that tpudeploy ships.",
    "tpudeploy validate prod.yaml",
)
UNSET_VARIABLE = _code(
    "TPU1110",
    "Unset variable",
    "`${env:NAME}` needs NAME in the environment, or a default.",
    'placement: {project: "${env:PROJECT:-my-project}"}',
)
INTERPOLATION_FORM = _code(
    "TPU1111",
    "Unknown interpolation",
    "Only ${env:NAME} and ${env:NAME:-default} are known. A dollar before a brace is written $$.",
    'serving: {setup: ["echo $${HOME}"]}',
)
INTERPOLATION_IN_KEY = _code(
    "TPU1112", "Interpolation in a key", "Values may hold ${env:NAME}, keys may not.", "name: demo-${env:USER}"
)
VARIABLE_NOT_ALLOWED = _code(
    "TPU1113",
    "Environment variable that is not allowed",
    "An untrusted profile (in `ci`, in `mcp`, or with -untrusted) reads only the environment variables that the "
    "operator allows by name, with -allow-env or TPUDEPLOY_ALLOW_ENV (one name a line). The value of an allowed "
    "variable is part of the profile from then on: plans, comments and scripts show it.",
    "tpudeploy ci plan prod.yaml -allow-env REGION",
)
SECRET_VARIABLE = _code(
    "TPU1114",
    "Environment variable that looks like a secret",
    "What a profile reads from the environment is written into its startup script, its state and its plan. A "
    "variable whose name contains TOKEN, SECRET, PASSWORD or KEY is therefore not read. Keep the value in Secret "
    "Manager; if it is no secret, allow the variable by its name.",
    "tpudeploy plan prod.yaml -allow-env CACHE_KEY",
)
# One key at a time.
UNKNOWN_KEY = _code("TPU1201", "Unknown key", "The format does not have this key here.", "tpu: {type: v6e-4}")
MISSING_KEY = _code(
    "TPU1202", "Missing key", "Required: version, name, model.id, tpu.type, serving.image.", "tpu: {type: v6e-4}"
)
WRONG_TYPE = _code(
    "TPU1203",
    "Wrong type",
    "The value is not of the key's type. Text that looks like a number needs quotes: 1.10 would become 1.1.",
    'model: {revision: "1.10"}',
)
NOT_A_CHOICE = _code(
    "TPU1204",
    "Value that is not one of the choices",
    "The key accepts only a few values.",
    "serving: {kv_cache_dtype: fp8}",
)
OUT_OF_RANGE = _code(
    "TPU1205", "Number out of range", "The number is too small or too large.", "serving: {hbm_utilization: 0.9}"
)
WRONG_FORM = _code(
    "TPU1206",
    "Invalid format of a value",
    "The text does not have the form that the key requires.",
    "health: {timeout: 45m}",
)
NOT_SUPPORTED = _code(
    "TPU1207",
    "Not supported yet",
    "The key belongs to the format, but this version does not implement it, and must not ignore it.",
    "lifecycle: {update: in-place}",
)
# Keys together.
UNKNOWN_TYPE = _code(
    "TPU1301", "Unknown accelerator type", "The catalogue does not list this TPU slice.", "tpu: {type: v6e-4}"
)
PARALLELISM = _code(
    "TPU1302",
    "Impossible parallelism",
    "tensor_parallel_size x data_parallel_size chips are used; a slice has a fixed number, and the product must "
    "divide it. On TPU7x a chip has two devices, which both sizes count.",
    "tpu: {type: v6e-4}\nserving: {tensor_parallel_size: 4}",
)
RUNTIME_MISMATCH = _code(
    "TPU1303",
    "Runtime for another TPU generation",
    "Each TPU generation has its own VM image.",
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
    "Generation and topology that name no slice",
    "tpu.generation and tpu.topology together are another way to write tpu.type: v6e with 2x2 is v6e-4. Both are "
    "needed, and the catalogue must have that slice. tpu.type may be written too if it is the same one.",
    "tpu: {type: null, generation: v6e, topology: 2x2}",
)
EXPERIMENTAL_GENERATION = _code(
    "TPU1306",
    "TPU generation with experimental support",
    "A warning: vLLM's pages recommend some TPU generations, and call others experimental. On those fewer models and "
    "flags are tested.",
    "tpu: {type: v6e-4}",
)
UNTESTED_OVER_HOSTS = _code(
    "TPU1307",
    "Several hosts in a shape that vLLM does not test",
    "A warning: a slice of several hosts runs one server over Ray. In vLLM's tests of v6e, tensor parallelism within a "
    "host and pipeline stages across the hosts pass; tensor parallelism across hosts is not among them.",
    "tpu: {type: v6e-16}\nserving: {tensor_parallel_size: 4, args: {pipeline_parallel_size: 4}}",
)
AMBIGUOUS_TYPE = _code(
    "TPU1308",
    "Name of a slice type with two meanings",
    "A TPU7x chip has two TensorCores. gcloud, xpk and vLLM's CI count these in the name, others count chips, so that "
    "`tpu7x-8` is four chips or eight, at twice the price. The topology means the same everywhere.",
    "tpu: {type: tpu7x-2x2x1}\nplacement: {backend: gce-instance, zones: [us-central1-c]}",
)
UNKNOWN_FLAG = _code(
    "TPU1310",
    "Unknown vLLM flag",
    "vLLM does not have this flag, so the server would not start. For an image whose release is not that of the "
    "tables, or not known, it is a warning: that release may have the flag.",
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
    "Flag that has its own key",
    "The format has a key for this flag. Write the value there.",
    "serving: {max_model_len: 8192}",
)
FLAG_TWICE = _code(
    "TPU1313",
    "Duplicate flag",
    "The flag is set twice, by an alias or with `_` and `-`, so it is unknown which value is meant.",
    "serving: {args: {seed: 1}}",
)
VARIABLE_TWICE = _code(
    "TPU1314",
    "Duplicate environment variable",
    "A variable is set in one place: by a key, in `env`, or in `secrets`.",
    "serving: {padding_gap: 512}",
)
VARIABLE_NAME = _code(
    "TPU1315",
    "Invalid name of an environment variable",
    "Letters, digits and underscores, not beginning with a digit.",
    "serving: {env: {HF_HOME: /cache}}",
)
SECRET_IN_ENV = _code(
    "TPU1316",
    "Secret in a plain value",
    "Variables that hold credentials belong under `secrets`: values in `env` are written into the startup "
    "script, the state and the plan, and `docker inspect` shows it. A name with TOKEN, SECRET, PASSWORD or KEY in "
    "it is treated as a secret, unless `serving.plain_env` names it.",
    "secrets: {HF_TOKEN: hf-token}",
)
SECRET_REFERENCE = _code(
    "TPU1317",
    "Invalid name of a secret",
    "A Secret Manager id, or projects/P/secrets/S/versions/V.",
    "secrets: {HF_TOKEN: projects/my-project/secrets/hf-token/versions/latest}",
)
FLAG_NOT_SERVED = _code(
    "TPU1318",
    "Flag that makes the endpoint unreachable",
    "An apply ends when a completion comes back over HTTP from the port on the machine's address, and clients get "
    "that endpoint. TLS, another address, a socket file, a path prefix or gRPC would exclude both.",
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
    "Google grants flex-start only for a requested duration.",
    "placement: {provisioning: [flex-start], max_run_duration: 12h}",
)
RUN_TOO_LONG = _code(
    "TPU1321",
    "Run duration longer than 7 days",
    "A slice with an end runs at most 7 days.",
    "placement: {max_run_duration: 7d}",
)
BUDGET_WITHOUT_END = _code(
    "TPU1329",
    "A budget without an end",
    "A budget only holds what has an end: without one, a slice may cost any amount. Google ends a run after "
    "placement.max_run_duration; lifecycle.end ends the deployment, and lifecycle.hours each day. lifecycle.idle alone "
    "is no end: while requests come, it never ends anything.",
    "lifecycle: {end: 24h}",
)
NOTIFY_TARGET = _code(
    "TPU1348",
    "A target that cannot be notified",
    "A notification goes to an https URL (plain http to localhost only), or to a command, which gets it on its "
    "standard input. No shell reads the command: quotes only group its words.",
    "notify: [https://hooks.example/tpu, python3 notify.py]",
)
NEVER_IDLE = _code(
    "TPU1347",
    "An idle limit without statistics",
    "Whether a deployment is idle is decided by the engine's own counters of requests (lifecycle.idle). Without its "
    "statistics it has none: each minute would count as use, and the deployment would never end.",
    "lifecycle: {idle: 30m}",
)
RESERVED_ALONE = _code("TPU1322", "`reserved` without a reservation", "Name the reservation to use.", _RESERVED)
RESERVATION_UNUSED = _code(
    "TPU1323", "Unused reservation", "Only `reserved` uses a reservation, in the reservation's own zone.", _RESERVED
)
REPEATED = _code(
    "TPU1324", "Duplicate choice", "An order of preference lists each choice once.", "placement: {provisioning: [spot]}"
)
ZONE_UNKNOWN = _code(
    "TPU1325",
    "Zone missing from the catalog",
    "A warning: the catalogue lists the zones where a type has been observed, and zones change.",
    "placement: {zones: [us-east5-b]}",
)
BACKEND_UNSERVED = _code(
    "TPU1326",
    "Backend that does not serve the slice type",
    "Google serves each TPU generation through some of its APIs: v5e through the TPU API alone, TPU7x through "
    "Compute Engine alone, v6e and v5p through both. Slices of one or two chips of v5p exist at Compute Engine alone.",
    "placement: {backend: queued-resource}",
)
RUN_TOO_SHORT = _code(
    "TPU1327",
    "Run duration shorter than Compute Engine accepts",
    "At Compute Engine a flex-start run lasts at least 10 minutes, and any other run with an end at least 30 seconds.",
    "placement: {max_run_duration: 12h}",
)
WAIT_OUT_OF_RANGE = _code(
    "TPU1328",
    "Waiting time that Compute Engine does not accept",
    "Compute Engine keeps a flex-start request for 90 seconds to 2 hours. A shorter time is an error. For a longer "
    "one, each request waits for 2 hours, and is sent again after it lapses.",
    "placement: {valid_until: 2h}",
)
LABEL = _code(
    "TPU1330",
    "Invalid label",
    "Lower case, digits, `_` and `-`, at most 63; keys begin with a letter.",
    "placement: {labels: {team: search}}",
)
VOLUME = _code(
    "TPU1331",
    "Invalid volume",
    "Absolute host path: absolute container path, each container path once.",
    "serving: {volumes: {/data: /data}}",
)
UNKNOWN_PATH = _code(
    "TPU1332",
    "Unknown path in `ignore_changes`",
    "`ignore_changes` lists paths of the format.",
    "lifecycle: {ignore_changes: [serving.image]}",
)
VARIABLE_MISSPELT = _code(
    "TPU1333",
    "Misspelled environment variable of the engine",
    "The name differs by a letter or two from one that vLLM or tpu_inference reads. The engine would start, and "
    "the variable would have no effect.",
    "serving: {env: {SKIP_JAX_PRECOMPILE: '1'}}",
)
VARIABLE_REMOVED = _code(
    "TPU1337",
    "Environment variable that the engine reads no more",
    "Earlier releases of vLLM read it. This one starts and ignores it, so it has no effect.",
    "serving: {env: {VLLM_ENGINE_READY_TIMEOUT_S: '1800'}}",
)
VARIABLE_VALUE = _code(
    "TPU1335",
    "Value that the engine cannot read from an environment variable",
    "vLLM and tpu_inference convert their variables to numbers and words, and refuse other values when they start, "
    "after the slice was granted and the image pulled.",
    "serving: {env: {NEW_MODEL_DESIGN: '1'}}",
)
FLAG_NOT_ON_TPU = _code(
    "TPU1334",
    "A flag that vLLM refuses on TPU",
    "The flag is for other hardware: vLLM on its TPU platform refuses it when it starts, after the slice was "
    "granted and the image pulled.",
    "serving: {args: {enable_sleep_mode: false}}",
)
ROUTER_KEY = _code(
    "TPU1336",
    "Key that this router has no use for",
    "A router on a VM has a machine type, and Google assigns its address. Any other router listens at the address that "
    "the profile writes.",
    "router: {kind: smg, host: vm, machine: e2-small}",
)
FLOATING_IMAGE = _code(
    "TPU1340",
    "Floating image tag",
    "A warning: the tag moves. The first apply pins it in tpudeploy.lock.json, so that two applies a day apart serve "
    "the same engine. Commit that file.",
    "serving: {image: vllm/vllm-tpu:v0.32.0}",
)
NOT_A_TPU_IMAGE = _code(
    "TPU1342",
    "Image for other hardware",
    "vLLM is published in one image for each kind of hardware; only that for TPU has tpu_inference and libtpu.",
    "serving: {image: vllm/vllm-tpu:v0.32.0}",
)
REPLICA_BOUNDS = _code(
    "TPU1343",
    "Number of replicas outside of its bounds",
    "scale.min is at most scale.max, replicas (the number to begin with) is between them, and "
    "placement.on_demand_floor is a number of these replicas.",
    "replicas: 2\nscale: {min: 1, max: 4}\nplacement: {on_demand_floor: 1}",
)
RESERVED_PORT = _code(
    "TPU1344",
    "Port of another program",
    "The container shares the network of its machine, where ssh, the name resolver and the TPU runtime listen too. A "
    "server that cannot listen at its port stops, after the slice was granted and the image pulled.",
    "serving: {port: 8000}",
)
NOT_A_MODEL = _code(
    "TPU1345",
    "Model whose weights cannot be loaded",
    "vLLM loads weights from the Hugging Face hub, a bucket or a folder of the container. The models of OpenAI, "
    "Anthropic and Gemini are not published, and GGUF files are for other engines.",
    "model: {id: google/gemma-4-E2B-it}",
)
RELEASE_WITHOUT_V = _code(
    "TPU1346",
    "Tag that vLLM does not publish",
    "A warning: vLLM publishes its releases for TPU under tags such as v0.32.0, with a v. A registry without the tag "
    "answers only after the slice was granted.",
    "serving: {image: vllm/vllm-tpu:v0.32.0}",
)

# Diagnostics about something that only a whole profile can lack. They are omitted while a part of it is unreadable.
OF_ABSENCE = frozenset({MISSING_KEY, FLEX_WITHOUT_END, BUDGET_WITHOUT_END, RESERVED_ALONE, RESERVATION_UNUSED})
