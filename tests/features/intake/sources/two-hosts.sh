#!/bin/bash
MODEL=Qwen/Qwen3-32B
gcloud compute tpus tpu-vm ssh pair --zone=us-east5-b --worker=all --command "
FIRST=\$(curl -s http://metadata.google.internal/x)
sudo docker run -d --privileged --net=host \\
  -e JAX_COORDINATOR_ADDRESS=\$FIRST:8476 \\
  -e JAX_NUM_PROCESSES=2 \\
  -e TPU_WORKER_ID=0 \\
  vllm/vllm-tpu:v0.32.0 \\
  vllm serve $MODEL --tensor-parallel-size 8 --max-model-len 4096
"
