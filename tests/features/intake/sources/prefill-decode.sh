vllm serve Qwen/Qwen3-8B --port 8100 --kv-transfer-config '{"kv_connector":"TPUConnector","kv_role":"kv_producer"}' &
vllm serve Qwen/Qwen3-8B --port 8200 --kv-transfer-config '{"kv_connector":"TPUConnector","kv_role":"kv_consumer"}' &
