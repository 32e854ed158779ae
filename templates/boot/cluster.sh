# Several hosts: one Ray over all workers of the slice, and one server. Every worker runs this script. Worker 0 is the
# head: clients reach the server there.
#
# The container on each host holds Ray, and the server is a process in the head's. A change of the server's flags ends
# that process and starts another one; Ray, the image and the weights stay. A change of the container itself (image,
# variables, volumes, secrets, setup) starts a new Ray on a port of its own, so that no host joins the Ray of another
# version.
# A worker replaces its container after the head did: until then the server before serves on (decision 64).

rank=
workers=()   # of a group at Compute Engine: the names of its machines, the head first
addresses=() # of all workers, in their order
# Commands in the head's container. Each has its name as $0, which a list of processes shows.
# The server's output goes to that of the container's first process, which is what docker logs shows. That process may
# not reap what others leave behind, so a process that has ended may still be listed, as a zombie.
# shellcheck disable=SC2016 # bash in the container expands them
start_in_container='
folder=/tmp/tpudeploy && rm -rf "$folder" && mkdir -p "$folder" && set -m || exit
{ "$@" >/proc/1/fd/1 2>/proc/1/fd/2; printf "%s" "$?" >"$folder/code"; } </dev/null >/dev/null 2>&1 &
printf "%s" "$!" >"$folder/group"'
# shellcheck disable=SC2016
lives_in_container='
lives() {
  local file line
  for file in /proc/[0-9]*/stat; do
    read -r line <"$file" || continue
    read -ra line <<<"${line##*) }"
    [[ ${line[2]} != "$1" || ${line[0]} == Z ]] || return 0
  done 2>/dev/null
  return 1
}
group=$(cat /tmp/tpudeploy/group 2>/dev/null)'
# shellcheck disable=SC2016
state_in_container=$lives_in_container'
if [[ -e /tmp/tpudeploy/code ]]; then printf "false %s" "$(cat /tmp/tpudeploy/code)"
elif [[ -n $group ]] && lives "$group"; then printf "true 0"
else printf "false unknown"; fi'
# shellcheck disable=SC2016
stop_in_container=$lives_in_container'
[[ -n $group ]] || exit 0
kill -TERM -- "-$group" 2>/dev/null
for ((waited = 0; waited < 30; waited++)); do lives "$group" || exit 0; sleep 1; done
kill -KILL -- "-$group" 2>/dev/null
exit 0'
nodes_in_container='
import ray
ray.init(address="auto", logging_level="ERROR", log_to_driver=False)
print(*sorted(node["NodeManagerAddress"] + " " + node["NodeID"] for node in ray.nodes() if node["Alive"]), sep="\n")'

