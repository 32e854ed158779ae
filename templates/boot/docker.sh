# Docker: there, running, and without a container of an earlier boot.

need_docker() {
  report docker "Looking for docker"
  command -v docker >/dev/null || install_docker
  local waited
  for ((waited = 0; waited < 120; waited += 2)); do
    timeout 30 docker version >/dev/null 2>&1 && return
    ((waited > 0)) || timeout 60 systemctl start docker >/dev/null 2>&1 || true
    sleep 2
  done
  fail "The docker daemon did not answer within 120 s; see: journalctl -u docker"
}

install_docker() {
  report docker "Installing docker"
  local delay
  for delay in 10 30 0; do
    # The lock: at a first boot, unattended-upgrades is often still at work.
    if apt_get update && apt_get install -y docker.io; then
      hash -r
      return
    fi
    sleep "$delay"
  done
  fail "This machine has no docker, and apt-get could not install docker.io: it needs a way out (NAT) or an image with docker"
}

remove_old_container() {
  local old
  remember running ""
  for old in "$name" "$(recall container)"; do
    [[ -z $old ]] || timeout 120 docker rm -f "$old" >/dev/null 2>&1 || true
  done
  remember container "$name"
}
