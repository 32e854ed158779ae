# The server: started, watched until it is healthy, then sent one real request.

start_container() {
  report starting "Starting the container"
  record started "$(now)"
  local path output
  for path in "${host_paths[@]}"; do
    [[ -e $path ]] || mkdir -p "$path"
  done
  output=$(run_with_secrets 2>&1) || fail "docker run failed: $(short "$(printf '%s\n' "$output" | sed -n '/[^[:space:]]/p' | sed -n '$p')")"
  remember running "$spec"
}

run_with_secrets() (
  # A subshell: what is exported here reaches docker's client and ends with it.
  { set +x; } 2>/dev/null
  for index in "${!secret_values[@]}"; do
    export "${secret_variables[index]}=${secret_values[index]}"
  done
  exec timeout --kill-after=10 300 "${docker_run[@]}"
)

wait_until_healthy() {
  local waited pause=2 state milestone seen=
  for ((waited = 0; waited < patience; waited += pause)); do
    curl -sS -f -o /dev/null --max-time 5 "http://127.0.0.1:$port/health" 2>/dev/null && return
    state=$(container_state)
    [[ $state == true* ]] || fail "The container ended (exit code ${state#* }): $(cause_of_death)"
    milestone=$(last_milestone)
    if [[ $milestone != "$seen" ]]; then
      seen=$milestone
      report starting "$milestone"
    fi
    ((pause >= 10)) || pause=$((pause + 1))
    sleep "$pause"
  done
  fail "The server was not healthy within $patience s; it was at: ${seen:-its start}"
}

container_log() {
  timeout 60 docker logs --tail 400 "$name" 2>&1 || true
}

last_milestone() { # where the engine is; while it compiles, at its how manieth graph
  local line
  line=$(short "$(container_log | sed -n -E '/downloading weights|Checkpoint size|Loading safetensors|Memory statistics|KV cache size|Init kv-cache|Precompile|Warm-up call|init engine|startup complete/h; $ { g; p; }')")
  case $line in
    Precompile*' --> '* | 'Warm-up call'*) printf 'Compiling graph %s' "$(graphs_begun)" ;;
    *) printf '%s' "$line" ;;
  esac
}

graphs_begun() {
  { timeout 60 docker logs "$name" 2>&1 || true; } | grep -c 'Precompile .* -->' || true
}

keep_log() { # the boot of the server, in the script's log: what it says of its settings, and how long each part took
  local text
  text=$(redacted "$(timeout 60 docker logs "$name" 2>&1 || true)")
  printf '%s\n' "$text" | sed -n -e 's/^/  | /p' >&2
}

cause_of_death() { # the message that says why, also kept in the log with what stood around it
  local text pattern line=
  text=$(redacted "$(container_log)")
  printf '%s\n' "$text" | sed -n -e 's/^/  | /p' >&2
  for pattern in 'RESOURCE_EXHAUSTED' ' error: ' '(Error|Exception)(: |$)' '[^[:space:]]'; do
    line=$(printf '%s\n' "$text" | grep -v 'Engine core initialization failed' | message_of "$pattern")
    [[ -z $line ]] || break
  done
  printf '%s' "${line:-it printed nothing}"
}

message_of() { # message_of PATTERN: of stdin, the last line with it, and what its process adds to it in the next two
  local line text='' process='' lines=()
  while IFS= read -r line; do
    if [[ $line =~ $1 ]]; then
      process=${line%%)*} lines=("$line")
    elif ((${#lines[@]} > 0 && ${#lines[@]} < 3)) && [[ $line == "$process)"* ]]; then
      lines+=("$line")
    fi
  done
  for line in "${lines[@]}"; do
    line=$(short "$line")
    [[ -z $text || ! $line =~ ^(-----|Traceback|For simplicity|' '|$) ]] || break
    text=${text:+$text }$line
  done
  printf '%s' "${text:0:600}"
}
