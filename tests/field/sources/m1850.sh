docker run -it --rm --privileged --net=host --shm-size 10gb \
  -v /home/me/.cache/huggingface:/root/.cache/huggingface \
  -e HF_TOKEN=$HF_TOKEN \
  vllm/vllm-tpu:nightly-20260303-1f005dc-4034c3d \
  vllm serve Qwen/Qwen3-VL-8B-Instruct --tensor-parallel-size 4 --dtype bfloat16 --max-model-len 22528 --max-num-seqs 16 \
  --max-num-batched-tokens 22528 --gpu-memory-utilization 0.5 --port 7000 --trust-remote-code --enable-log-requests --no-async-scheduler
