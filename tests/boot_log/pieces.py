"""What servers die of, as their programs write it: several lines each, behind the prefixes of their processes.

Two come from boots that were measured (tests/boot_log/data). The texts of vLLM, tpu_inference, transformers,
huggingface_hub, safetensors and uvicorn are those of the raise and log statements that `source` names, filled in as those
programs fill them in. The texts of docker, Artifact Registry, Linux and libtpu were not read at their source: UNVERIFIED.
Line numbers, request ids and the frames of tracebacks are constructed.
"""

from __future__ import annotations

from dataclasses import dataclass

API = "(APIServer pid=1) "
ENGINE = "(EngineCore pid=187) "
LOGGED = "(EngineCore pid=187) ERROR 11-22 10:03:20 [core.py:1349] "
NONE = ""


@dataclass(frozen=True)
class Death:
    """`prefix` stands before each line. `says`: words that the remedy must have; `never`: words that it must not."""

    signature: str
    source: str
    text: str
    prefix: str = API
    says: str = ""
    never: str = ""

    @property
    def lines(self) -> list[str]:
        return [f"{self.prefix}{line}" for line in self.text.strip("\n").split("\n")]


def _pydantic(config: str, sentence: str) -> str:
    return (
        f"Traceback (most recent call last):\n"
        f'  File "/workspace/vllm/vllm/entrypoints/openai/api_server.py", line 132, in build_async_engine_client\n'
        f"    vllm_config = engine_args.create_engine_config(usage_context=usage_context)\n"
        f"                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        f"pydantic_core._pydantic_core.ValidationError: 1 validation error for {config}\n"
        f"  Value error, {sentence} [type=value_error, input_value=ArgsKwargs((), {{'model':...}}), "
        f"input_type=ArgsKwargs]\n"
        f"    For further information visit https://errors.pydantic.dev/2.12/v/value_error"
    )


_REQUEST_ID = "(Request ID: Root=1-690f3c11-5f0c1a3b0c2d;7c1e)"
_HUB = "https://huggingface.co/acme/private/resolve/main/config.json"

