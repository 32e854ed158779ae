#! /bin/bash
# startup script of a TPU VM
set -euxo pipefail
MODEL_ID=$(curl -s -H "Metadata-Flavor: Google" http://metadata/model)
HF_TOKEN=$(gcloud secrets versions access latest --secret=hf)
IMAGE=${IMAGE:-vllm/vllm-tpu:v0.32.0}
apt-get update && apt-get install -y docker.io
docker pull "$IMAGE"
for i in 1 2 3; do sleep 1; done
cat > /etc/motd <<'EOF'
It's "fine
EOF
docker run -d --name vllm --restart unless-stopped --privileged --net=host \
  -v /mnt/disks/persist:/root/.cache/huggingface \
  -e HF_TOKEN="$HF_TOKEN" \
  "$IMAGE" \
  sh -c 'vllm serve google/gemma-4-31B-it \
     --tensor-parallel-size=8 \
     --max-model-len=16384 --max-num-batched-tokens 4096 --disable_chunked_mm_input'
until curl -sf localhost:8000/health; do sleep 5; done
