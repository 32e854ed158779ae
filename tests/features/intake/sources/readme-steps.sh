gcloud compute tpus queued-resources create my-qr --node-id my-tpu --project my-proj-123 --zone us-east5-b \
  --accelerator-type v6e-8 --runtime-version v2-alpha-tpuv6e --provisioning-model=flex-start --max-run-duration=4h
sudo docker run -it --rm --name $USER-vllm --privileged --net=host \
    -v /dev/shm:/dev/shm \
    --shm-size 150gb \
    --entrypoint /bin/bash vllm/vllm-tpu:v0.32.0
export HF_HOME=/dev/shm
export HF_TOKEN=<your HF token>
export MAX_MODEL_LEN=2048
export TP=8 # number of chips

vllm serve meta-llama/Llama-3.3-70B-Instruct \
    --seed 42 \
    --no-enable-prefix-caching \
    --async-scheduling \
    --gpu-memory-utilization 0.98 \
    --max-num-batched-tokens 512 \
    --max-num-seqs 256 \
    --tensor-parallel-size $TP \
    --max-model-len $MAX_MODEL_LEN
