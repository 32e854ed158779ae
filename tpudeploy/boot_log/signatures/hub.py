"""Refusals of the Hugging Face hub, and reasons why it cannot be reached."""

from __future__ import annotations

from tpudeploy.boot_log.signatures.row import Signature

_MIRROR = "model.mirror serves the weights from a bucket of your own, without the hub."

ROWS: tuple[Signature, ...] = (
    Signature(
        name="model-gated",
        what="The model's owner does not let this token in",
        pattern=(
            r"GatedRepoError|You are trying to access a gated repo|Cannot access gated repo|is a gated repository"
            r"|you are not in the authorized list|403 Forbidden: Please enable access to public gated repositories"
        ),
        remedy=(
            "Accept the licence on the model's page with this token's account. Name the token in "
            "secrets.HF_TOKEN; `tpudeploy doctor` checks access to it."
        ),
        example=(
            "huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url "
            "https://huggingface.co/google/gemma-4-E2B-it/resolve/main/config.json."
        ),
    ),
    Signature(
        name="hub-token-invalid",
        what="The hub does not accept the token",
        pattern=(
            r"Invalid credentials in Authorization header|Invalid user token|User Access Token .{0,80} is expired"
        ),
        remedy=(
            "Put a valid token with read access into the secret behind secrets.HF_TOKEN: this one is wrong, "
            "expired or revoked. Look for a space or newline at its end."
        ),
        # huggingface_hub utils/_http.py: hf_raise_for_status
        example=(
            "huggingface_hub.errors.HfHubHTTPError: Client error '401 Unauthorized' for url "
            "'https://huggingface.co/google/gemma-4-E2B-it/resolve/main/config.json' Invalid credentials in "
            "Authorization header"
        ),
    ),
    Signature(
        name="hub-unauthorized",
        what="The hub refuses access to the model: the token is missing or bad, or there is no such model",
        pattern=(
            r"RepositoryNotFoundError(?!: 404)|Invalid username or password|401 Client Error.*huggingface\.co"
            r"|401 Unauthorized.*huggingface\.co|403 Forbidden: .*[Mm]ake sure your token"
            r"|CAS service error.{0,120}401 Unauthorized"
            r"|is not a local folder (?:and is not a valid model identifier|or a valid repository name)"
        ),
        remedy=(
            "The hub answers the same for a private model and for one that does not exist. Check secrets.HF_TOKEN "
            "(valid, and its account may read the model) and the spelling of model.id."
        ),
        # huggingface_hub utils/_http.py: hf_raise_for_status
        example=(
            "huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. Repository Not Found for url: "
            "https://huggingface.co/api/models/acme/private."
        ),
    ),
    Signature(
        name="hub-rate-limit",
        what="The hub limits how often this machine may ask",
        pattern=(
            r"429 Client Error|429 Too Many Requests|HTTP Error 429 thrown|'429 Too Many Requests'"
            r"|We had to rate limit you"
        ),
        remedy=(
            "Wait some minutes. Name a token in secrets.HF_TOKEN: without one, all machines behind an address "
            f"share a small limit. {_MIRROR}"
        ),
        # huggingface_hub utils/_http.py: hf_raise_for_status
        example=(
            "huggingface_hub.errors.HfHubHTTPError: 429 Too Many Requests: you have reached your 'resolvers' rate "
            "limit. Retry after 211 seconds"
        ),
    ),
    Signature(
        name="model-not-found",
        what="There is no such model, or it may not be downloaded",
        pattern=(
            r"HFValidationError: Repo id must|outgoing traffic has been disabled|RepositoryNotFoundError: 404"
            r"|OfflineModeIsEnabled"
        ),
        remedy=(
            "Correct model.id, and serving.args.tokenizer if it is set; a path must be absolute and exist in the "
            "container. With HF_HUB_OFFLINE the files must be there already."
        ),
        example=(
            "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name'"
        ),
    ),
    Signature(
        name="revision-not-found",
        what="The model has no such revision",
        pattern=r"is not a valid git identifier|RevisionNotFoundError|Revision Not Found for url",
        remedy="Correct model.revision: a branch, tag or commit of the model's repository on the hub.",
        # transformers utils/hub.py: cached_files
        example=(
            "OSError: v2 is not a valid git identifier (branch name, tag name or commit id) that exists for this model "
            "name. Check the model page at 'https://huggingface.co/google/gemma-4-E2B-it' for available revisions."
        ),
    ),
    Signature(
        name="hub-unreachable",
        what="The machine does not reach the hub",
        pattern=(
            r"We couldn't connect to 'https?://\S+' to load|Temporary failure in name resolution"
            r"|Name or service not known|Failed to resolve 'huggingface\.co'|Network is unreachable"
            r"|HTTPSConnectionPool\(host='(?:[\w-]+\.)*(?:huggingface\.co|hf\.co)'"
            r"|CERTIFICATE_VERIFY_FAILED"
            r"|An error happened while trying to locate the files? on the Hub|(?:httpx2?"
            r"|httpcore)\.Connect(?:Error|Timeout)"
            r"|(?:Local)?Entry ?NotFoundError: .*check your (?:internet )?connection"
        ),
        remedy=(
            "Give the machine a way out: an external address, or Cloud NAT in its network. Where it has one, the hub "
            f"may be down: see status.huggingface.co. {_MIRROR}"
        ),
        # transformers utils/hub.py: cached_files
        example=(
            "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the "
            "cached files."
        ),
    ),
    Signature(
        name="checkpoint-incomplete",
        what="The checkpoint lacks a required file",
        pattern=(
            r"does not appear to have (?:a )?files? named|EntryNotFoundError: 404 Client Error|Entry Not Found for url"
            r"|Cannot find any model weights with|No model weights found in|Cannot find any \S+ files in"
            r"|Following weights were not initialized from checkpoint|Could not detect config format for no config file"
            r"|No such file or directory: \"?[^\"\n]*\.safetensors|Weight files referenced in index but missing"
        ),
        remedy=(
            "Look at the model's files: safetensors, config.json and a tokenizer belong there (GGUF alone does "
            "not serve). In a bucket or folder of your own, copy the whole checkpoint again. Point model.id or "
            "model.mirror at the folder of config.json."
        ),
        # vLLM model_executor/model_loader/default_loader.py
        example="RuntimeError: Cannot find any model weights with `/models/gemma`",
    ),
    Signature(
        name="checkpoint-corrupt",
        what="A file of the checkpoint is damaged, or was not copied whole",
        pattern=(
            r"Error while deserializing header|SafetensorError|HeaderTooLarge|MetadataIncompleteBuffer"
            r"|incomplete metadata, file not fully covered|PytorchStreamReader failed|_pickle\.UnpicklingError"
            r"|Consistency check failed: file should be of size|not a valid JSON file"
        ),
        remedy=(
            "Delete the damaged copy (in the cache of the hub, the mirror's bucket or your folder) and fetch it again; "
            "compare its size with the hub's. A file of a few hundred bytes is a pointer of Git LFS: fetch the "
            "contents with `git lfs pull`."
        ),
        # safetensors 0.8 (its compiled module holds the text)
        example=(
            "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully "
            "covered"
        ),
    ),
    Signature(
        name="model-config-unreadable",
        what="vLLM could not read the model's configuration",
        pattern=r"Invalid repository ID or local directory specified",
        remedy=(
            "vLLM prints the same for a wrong model.id, a refused token and an unreachable hub; this log doesn't "
            "show the difference. Check model.id, secrets.HF_TOKEN and the machine's way out, in this order."
        ),
        # vLLM transformers_utils/config.py
        example=(
            "ValueError: Invalid repository ID or local directory specified: 'acme/gone'. Please verify the following "
            "requirements: 1. Provide a valid Hugging Face repository ID."
        ),
        is_consequence=True,
    ),
)
