"""Every diagnostic of a profile: its code, what it means, and what a fix looks like. `tpudeploy explain` reads this."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.diagnostics import Explanation

# Reading a source.
INVALID = "TPU1000"
NOT_FOUND = "TPU1001"
UNREADABLE = "TPU1010"
TOO_LARGE = "TPU1011"
NOT_TEXT = "TPU1012"
CONTROL_CHARACTER = "TPU1013"
EMPTY = "TPU1014"
SEVERAL_DOCUMENTS = "TPU1015"
NOT_A_MAPPING = "TPU1016"
SYNTAX = "TPU1017"
TAB = "TPU1018"
TOO_DEEP = "TPU1019"
TOO_MANY_VALUES = "TPU1020"
DUPLICATE_KEY = "TPU1021"
KEY_NOT_TEXT = "TPU1022"
TAG = "TPU1023"
MERGE_KEY = "TPU1024"
NOT_FINITE = "TPU1025"
CREDENTIAL = "TPU1030"
# Layers: extends, overlays, --set, ${env:...}.
EXTENDS_UNREADABLE = "TPU1101"
EXTENDS_CYCLE = "TPU1102"
EXTENDS_TOO_DEEP = "TPU1103"
EXTENDS_FORM = "TPU1104"
SET_FORM = "TPU1105"
OUTSIDE_PROJECT = "TPU1106"
UNSET_VARIABLE = "TPU1110"
INTERPOLATION_FORM = "TPU1111"
INTERPOLATION_IN_KEY = "TPU1112"
VARIABLE_NOT_ALLOWED = "TPU1113"
SECRET_VARIABLE = "TPU1114"  # noqa: S105 - a code, not a secret
# One key at a time.
UNKNOWN_KEY = "TPU1201"
MISSING_KEY = "TPU1202"
WRONG_TYPE = "TPU1203"
NOT_A_CHOICE = "TPU1204"
OUT_OF_RANGE = "TPU1205"
WRONG_FORM = "TPU1206"
NOT_SUPPORTED = "TPU1207"
# Keys together.
UNKNOWN_TYPE = "TPU1301"
PARALLELISM = "TPU1302"
RUNTIME_MISMATCH = "TPU1303"
IDLE_CHIPS = "TPU1304"
UNKNOWN_FLAG = "TPU1310"
FLAG_VALUE = "TPU1311"
FLAG_HAS_KEY = "TPU1312"
FLAG_TWICE = "TPU1313"
VARIABLE_TWICE = "TPU1314"
VARIABLE_NAME = "TPU1315"
SECRET_IN_ENV = "TPU1316"  # noqa: S105 - a code, not a secret
SECRET_REFERENCE = "TPU1317"  # noqa: S105 - a code, not a secret
FLAG_NOT_SERVED = "TPU1318"
FLAGS_TOGETHER = "TPU1319"
FLEX_WITHOUT_END = "TPU1320"
RUN_TOO_LONG = "TPU1321"
RESERVED_ALONE = "TPU1322"
RESERVATION_UNUSED = "TPU1323"
REPEATED = "TPU1324"
ZONE_UNKNOWN = "TPU1325"
LABEL = "TPU1330"
VOLUME = "TPU1331"
UNKNOWN_PATH = "TPU1332"
VARIABLE_MISSPELT = "TPU1333"
FLAG_NOT_ON_TPU = "TPU1334"
FLOATING_IMAGE = "TPU1340"
OTHER_ENGINE_VERSION = "TPU1341"
NOT_A_TPU_IMAGE = "TPU1342"

# What only a whole profile can lack: not said while a part of it could not be read.
OF_ABSENCE = frozenset({MISSING_KEY, FLEX_WITHOUT_END, RESERVED_ALONE, RESERVATION_UNUSED})


_RESERVED = (
    "placement: {provisioning: [reserved], zones: [us-east5-b], "
    "reservation: projects/my-project/locations/us-east5-b/reservations/my-reservation}"
)


EXPLANATIONS: Mapping[str, Explanation] = {
    INVALID: Explanation(
        "Invalid profile",
        "The profile has problems; each is listed with its place, and each has a code of its own.",
        "tpudeploy validate prod.yaml",
    ),
    NOT_FOUND: Explanation(
        "Profile not found",
        "The file that was named on the command line does not exist.",
        "tpudeploy init --from gemma4-e2b-v6e1",
    ),
    UNREADABLE: Explanation(
        "Unreadable file", "The path exists, but is not a regular file, or you may not read it.", "chmod u+r prod.yaml"
    ),
    TOO_LARGE: Explanation(
        "File too large", "A source is read up to 1 MiB. A profile is a page of text.", "tpudeploy validate prod.yaml"
    ),
    NOT_TEXT: Explanation(
        "File that is not UTF-8 text",
        "A profile is UTF-8 text, with or without a byte-order mark.",
        "iconv -f latin1 -t utf-8 prod.yaml",
    ),
    CONTROL_CHARACTER: Explanation(
        "Control character",
        "YAML text holds no NUL and no other control characters, and a value no NUL: nothing that a profile becomes "
        "(an argument, a variable, a path) could hold it.",
        'health: {prompt: "one line\\nand another"}',
    ),
    EMPTY: Explanation("Empty file", "The file holds no key at all.", "version: 1"),
    SEVERAL_DOCUMENTS: Explanation(
        "Several documents", "One file holds one profile; a `---` begins another document.", "one file a profile"
    ),
    NOT_A_MAPPING: Explanation("Not a mapping", "A profile is a mapping of keys to values.", "version: 1\nname: demo"),
    SYNTAX: Explanation(
        "Invalid YAML",
        "The text is no YAML. Often a value needs quotes: one with `: `, with ` #`, or with `${...}` inside { }.",
        'serving: {env: {GREETING: "${env:GREETING}"}}',
    ),
    TAB: Explanation(
        "Tab indentation", "YAML is indented with spaces; a tab means nothing there.", "serving:\n  port: 8000"
    ),
    TOO_DEEP: Explanation(
        "Values nested too deep", "No value of the format needs more than a few levels.", "model:\n  id: X"
    ),
    TOO_MANY_VALUES: Explanation(
        "Too many values",
        "The number of values is bounded, aliases counted as often as they are used: a few lines of nested aliases "
        "can stand for thousands of millions of values.",
        "extends: base.yaml",
    ),
    DUPLICATE_KEY: Explanation(
        "Duplicate key",
        "A key may stand once in a mapping; which of two was meant cannot be known.",
        "serving: {port: 8000}",
    ),
    KEY_NOT_TEXT: Explanation(
        "Key that is not text", "A key is a word, not empty, a list or a mapping.", "serving: {port: 8000}"
    ),
    TAG: Explanation(
        "YAML tag", "Tags (`!!float`, `!python/...`) are not part of the format.", 'model: {revision: "2.0"}'
    ),
    MERGE_KEY: Explanation(
        "Merge key", "`<<` is not part of YAML 1.2. Layers are written as files.", "extends: base.yaml"
    ),
    NOT_FINITE: Explanation(
        "Number that is not finite",
        "NaN, infinities and numbers beyond a double have no meaning here.",
        "serving: {hbm_utilization: 0.9}",
    ),
    CREDENTIAL: Explanation(
        "Text that looks like a credential",
        "No secret's value may stand in a profile, not even in a comment: profiles are committed, shown in plans and "
        "sent to Google as metadata. Keep it in Secret Manager; the VM reads it at boot with its own identity.",
        "secrets: {HF_TOKEN: hf-token}",
    ),
    EXTENDS_UNREADABLE: Explanation(
        "Unreadable file in `extends`",
        "The path is relative to the file it stands in.",
        "extends: base.yaml",
    ),
    EXTENDS_CYCLE: Explanation("Circular `extends`", "A profile cannot build on itself.", "extends: base.yaml"),
    EXTENDS_TOO_DEEP: Explanation(
        "`extends` nested too deep",
        "At most 5 levels, and 50 files in all, so that a person can still follow.",
        "extends: base.yaml",
    ),
    EXTENDS_FORM: Explanation(
        "`extends` that is not a path", "A path, or a list of paths.", "extends: [base.yaml, prod.yaml]"
    ),
    SET_FORM: Explanation(
        "Malformed --set", "A dotted path, an equals sign, a YAML value.", "--set serving.max_model_len=8192"
    ),
    OUTSIDE_PROJECT: Explanation(
        "File outside the project",
        "An untrusted profile opens files of its own project only: .yaml, .yml and .json files at or below the "
        "project's folder, links followed to their end, none of them hidden. `ci` and `mcp` trust no profile: keep a "
        "copy of the file inside the project. For other commands, profiles are untrusted with -untrusted or with "
        "`untrusted` in tpudeploy.toml: leave these out if you trust the author.",
        "extends: base.yaml",
    ),
    UNSET_VARIABLE: Explanation(
        "Unset variable",
        "`${env:NAME}` needs NAME in the environment, or a default.",
        'placement: {project: "${env:PROJECT:-my-project}"}',
    ),
    INTERPOLATION_FORM: Explanation(
        "Unknown interpolation",
        "Only ${env:NAME} and ${env:NAME:-default} are known. A dollar before a brace is written $$.",
        'serving: {setup: ["echo $${HOME}"]}',
    ),
    INTERPOLATION_IN_KEY: Explanation(
        "Interpolation in a key", "Values may hold ${env:NAME}, keys may not.", "name: demo-${env:USER}"
    ),
    VARIABLE_NOT_ALLOWED: Explanation(
        "Environment variable that is not allowed",
        "An untrusted profile (in `ci`, in `mcp`, or with -untrusted) reads only the environment variables that the "
        "operator allows by name, with -allow-env or TPUDEPLOY_ALLOW_ENV (one name a line). The value of an allowed "
        "variable is part of the profile from then on: plans, comments and scripts show it.",
        "tpudeploy ci plan prod.yaml -allow-env REGION",
    ),
    SECRET_VARIABLE: Explanation(
        "Environment variable that looks like a secret",
        "What a profile reads from the environment is written into its startup script, its state and its plan. A "
        "variable whose name says TOKEN, SECRET, PASSWORD or KEY is therefore not read. Keep the value in Secret "
        "Manager; if it is no secret, allow the variable by its name.",
        "tpudeploy plan prod.yaml -allow-env CACHE_KEY",
    ),
    UNKNOWN_KEY: Explanation("Unknown key", "The format has no such key there.", "tpu: {type: v6e-4}"),
    MISSING_KEY: Explanation(
        "Missing key", "Required: version, name, model.id, tpu.type, serving.image.", "tpu: {type: v6e-4}"
    ),
    WRONG_TYPE: Explanation(
        "Wrong type",
        "The value is not of the key's type. Text that looks like a number needs quotes: 1.10 would become 1.1.",
        'model: {revision: "1.10"}',
    ),
    NOT_A_CHOICE: Explanation(
        "Value that is not one of the choices", "The key knows a few values only.", "serving: {kv_cache_dtype: fp8}"
    ),
    OUT_OF_RANGE: Explanation(
        "Number out of range", "The number is too small or too large.", "serving: {hbm_utilization: 0.9}"
    ),
    WRONG_FORM: Explanation(
        "Invalid format of a value", "The text is not of the form that the key needs.", "health: {timeout: 45m}"
    ),
    NOT_SUPPORTED: Explanation(
        "Not supported yet",
        "The key belongs to the format, but this version does not act on it; ignoring it would be worse.",
        "lifecycle: {update: in-place}",
    ),
    UNKNOWN_TYPE: Explanation("Unknown accelerator type", "The catalogue has no such TPU slice.", "tpu: {type: v6e-4}"),
    PARALLELISM: Explanation(
        "Impossible parallelism",
        "tensor_parallel_size x data_parallel_size chips are used; a slice has a fixed number, and the product must "
        "divide it.",
        "tpu: {type: v6e-4}\nserving: {tensor_parallel_size: 4}",
    ),
    RUNTIME_MISMATCH: Explanation(
        "Runtime for another TPU generation",
        "Each TPU generation has its own VM image.",
        "tpu: {runtime_version: v2-alpha-tpuv6e}",
    ),
    IDLE_CHIPS: Explanation(
        "Idle chips",
        "A warning: tensor_parallel_size x data_parallel_size uses fewer chips than the slice has, and is billed for.",
        "tpu: {type: v6e-4}\nserving: {tensor_parallel_size: 4}",
    ),
    UNKNOWN_FLAG: Explanation(
        "Unknown vLLM flag",
        "The pinned vLLM version has no such flag, so the server would not start.",
        "serving: {args: {seed: 1}}",
    ),
    FLAG_VALUE: Explanation(
        "Invalid value of a flag",
        "How a value is written comes from the flag: alone, as one word, as several, as JSON.",
        "serving: {args: {enable_prefix_caching: true}}",
    ),
    FLAG_HAS_KEY: Explanation(
        "Flag that has its own key", "What the format has a key for is written there.", "serving: {max_model_len: 8192}"
    ),
    FLAG_TWICE: Explanation(
        "Duplicate flag",
        "By an alias, or by `_` and `-`: which value was meant cannot be known.",
        "serving: {args: {seed: 1}}",
    ),
    VARIABLE_TWICE: Explanation(
        "Duplicate environment variable",
        "A variable comes from one place: a key, `env`, or `secrets`.",
        "serving: {padding_gap: 512}",
    ),
    VARIABLE_NAME: Explanation(
        "Invalid name of an environment variable",
        "Letters, digits and underscores, not beginning with a digit.",
        "serving: {env: {HF_HOME: /cache}}",
    ),
    SECRET_IN_ENV: Explanation(
        "Secret in a plain value",
        "Variables that hold credentials belong under `secrets`: what stands in `env` is written into the startup "
        "script, the state and the plan, and `docker inspect` shows it. A name with TOKEN, SECRET, PASSWORD or KEY in "
        "it is taken for a secret's, unless `serving.plain_env` names it.",
        "secrets: {HF_TOKEN: hf-token}",
    ),
    SECRET_REFERENCE: Explanation(
        "Invalid name of a secret",
        "A Secret Manager id, or projects/P/secrets/S/versions/V.",
        "secrets: {HF_TOKEN: projects/my-project/secrets/hf-token/versions/latest}",
    ),
    FLAG_NOT_SERVED: Explanation(
        "Flag that makes the endpoint unreachable",
        "An apply ends when a completion came back over HTTP from the port on the machine's address, and clients are "
        "given that endpoint. TLS, another address, a socket file, a path prefix or gRPC would keep both out.",
        "serving: {port: 8443}",
    ),
    FLAGS_TOGETHER: Explanation(
        "Incompatible flags",
        "vLLM refuses the combination when it starts, after the slice was granted and the image pulled.",
        "serving: {args: {enable_auto_tool_choice: true, tool_call_parser: gemma4}}",
    ),
    FLEX_WITHOUT_END: Explanation(
        "flex-start without a run duration",
        "Google grants flex-start for a time that is asked for.",
        "placement: {provisioning: [flex-start], max_run_duration: 12h}",
    ),
    RUN_TOO_LONG: Explanation(
        "Run duration longer than 7 days",
        "A slice with an end runs at most 7 days.",
        "placement: {max_run_duration: 7d}",
    ),
    RESERVED_ALONE: Explanation(
        "`reserved` without a reservation",
        "Which reservation is taken from must be said.",
        _RESERVED,
    ),
    RESERVATION_UNUSED: Explanation(
        "Unused reservation",
        "A reservation is only taken from by `reserved`, in its own zone.",
        _RESERVED,
    ),
    REPEATED: Explanation(
        "Duplicate choice", "In an order of preference, each stands once.", "placement: {provisioning: [spot]}"
    ),
    ZONE_UNKNOWN: Explanation(
        "Zone missing from the catalog",
        "A warning: the catalogue lists where a type has been seen, and zones change.",
        "placement: {zones: [us-east5-b]}",
    ),
    LABEL: Explanation(
        "Invalid label",
        "Lower case, digits, `_` and `-`, at most 63; keys begin with a letter.",
        "placement: {labels: {team: search}}",
    ),
    VOLUME: Explanation(
        "Invalid volume",
        "Absolute host path: absolute container path, each container path once.",
        "serving: {volumes: {/data: /data}}",
    ),
    UNKNOWN_PATH: Explanation(
        "Unknown path in `ignore_changes`",
        "`ignore_changes` lists paths of the format.",
        "lifecycle: {ignore_changes: [serving.image]}",
    ),
    VARIABLE_MISSPELT: Explanation(
        "Misspelled environment variable of the engine",
        "The name differs by a letter or two from one that vLLM or tpu_inference reads. The engine would start, and "
        "the variable would have no effect.",
        "serving: {env: {SKIP_JAX_PRECOMPILE: '1'}}",
    ),
    FLAG_NOT_ON_TPU: Explanation(
        "A flag that vLLM refuses on TPU",
        "The flag is for other hardware: vLLM on its TPU platform refuses it when it starts, after the slice was "
        "granted and the image pulled.",
        "serving: {args: {enable_sleep_mode: false}}",
    ),
    OTHER_ENGINE_VERSION: Explanation(
        "Image of another vLLM version",
        "A warning: the tables of flags and values, and the arithmetic of memory, are those of the version that "
        "`tpudeploy version` names. For an image of another one, what they would refuse is a warning, and sizes are "
        "estimates.",
        "serving: {image: vllm/vllm-tpu:v0.32.0}",
    ),
    NOT_A_TPU_IMAGE: Explanation(
        "Image for other hardware",
        "vLLM is published in one image for each kind of hardware; only that for TPU has tpu_inference and libtpu.",
        "serving: {image: vllm/vllm-tpu:v0.32.0}",
    ),
    FLOATING_IMAGE: Explanation(
        "Floating image tag",
        "A warning: the tag moves. What it is at the first apply is held in tpudeploy.lock.json from then on, so that "
        "two applies a day apart serve the same engine; commit that file.",
        "serving: {image: vllm/vllm-tpu:v0.32.0}",
    ),
}