find_rank() { # the TPU API numbers the workers, and their host names end with the same number; a group names them
  local number names own
  names=$(metadata_value instance/attributes/tpudeploy-workers 2>/dev/null) || names=
  if [[ -n $names ]]; then
    own=$(metadata_value instance/name 2>/dev/null) || own=$(hostname)
    IFS=, read -ra workers <<<"$names"
    for number in "${!workers[@]}"; do
      [[ ${workers[number]} != "$own" ]] || rank=$number
    done
    return 0
  fi
  number=$(metadata_value instance/attributes/agent-worker-number 2>/dev/null) || number=$(hostname)
  number=${number##*-w-}
  [[ ! $number =~ ^[0-9]+$ ]] || rank=$((10#$number))
}

is_head() {
  [[ $rank == 0 ]]
}

find_hosts() {
  local waited
  if [[ -z $rank ]]; then
    ((${#workers[@]} == 0)) || fail "This machine is none of the workers that its metadata names: ${workers[*]}"
    fail "The metadata does not say which worker of the slice this is (agent-worker-number)"
  fi
  for ((waited = 0; waited <= 300; waited += 10)); do
    read_addresses
    ((${#addresses[@]} < hosts || rank >= hosts)) || return 0
    sleep 10
  done
  ((${#workers[@]} == 0)) ||
    fail "The internal DNS knows ${#addresses[@]} of the $hosts workers of this slice; ${workers[${#addresses[@]}]} is not among them"
  fail "The metadata names ${#addresses[@]} of the $hosts workers of this slice (worker-network-endpoints), and this is worker $rank"
}

read_addresses() { # from `unknown:unknown:10.0.0.2,unknown:unknown:10.0.0.3`, or of names in the zone's own domain
  local text endpoint endpoints=()
  if ((${#workers[@]} > 0)); then
    addresses=()
    text=$(metadata_value instance/hostname 2>/dev/null) || return 0
    for endpoint in "${workers[@]}"; do
      endpoint=$(getent ahostsv4 "$endpoint.${text#*.}") || return 0
      addresses+=("${endpoint%% *}")
    done
    return 0
  fi
  text=$(metadata_value instance/attributes/worker-network-endpoints 2>/dev/null) || text=
  IFS=, read -ra endpoints <<<"$text"
  addresses=()
  for endpoint in "${endpoints[@]}"; do
    addresses+=("${endpoint##*:}")
  done
}

container_state() { # of the server, on the head: its end is the end that counts; elsewhere of Ray
  local state
  state=$(ray_state)
  if is_head && [[ $state == true* ]]; then
    state=$(timeout 60 docker exec "$name" /bin/bash -c "$state_in_container" tpudeploy-state 2>/dev/null) || state='true 0'
  fi
  printf '%s' "$state"
}

ray_state() { # "true 0" while the container runs; a docker that does not answer is no evidence that it ended
  local status=0
  timeout 60 docker inspect -f '{{.State.Running}} {{.State.ExitCode}}' "$name" 2>/dev/null || status=$?
  case $status in
    0) ;;
    124) printf 'true 0' ;;
    *) printf 'false unknown' ;;
  esac
}

has_this_ray() { # whether the container that runs is the one that this script would start
  [[ $(recall cluster) == "$cluster" && $(ray_state) == true* ]]
}

start_ray() {
  local own=${addresses[rank]}
  local words=("${docker_run[@]}") join=(--head "--port=$ray_port")
  is_head || join=("--address=${addresses[0]}:$ray_port")
  remember cluster ""
  remove_old_container
  free_the_chip
  docker_run=("${words[@]:0:3}" -e "VLLM_HOST_IP=$own" "${words[@]:3}" "${join[@]}" "--node-ip-address=$own")
  start_container
  docker_run=("${words[@]}")
  remember cluster "$cluster"
}

listens() { # listens ADDRESS PORT: whatever answers there, for Ray does not speak HTTP
  local status=0
  curl -s -o /dev/null --max-time 5 "http://$1:$2/" 2>/dev/null || status=$?
  ((status != 6 && status != 7 && status != 28))
}

lead() { # worker 0
  if has_this_ray; then
    stop_server
    free_the_chip
  else
    start_ray
  fi
  await_workers
  start_server
  wait_until_healthy
  keep_log
  ask_for_an_answer
  if declare -F run_own >/dev/null; then
    run_own after starting "${own_after[@]}"
  fi
  keep_as_served
  note_service
  report_at_once serving "Healthy, and $proof, on $hosts hosts"
  remember_start
}

stop_server() {
  report starting "Ending the server before"
  remember running ""
  timeout 90 docker exec "$name" /bin/bash -c "$stop_in_container" tpudeploy-stop >/dev/null 2>&1 ||
    say "The server before could not be ended by its own container"
}

await_workers() {
  local waited nodes missing=
  for ((waited = 0; waited < patience; waited += 10)); do
    nodes=$(ray_nodes)
    missing=$(missing_workers "$nodes")
    if [[ -z $missing ]]; then
      remember nodes "$nodes"
      return 0
    fi
    [[ $(ray_state) == true* ]] || fail "Ray ended on the head: $(cause_of_death)"
    report starting "Waiting for $missing to join Ray"
    sleep 10
  done
  fail "After $patience s, $missing did not join Ray"
}

ray_nodes() { # a line for each host that is part of Ray now: its address and its name there; nothing without an answer
  timeout 60 docker exec "$name" python3 -c "$nodes_in_container" 2>/dev/null || true
}

missing_workers() { # missing_workers NODES: "worker 2 (10.0.0.4), worker 3 (10.0.0.5)"
  local index missing=
  for index in "${!addresses[@]}"; do
    [[ $'\n'$1 == *$'\n'"${addresses[index]} "* ]] || missing+="${missing:+, }worker $index (${addresses[index]})"
  done
  printf '%s' "$missing"
}

start_server() {
  local output
  report starting "Starting the server"
  record started "$(now)"
  output=$(timeout 60 docker exec "$name" /bin/bash -c "$start_in_container" tpudeploy-start "${server[@]}" 2>&1) ||
    fail "docker exec failed: $(short "$(printf '%s\n' "$output" | sed -n '$p')")"
  remember running "$spec"
}

join_in() { # every other worker
  if ! has_this_ray; then
    await_head
    start_ray
  fi
  await_server
  if declare -F run_own >/dev/null; then
    run_own after starting "${own_after[@]}"
  fi
  keep_as_served
  note_service
  report_at_once serving "Joined Ray, and the server is healthy"
}

await_head() {
  local waited
  for ((waited = 0; waited < patience; waited += 10)); do
    ! listens "${addresses[0]}" "$ray_port" || return 0
    report starting "Waiting for Ray of worker 0 at ${addresses[0]}:$ray_port"
    sleep 10
  done
  fail "Ray of worker 0 did not listen at ${addresses[0]}:$ray_port within $patience s. Either worker 0 failed, or a firewall keeps the workers apart"
}

await_server() {
  local waited before
  before=$(sed -n 's/^ray_port=//p' "$memory/served.sh" 2>/dev/null || true)
  for ((waited = 0; waited < patience; waited += 10)); do
    if [[ $(ray_state) != true* ]]; then
      if listens "${addresses[0]}" "$ray_port"; then
        report starting "Joining Ray of worker 0 again"
        start_ray
      elif [[ -n $before && $before != "$ray_port" ]] && listens "${addresses[0]}" "$before"; then
        fail "Worker 0 went back to the server before"
      fi
    elif curl -sS -f -o /dev/null --max-time 5 "http://${addresses[0]}:$port/health" 2>/dev/null; then
      remember running "$spec"
      return 0
    fi
    report starting "Waiting for the server of worker 0"
    sleep 10
  done
  fail "The server of worker 0 was not healthy within $patience s"
}

# What served and ended is brought up again: Ray on a worker that lost its head, or the server after a worker came back.
start_guard() { # in the place of that of another script
  has_systemd || return 0
  systemctl stop tpudeploy-guard >/dev/null 2>&1 || true
  start_unit --unit=tpudeploy-guard --property=Restart=always "$BASH" "$script" guard ||
    say "systemd did not start the guard, so a server that ends is not started again"
}

guard() {
  while sleep 60; do
    if ! lives tpudeploy-work && [[ $(cat "$facts/phase" 2>/dev/null) == serving ]] && is_broken; then
      tell "The server or Ray ended on this host: it is brought up again"
      start_work "$(cat "$runtime/change")" || true
    fi
  done
}

is_broken() {
  local nodes
  [[ $(container_state) != false* ]] || return 0
  is_head || return 1
  nodes=$(ray_nodes)
  # A worker that came back is another node of Ray, of which the server knows nothing; it may hang without an error.
  [[ -n $nodes && $nodes != "$(recall nodes)" ]]
}