DEATHS: tuple[Death, ...] = (
    Death(
        "heads-not-divisible",
        "vLLM config/model.py: verify_with_parallel_config",
        _pydantic("VllmConfig", "Total number of attention heads (8) must be divisible by tensor parallel size (3)."),
        says="one of 1, 2, 4, 8",
    ),
    Death(
        "batch-below-sequences",
        "vLLM config/scheduler.py: verify_max_model_len",
        _pydantic(
            "SchedulerConfig",
            "max_num_batched_tokens (128) must be greater than or equal to max_num_seqs (256).",
        ),
        says="128",
    ),
    Death(
        "configuration-refused",
        "vLLM config/parallel.py: _validate_parallel_config",
        _pydantic("ParallelConfig", "data_parallel_external_lb can only be set when data_parallel_size > 1"),
        says="data_parallel_external_lb can only be set when data_parallel_size > 1",
    ),
    Death(
        "configuration-refused",
        "pydantic 2: an error of a field",
        "Traceback (most recent call last):\n"
        '  File "/usr/local/bin/vllm", line 10, in <module>\n'
        "    sys.exit(main())\n"
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for CacheConfig\n"
        "block_size\n"
        "  Input should be greater than 0 [type=greater_than, input_value=-1, input_type=int]\n"
        "    For further information visit https://errors.pydantic.dev/2.12/v/greater_than",
        says="block_size: Input should be greater than 0",
    ),
    Death(
        "hub-unauthorized",
        "huggingface_hub utils/_http.py: hf_raise_for_status, RepoNotFound",
        "Traceback (most recent call last):\n"
        '  File "/usr/local/lib/python3.12/site-packages/huggingface_hub/utils/_http.py", line 953, in hf_raise\n'
        "    raise _format(RepositoryNotFoundError, message, response, repo_type=repo_type, repo_id=repo_id) from e\n"
        f"huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. {_REQUEST_ID}\n"
        "\n"
        f"Repository Not Found for url: {_HUB}.\n"
        "Please make sure you specified the correct `repo_id` and `repo_type`.\n"
        "If you are trying to access a private or gated repo, make sure you are authenticated and your token has the "
        "required permissions.\n"
        "For more details, see https://huggingface.co/docs/huggingface_hub/authentication\n"
        "Invalid username or password.",
        says="secrets.HF_TOKEN",
    ),
    Death(
        "hub-token-invalid",
        "huggingface_hub utils/_http.py: hf_raise_for_status, the last case",
        f"huggingface_hub.errors.HfHubHTTPError: Client error '401 Unauthorized' for url '{_HUB}' {_REQUEST_ID}\n"
        "For more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/401\n"
        "\n"
        "Invalid credentials in Authorization header",
        says="secrets.HF_TOKEN",
        never="model.id",
    ),
    Death(
        "model-gated",
        "transformers utils/hub.py: cached_files",
        "OSError: You are trying to access a gated repo.\n"
        "Make sure to have access to it at https://huggingface.co/google/gemma-4-E2B-it.\n"
        f"401 Client Error. {_REQUEST_ID}\n"
        "\n"
        f"Cannot access gated repo for url {_HUB}.\n"
        "Access to model google/gemma-4-E2B-it is restricted. You must have access to it and be authenticated to "
        "access it. Please log in.",
        says="licence",
    ),
    Death(
        "hub-rate-limit",
        "huggingface_hub utils/_http.py: hf_raise_for_status, 429",
        f"huggingface_hub.errors.HfHubHTTPError: {_REQUEST_ID}\n"
        "\n"
        "429 Too Many Requests: you have reached your 'resolvers' rate limit.\n"
        "Retry after 211 seconds (0/3000 requests remaining in current 300s window).",
        says="Wait",
    ),
    Death(
        "hub-unreachable",
        "transformers utils/hub.py: cached_files",
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the "
        "cached files.\n"
        "Check your internet connection or see how to run the library in offline mode at "
        "'https://huggingface.co/docs/transformers/installation#offline-mode'.",
        says="Cloud NAT",
    ),
    Death(
        "hub-unreachable",
        "huggingface_hub file_download.py: _raise_on_head_call_error",
        "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub "
        "and we cannot find the requested files in the local cache. Please check your connection and try again or "
        "make sure your Internet connection is on.",
    ),
    Death(
        "model-not-found",
        "huggingface_hub file_download.py: _raise_on_head_call_error, offline",
        "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache and "
        "outgoing traffic has been disabled. To enable hf.co look-ups and downloads online, set 'local_files_only' to "
        "False.",
    ),
    Death(
        "revision-not-found",
        "transformers utils/hub.py: cached_files",
        "OSError: v2 is not a valid git identifier (branch name, tag name or commit id) that exists for this model "
        "name. Check the model page at 'https://huggingface.co/google/gemma-4-E2B-it' for available revisions.",
        says="model.revision",
    ),
    Death(
        "model-type-unknown",
        "transformers models/auto/configuration_auto.py",
        _pydantic(
            "ModelConfig",
            "The checkpoint you are trying to load has model type `gemma9` but Transformers does not recognize this "
            "architecture. This could be because of an issue with the checkpoint, or because your version of "
            "Transformers is out of date.\n"
            "\n"
            "You can update Transformers with the command `pip install --upgrade transformers`.",
        ),
        says="newer serving.image",
    ),
    Death(
        "architecture-unsupported",
        "vLLM model_executor/models/registry.py: _raise_for_unsupported",
        _pydantic(
            "ModelConfig",
            "Model architectures ['Gemma9ForCausalLM'] are not supported for now. Supported architectures: "
            "dict_keys(['AfmoeForCausalLM', 'ApertusForCausalLM'])",
        ),
    ),
    Death(
        "checkpoint-incomplete",
        "vLLM model_executor/model_loader/default_loader.py: _prepare_weights",
        'Traceback (most recent call last):\n  File "/workspace/vllm/x.py", line 205, in _prepare_weights\n'
        "    raise RuntimeError(\n"
        "RuntimeError: Cannot find any model weights with `/models/gemma`",
        ENGINE,
    ),
    Death(
        "checkpoint-incomplete",
        "tpu_inference models/jax/utils/weight_utils.py: get_model_weights_files",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        "RuntimeError: Cannot find any *.safetensors files in google/gemma-4-E2B-it.",
        LOGGED,
    ),
    Death(
        "checkpoint-corrupt",
        "safetensors 0.8: the texts of its compiled module",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        '  File "/workspace/tpu_inference/tpu_inference/models/jax/utils/weight_utils.py", line 190, in weights\n'
        '    with safe_open(weights_file, framework="flax") as f:\n'
        "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully "
        "covered",
        LOGGED,
        says="fetch it again",
    ),
    Death(
        "checkpoint-mismatch",
        "tpu_inference models/jax/utils/weight_utils.py: assign",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        "RuntimeError: Failed to load weight 'model.layers.0.mlp.kernel' with shape (1536, 6144) into param with "
        "shape (1536, 12288)",
        LOGGED,
    ),
    Death(
        "weights-exceed-hbm",
        "tpu_inference worker/tpu_worker.py: determine_available_memory",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        "ValueError: total_hbm_used_gb=20.00GiB exceeds total_hbm_limit_cap_gb=15.62GiB by 4.38GiB. Please consider "
        "increasing --gpu-memory-utilization from 0.5 to a larger value.",
        LOGGED,
        says="Set serving.hbm_utilization to 0.66 or more (now 0.50)",
        never="No utilization helps",
    ),
    Death(
        "weights-exceed-hbm",
        "tpu_inference worker/tpu_worker.py: determine_available_memory",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        "ValueError: total_hbm_used_gb=48.09GiB exceeds total_hbm_limit_cap_gb=28.74GiB by 19.35GiB. Please consider "
        "increasing --gpu-memory-utilization from 0.92 to a larger value.",
        LOGGED,
        says="No utilization helps",
    ),
    Death(
        "no-room-for-kv",
        "vLLM v1/core/kv_cache_utils.py: _check_enough_kv_cache_memory",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        "initializing the engine. See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more "
        "details.",
        LOGGED,
    ),
    Death(
        "length-exceeds-kv",
        "vLLM v1/core/kv_cache_utils.py: _check_enough_kv_cache_memory (0.21 writes models's)",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        "ValueError: To serve at least one request with the models's max seq len (131072), (4.5 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (3.2 GiB). Based on the available memory, the "
        "estimated maximum model length is 93184. Try increasing `gpu_memory_utilization` or decreasing "
        "`max_model_len` when initializing the engine.",
        LOGGED,
        says="93184",
    ),
    Death(
        "too-few-chips-for-ranks",
        "tpu_inference worker/tpu_worker.py: init_device",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        "ValueError: Multi-process DP rank 1 needs TPU chips [4, 8) but the host only has 4 chips. Reduce "
        "--data-parallel-size or --tensor-parallel-size.",
        LOGGED,
    ),
    Death(
        "combination-unsupported",
        "tpu_inference platforms/tpu_platform.py: check_and_update_config",
        "Traceback (most recent call last):\n"
        "ValueError: Unsupported kv_connector 'NixlConnector' for the TPU platform. Expected one of "
        "['TPUConnector', 'TPUOffloadConnector'].",
    ),
    Death(
        "no-chips",
        "tpu_inference tpu_info.py: get_num_chips",
        "ERROR 11-22 10:00:05 [tpu_info.py:91] Failed to detect number of TPUs: [Errno 2] No such file or directory: "
        "'/dev/vfio'",
        NONE,
    ),
    Death(
        "chip-in-use",
        "jax issue 10192: libtpu's words",
        "RuntimeError: Unable to initialize backend 'tpu': ABORTED: The TPU is already in use by process with pid 41. "
        "Not attempting to load libtpu.so in this process. (set JAX_PLATFORMS='' to automatically choose an available "
        "backend)",
        ENGINE,
        says="libtpu_lockfile",
    ),
    Death(
        "chip-lock-file",
        "jax issue 13260: libtpu's words",
        "RuntimeError: Unable to initialize backend 'tpu': ABORTED: Internal error when accessing libtpu "
        'multi-process lockfile. Run "$ sudo rm /tmp/libtpu_lockfile".',
        ENGINE,
        says="rm -f /tmp/libtpu_lockfile",
    ),
    Death(
        "flag-refused",
        "Python's argparse, through vLLM's parser",
        "usage: vllm serve [model_tag] [options]\n"
        "vllm serve: error: argument --kv-cache-dtype: invalid choice: 'int9' (choose from auto, bfloat16, fp8)",
        NONE,
    ),
    Death(
        "flag-refused",
        "vLLM entrypoints/openai/cli_args.py: validate_parsed_serve_args",
        "Traceback (most recent call last):\n"
        '  File "/workspace/vllm/vllm/entrypoints/openai/cli_args.py", line 386, in validate_parsed_serve_args\n'
        '    raise TypeError("Error: --enable-auto-tool-choice requires --tool-call-parser")\n'
        "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser",
        NONE,
    ),
    Death(
        "port-taken",
        "asyncio base_events.py, logged by uvicorn/server.py",
        "INFO:     Started server process [1]\n"
        "INFO:     Waiting for application startup.\n"
        "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
        says="serving.port",
    ),
    Death(
        "port-taken",
        "Python's socket.bind",
        "Traceback (most recent call last):\n"
        '  File "/workspace/vllm/vllm/entrypoints/openai/api_server.py", line 519, in create_server_socket\n'
        "    sock.bind(addr)\n"
        "OSError: [Errno 98] Address already in use",
    ),
    Death(
        "chat-template-not-found",
        "vLLM entrypoints/chat_utils.py: validate_chat_template",
        "Traceback (most recent call last):\n"
        "ValueError: The supplied chat template string (/templates/chat.jinja) appears path-like, but doesn't exist! "
        "Tried: /templates/chat.jinja and /workspace/vllm/vllm/transformers_utils/chat_templates/chat.jinja",
    ),
    Death(
        "image-wrong-machine",
        "vLLM config/device.py",
        "RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG` to "
        "turn on verbose logging to help debug the issue.",
        NONE,
    ),
    Death(
        "killed",
        "vLLM v1/engine/utils.py: wait_for_engine_startup",
        "Traceback (most recent call last):\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): "
        "{'EngineCore': -9}",
        says="memory",
    ),
    Death(
        "disk-full",
        "moby, of a layer that does not go onto the disk",
        "2026-11-22T10:00:20Z image: Pulling it\n"
        "2026-11-22T10:02:00Z image: Pull failed, trying again in 5 s: failed to register layer: write "
        "/usr/local/lib/libtpu.so: no space left on device\n"
        "2026-11-22T10:09:00Z failed: The image could not be pulled in 6 attempts: failed to register layer: write "
        "/usr/local/lib/libtpu.so: no space left on device",
        NONE,
        says="tpu.boot_disk_size",
    ),
    Death(
        "pull-rate-limit",
        "https://docs.docker.com/docker-hub/usage/pulls/",
        "2026-11-22T10:00:20Z image: Pulling it\n"
        "2026-11-22T10:09:00Z failed: The image could not be pulled in 6 attempts: Error response from daemon: "
        "toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating and "
        "upgrading: https://www.docker.com/increase-rate-limit",
        NONE,
        says="Artifact Registry",
    ),
    Death(
        "registry-denied",
        "https://cloud.google.com/artifact-registry/docs/troubleshooting",
        "2026-11-22T10:00:20Z image: Pulling it\n"
        "2026-11-22T10:00:25Z failed: The image cannot be pulled: Error response from daemon: Head "
        '"https://us-docker.pkg.dev/v2/my-project/repo/vllm/manifests/v1": denied: Permission '
        '"artifactregistry.repositories.downloadArtifacts" denied on resource '
        '"projects/my-project/locations/us/repositories/repo" (or it may not exist)',
        NONE,
        says="roles/artifactregistry.reader",
    ),
    Death(
        "container-name-conflict",
        "moby daemon/names.go",
        "2026-11-22T10:00:30Z starting: Starting the container\n"
        "2026-11-22T10:00:31Z failed: docker run failed: docker: Error response from daemon: Conflict. The container "
        'name "/vllm" is already in use by container "5f0c1a3b". You have to remove (or rename) that container to be '
        "able to reuse that name.",
        NONE,
        says="docker rm -f vllm",
    ),
    Death(
        "killed",
        "templates/boot/server.sh",
        "2026-11-22T10:00:30Z starting: Starting the container\n"
        "2026-11-22T10:04:30Z failed: The container ended (exit code 137): it printed nothing",
        NONE,
        says="memory",
    ),
    Death(
        "ready-timeout",
        "templates/boot/server.sh",
        "2026-11-22T10:00:30Z starting: Compiling graph 87\n"
        "2026-11-22T10:45:30Z failed: The server was not healthy within 2700 s; it was at: Compiling graph 87",
        NONE,
        says="health.timeout (now 2700 s)",
    ),
    Death(
        "secret-denied",
        "templates/boot/secrets.sh",
        "2026-11-22T10:00:30Z failed: The VM's service account vm@p.iam.gserviceaccount.com may not read secret "
        "hf-token: grant it roles/secretmanager.secretAccessor. Google says: Permission denied",
        NONE,
        says="roles/secretmanager.secretAccessor",
    ),
    Death(
        "startup-failed",
        "templates/boot/mirror.sh",
        "2026-11-22T10:00:30Z failed: There is no place for the weights: /mnt/weights cannot be made",
        NONE,
        says="There is no place for the weights",
    ),
    Death(
        "parser-of-other-model",
        "vLLM reasoning/basic_parsers.py",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        '  File "/workspace/vllm/vllm/reasoning/basic_parsers.py", line 64, in __init__\n'
        "    raise RuntimeError(\n"
        "RuntimeError: DeepSeekR1ReasoningParser reasoning parser could not locate think start/end tokens in the "
        "tokenizer!",
        LOGGED,
        says="serving.args.reasoning_parser",
    ),
    Death(
        "speculation-unsupported",
        "tpu_inference runner/tpu_runner.py: _init_speculative_decoding",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        "NotImplementedError: Unsupported speculative decoding method: suffix",
        LOGGED,
        says="ngram, eagle3, dflash and mtp",
    ),
    Death(
        "speculation-unsupported",
        "vLLM config/speculative.py: __post_init__",
        "Traceback (most recent call last):\n"
        '  File "/workspace/vllm/vllm/config/speculative.py", line 1389, in __post_init__\n'
        "    raise NotImplementedError(\n"
        "NotImplementedError: Unsupported speculative method: 'mtp'",
        says="names the draft",
    ),
    Death(
        "adapter-missing",
        "vLLM exceptions.py: LoRAAdapterNotFoundError, entrypoints/openai/models/serving.py",
        "Traceback (most recent call last):\n"
        '  File "/workspace/vllm/vllm/entrypoints/openai/models/serving.py", line 139, in init_static_loras\n'
        "    raise ValueError(load_result.error.message)\n"
        "ValueError: Loading lora sql failed: No adapter found for /lora/sql",
        says="mount the folder that holds /lora/sql",
    ),
    Death(
        "adapter-rank",
        "vLLM lora/peft_helper.py: validate_legal",
        "Traceback (most recent call last):\n"
        '  File "/workspace/vllm/vllm/entrypoints/openai/models/serving.py", line 139, in init_static_loras\n'
        "    raise ValueError(load_result.error.message)\n"
        "ValueError: LoRA rank 48 is greater than max_lora_rank 16.",
        says="max_lora_rank to 64",
    ),
    Death(
        "variable-refused",
        "tpu_inference envs.py: env_bool",
        "Traceback (most recent call last):\n"
        "ValueError: Invalid boolean value 'yes' for NEW_MODEL_DESIGN. Valid options: '0', '1', 'true', 'false', "
        "'True', 'False'.",
        says="serving.env.NEW_MODEL_DESIGN",
    ),
    Death(
        "tokenizer-missing",
        "transformers tokenization_utils_base.py: from_pretrained",
        "Traceback (most recent call last):\n"
        "OSError: Can't load tokenizer for 'acme/base'. If you were trying to load it from "
        "'https://huggingface.co/models', make sure you don't have a local directory with the same name. Otherwise, "
        "make sure 'acme/base' is the correct path to a directory containing all relevant files for a GemmaTokenizer "
        "tokenizer.",
        says="serving.args.tokenizer",
    ),
    Death(
        "checkpoint-incomplete",
        "vLLM model_executor/model_loader/weight_utils.py: filter_duplicate_safetensors_files",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        "FileNotFoundError: Weight files referenced in index but missing: "
        "{'/mnt/weights/model-00002-of-00003.safetensors'}",
        LOGGED,
        says="copy the whole checkpoint again",
    ),
    Death(
        "no-room-for-array",
        "libtpu, in huggingface/diffusers issue 8358",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 4.39G. "
        "That was not possible. There are 2.30G free.; (0x0x0_HBM0)",
        LOGGED,
        says="serving.hbm_utilization",
    ),
    Death(
        "no-room-for-program",
        "libtpu, in AI-Hypercomputer/tpu-recipes issue 151",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Error loading program 'jit__multi_slice': Attempting to "
        "reserve 6.14G at the bottom of memory. That was not possible. There are 3.11G free, 0B reserved, and 3.11G "
        "reservable.",
        LOGGED,
        says="Compiled programs need room",
    ),
    Death(
        "stopped",
        "vLLM entrypoints/launchers/api_server/entry.py: signal_handler",
        "Traceback (most recent call last):\n"
        '  File "/workspace/vllm/vllm/entrypoints/launchers/api_server/entry.py", line 172, in signal_handler\n'
        '    raise KeyboardInterrupt("terminated")\n'
        "KeyboardInterrupt: terminated",
        says="docker stop",
    ),
    Death(
        "engine-timeout",
        "vLLM v1/engine/core_client.py: MPClient.__init__",
        "Traceback (most recent call last):\n"
        "TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight "
        "loading for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S). To increase the timeout, "
        "set the environment variable: VLLM_ENGINE_READY_TIMEOUT_S=<seconds>",
        says="serving.env (now 600 s)",
    ),
    Death(
        "image-wrong-machine",
        "runc, through docker run: an image without vLLM",
        "2026-11-22T10:00:30Z starting: Starting the container\n"
        "2026-11-22T10:00:31Z failed: docker run failed: docker: Error response from daemon: failed to create task for "
        "container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start "
        'container process: exec: "vllm": executable file not found in $PATH: unknown.',
        NONE,
        says="serving.image",
    ),
    Death(
        "unknown",
        "vLLM v1/engine/utils.py: wait_for_engine_startup, where a process of the API server failed",
        "Traceback (most recent call last):\n"
        "RuntimeError: Frontend process failed during engine core initialization. See root cause above. Failed frontend "
        "proc(s): {'ApiServer_1': 1}",
        says="Read the whole log of the container",
    ),
    Death(
        "unknown",
        "flax: an error of which we know nothing",
        "EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        '  File "/usr/local/lib/python3.12/site-packages/flax/nnx/graph.py", line 9, in split\n'
        '    raise ValueError("No available memory for the cache blocks")  # only quoted code\n'
        "flax.errors.TraceContextError: Cannot mutate Param from a different trace level",
        LOGGED,
        says="no remedy",
    ),
)
