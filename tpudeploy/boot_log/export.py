"""Make boot logs fit to be attached to an issue: no secret, no address, no account, no project, no bucket."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tpudeploy.config.tokens import masked

# Hosts that everybody uses, which say nothing about who ran it.
_PUBLIC = (
    r"(?:[\w-]+\.)*(?:googleapis\.com|google\.internal|huggingface\.co|hf\.co|github\.com|pypi\.org|pkg\.dev|gcr\.io"
    r"|docker\.io|docker\.com|vllm\.ai|pytorch\.org|python\.org|pydantic\.dev|readthedocs\.io|example\.com)"
    r"|localhost|0\.0\.0\.0|127\.[\d.]+"
)
# A name whose value is a secret. `tokens` with a number are a setting, and a tokenizer is none.
_PRIVATE_NAME = (
    r"[\w-]{0,64}(?:api[_-]?key|access[_-]?key|private[_-]?key|client[_-]?(?:id|secret|email)|secret|passw|passphrase|pwd\b"
    r"|credential|signature|\bsig\b|cookie|dsn\b|account[_-]?key|shared[_-]?access|webhook|connection[_-]?string|authorization|token(?!iz))[\w-]{0,64}"
)
_VALUE = r"(?:\[[^\]\n]*\]?|'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?|[^\s,}&;)]+)"
_TEXT = r"(?:'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?|\[[^\n]*)"

# What the keys of services begin with.
_PREFIXES = (
    r"glrt-|glsa_|gsk_|r8_|xai-|pplx-|nvapi-|npm_|pypi-|dckr_pat_|shp(?:at|ss|ca)_|do[opr]_v1_|[sr]k_(?:live|test)_|whsec_"
    r"|hv[sbr]\.|[\w-]{1,20}\.atlasv1\.|lin_api_|ntn_|secret_|NRAK-|AGE-SECRET-KEY-|dp\.(?:pt|st|ct|sa)\.|SG\.|key-|dapi"
    r"|sq0[a-z]{3}-|sbp_|figd_|PMAK-|xapp-|sl\.|EAAA|1//0|bot\d{6,12}:|\d{8,12}:AA|tskey-[a-z]{2,9}-|rnd_|fw_|phc_|pscale_\w+_"
)
# First parts of the paths of a server like ours; any other path on a private host may be a webhook's secret.
_OWN_PATHS = r"(?:v\d\w*|health|ping|metrics|version|tokenize|detokenize|invocations|load|docs|models|api/models)\b"

# Variables of the engine and its runtime, which explain a boot; the others of a dump of the environment do not.
_OWN_VARIABLES = (
    r"(?:VLLM|TPU|JAX|XLA|LIBTPU|HF_HUB|HF_HOME|MODEL_IMPL|NEW_MODEL|SKIP|NUM|PYTHON|RAY|TRANSFORMERS|USE|MOE)_?\w*"
    r"|PATH"
)
_NOT_A_NUMBER = r"(?!\*\*\*|(?<=s[=:])\d|(?<=s[=:] )\d|(?<=s['\"][=:] )\d|(?:None|null|True|False)\b)"

_ROWS: tuple[tuple[str, str], ...] = (
    # What people ask a model, and what it answers, as vLLM logs requests.
    (
        r"(?i)(\b(?:prompts?|prompt_token_ids|messages|content|completion|generated_text)['\"]?\s*[=:]\s*)" + _TEXT,
        r"\1***",
    ),
    # The environment as Python prints it, and as bash does.
    (r"environ\(\{[^\n]*", "environ({***})"),
    (rf"(?m)((?:^|: |\+ |\bexport |\bdeclare -x )(?!(?:{_OWN_VARIABLES})=)[A-Z][A-Z0-9_]+=){_VALUE}", r"\1***"),
    # The secret of a header, whatever its scheme and its name.
    (r"(?i)\b(bearer|basic|digest|negotiate)\s+(?=[\w+/=.~-]{6})[\w+/=.~-]+", r"\1 ***"),
    (
        (
            r"(?i)((?:(?:set-)?cookie|authorization|x-[\w-]{0,64}(?:key|token|auth)[\w-]{0,64})['\"]?\s*:\s*)"
            r"(?!['\"]?(?:bearer|basic|digest|negotiate) )(?:'[^'\n]*'?|\"[^\"\n]*\"?|[^'\"\n]*)"
        ),
        r"\1***",
    ),
    (r"(://)[^/\s@'\"]+@", r"\1***@"),
    (r"(?i)([?&](?:key|code|auth|pass|jwt|t)=)[^&\s\"']+", r"\1***"),
    # A password as curl, netrc and pgpass have it.
    (r"(\s(?:-u|--user|--proxy-user)[ =]['\"]?[^\s:'\"]+:)[^\s'\"]+", r"\1***"),
    (r"(\blogin\s+)\S+(\s+password\s+)\S+", r"\1***\2***"),
    (r"(?m)^((?:.*\s)?[\w.-]+:\d{2,5}:[\w*-]+:[\w*-]+:)\S+$", r"\1***"),
    (rf"(?<![\w-])(?:{_PREFIXES})[\w./+=-]{{16,}}", "***"),
    (r"-----BEGIN PGP PRIVATE KEY BLOCK-----(?s:.*?)(?:-----END PGP PRIVATE KEY BLOCK-----|\Z)", "***"),
    # The value of what is a secret by its name: in a mapping, a query, a variable, or after an option.
    (rf"(?i)((?<![\w-]){_PRIVATE_NAME}['\"]?\s*[=:]\s*){_NOT_A_NUMBER}{_VALUE}", r"\1***"),
    (r"(?i)(--[\w-]{0,64}(?:key|token|secret|password)\s+)(?!-)\S+", r"\1***"),
    # Keys in base64: letters in both cases, and digits. Digests are hexadecimal, and programs are called jit_NAME: both
    # stay, as do paths.
    (
        (
            r"(?<![\w+/=-])(?!jit_)(?=[\w+/-]{0,200}[a-z])(?=[\w+/-]{0,200}[A-Z])(?=[\w+/-]{0,200}\d)(?![\w-]*/[\w-]*/)"
            r"[A-Za-z0-9+/_-]{40,}={0,2}(?![\w+/=-])"
        ),
        "***",
    ),
    (r"[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,255}", "ACCOUNT"),
    (r"(?<=/home/)(?!ubuntu\b|vllm\b)[\w.-]+|(?<=/Users/)[\w.-]+", "USER"),
    (
        (
            r"(?i)(\bproject(?:[_-]?(?:id|number|name))?['\"]?\s*[=:]\s*['\"]?|\bproject\s+['\"`]|--project[= ]"
            r"|_PROJECT['\"]?\s*[=:]\s*['\"]?|user-project:\s*)(?!None\b|null\b)[\w.:-]+"
        ),
        r"\1PROJECT",
    ),
    (
        r"(?<=projects/)[\w.:-]+|(?<=\.c\.)[\w-]+(?=\.internal)|(?<=\bgcr\.io/)[\w-]+|(?<=pkg\.dev/)[\w-]+",
        "PROJECT",
    ),
    (
        (
            r"(?<=gs://)[\w.-]+|(?<=s3://)[\w.-]+|(?<=storage\.googleapis\.com/)(?!storage/|download/|upload/)[\w.-]+"
            r"|(?<=/b/)[\w.-]+(?=/o\b)|[\w.-]{1,222}(?=\.storage\.googleapis\.com)"
        ),
        "BUCKET",
    ),
    # Hosts: in a URL, as clients of HTTP name one, and by the endings of private networks.
    (
        (
            r"(?i)(://(?:\*\*\*@)?|\bhost['\"]?\s*[=:]\s*['\"]|\bresolve ['\"]|\bhost(?:name)?: )"
            rf"(?!(?:{_PUBLIC})(?![\w.-]))(?!\*|\[|(?:HOST|BUCKET)\b)(?=[\w-]*[a-z])[\w-]+(?:\.[\w-]+)*"
        ),
        r"\1HOST",
    ),
    (rf"(://(?:\*\*\*@)?HOST(?::\d+)?/)(?!{_OWN_PATHS})[^\s\"'<>)\],]+", r"\1***"),
    (
        (
            r"(?i)(?<![\w.-])(?!metadata\.google\.internal|[\w.-]*\.c\.PROJECT\.internal)(?:[\w-]+\.)+"
            r"(?:internal|local|corp|lan|intranet|private|home\.arpa)(?![\w-])(?!\.[a-z])"
        ),
        "HOST",
    ),
    (
        (
            r"(?<![\w.])(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"
            r"|(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{0,4}(?![\w:])"
            r"|(?<![\w:])(?=[0-9a-f:]*[0-9a-f])(?=[0-9a-f:]*::)(?!::1\b)(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])"
        ),
        "ADDRESS",
    ),
)
_PATTERNS = tuple((re.compile(pattern), replacement) for pattern, replacement in _ROWS)


def redact(text: str, names: Mapping[str, str]) -> str:
    """Return a log without what may be private. `names` are words to replace, such as a project's id, by others."""
    text = masked(text)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    for name in sorted(filter(None, names), key=len, reverse=True):  # one can be a part of another
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", names[name], text)
    return text


def report(head: Iterable[str], logs: Mapping[str, str], names: Mapping[str, str]) -> str:
    """Return the text of a file with some facts, and the logs by what they are called in it."""
    parts = [*head, ""]
    for title, text in logs.items():
        parts += [f"== {redact(title, names)}", redact(text, names).rstrip("\n"), ""]
    return "\n".join(parts)
