# The router: installed, kept running, given each list of replicas, and sent a real request.

boot() { # also by hand: a unit that works is left alone
  cat "$script" >"$runtime/router.sh"
  lives tpudeploy-router-work ||
    start_unit --unit=tpudeploy-router-work --property=Restart=always "$BASH" "$runtime/router.sh" work
}

work() { # whatever fails is reported, and tried again: systemd starts this unit again
  local change
  trap 'broken_line=$LINENO' ERR
  trap 'stopped $?' EXIT
  trap 'trap - EXIT; end_reporter; stop_end_listener; exit 143' TERM
  change=$(metadata_value instance/attributes/tpudeploy-change)
  record spec "$spec"
  record change "$change"
  report_at_once booted "Starting the router of $name"
  start_reporter
  note_once first-booted
  start_end_listener
  ((${#secret_variables[@]} == 0)) || read_secrets
  install_router
  write_files
  follow "$change"
}

stopped() { # stopped STATUS
  trap - EXIT ERR
  end_reporter
  stop_end_listener
  report_at_once failed "${verdict:-"The startup script broke at its line ${broken_line:-?}; its log is $log"}"
  sleep 60
  exit 1
}

install_router() {
  report image "Installing ${command[0]}"
  local delay
  if ! command -v "$(program)" >/dev/null; then
    for delay in 10 30 0; do
      # The lock: at a first boot, unattended-upgrades is often still at work.
      ! { apt_get update && apt_get install -y "${packages[@]}" && install_requirement; } || return 0
      sleep "$delay"
    done
    fail "This machine could not install ${command[0]}: it needs a way out (an external address, or NAT)"
  fi
}

install_requirement() {
  [[ -n $requirement ]] || return 0
  python3 -m venv "$environment" && "$environment/bin/python" -m pip install --quiet "$requirement" 2>&1
}

program() {
  if [[ -n $requirement ]]; then printf '%s' "$environment/bin/${command[0]}"; else printf '%s' "${command[0]}"; fi
}

write_files() {
  mkdir -p "$(dirname "$folder/$list_path")"
  local index
  for index in "${!file_paths[@]}"; do
    printf '%s' "${file_texts[index]}" >"$folder/${file_paths[index]}"
  done
  rm -f "$runtime/loaded"
}

follow() { # follow CHANGE: keep the list of replicas current, until the metadata name another change
  local answer change etag='' phase=''
  while :; do
    if take_list && keep_router; then
      if [[ $phase != serving ]] && answers; then
        phase=serving
        note_service
        report_at_once serving "Healthy, and $proof"
      elif [[ $phase != serving ]]; then
        report starting "No replica has answered through the router yet"
      fi
    else
      etag=
    fi
    refresh_report
    answer=$(changed_value instance/attributes/tpudeploy-replicas "$etag" "$([[ $phase == serving ]] && echo 60 || echo 10)") ||
      answer=
    etag=$(etag_of "$answer")
    [[ -n $etag ]] || sleep 10
    change=$(metadata_value instance/attributes/tpudeploy-change) || change=$1
    [[ $change == "$1" ]] || start_again
  done
}

take_list() { # give the router the list of the metadata; nothing to do where it has it
  local digest
  metadata_value instance/attributes/tpudeploy-replicas >"$folder/.list" 2>/dev/null || return 1
  digest=$(sha256sum <"$folder/.list")
  digest=${digest:0:16}
  [[ $digest != "$(cat "$runtime/loaded" 2>/dev/null)" ]] || return 0
  mv -f "$folder/.list" "$folder/$list_path"
  if lives tpudeploy-router; then
    [[ -z $reloads ]] || systemctl kill --kill-whom=main --signal=SIGUSR2 tpudeploy-router
    sleep 3 # the routers read a changed file within a second
  else
    keep_router || return 1
  fi
  printf '%s' "$digest" >"$runtime/loaded"
  say "The router has the list of replicas $digest"
  # From here on it sends no request to a replica that is not on the list.
  record loaded "$digest"
  write_report "$turn_seconds"
}

keep_router() { # a transient unit that systemd gave up is started again
  lives tpudeploy-router || {
    start_unit --unit=tpudeploy-router --property=Restart=always --property=WorkingDirectory="$folder" \
      --property=LimitNOFILE=65536 "$(command -v "$(program)")" "${command[@]:1}" || return 1
  }
}

start_again() { # another change: this script's work begins again, and the router with it
  systemctl stop tpudeploy-router >/dev/null 2>&1 || true
  trap - EXIT
  end_reporter
  stop_end_listener
  exec "$BASH" "$runtime/router.sh" work
}

start_end_listener() {
  set -m
  listen_for_end </dev/null &
  end_listener=$!
  set +m
}

stop_end_listener() {
  [[ -z $end_listener ]] || kill -TERM -- "-$end_listener" 2>/dev/null || true
  end_listener=
}

# A router has requests for as long as a replica is behind it: without one for the time of lifecycle.idle, it ends too.

note_use() { # once a minute: $runtime/used has the last time at which a replica answered through the router
  local reply
  reply=$(curl -sS --max-time 10 -w '\n%{http_code}' "http://127.0.0.1:$port/v1/models" 2>/dev/null) || reply=000
  # 401, too, is a replica's answer.
  [[ -s $runtime/used && ${reply##*$'\n'} == @(000|5??) ]] || now >"$runtime/used"
}

last_use() {
  local used
  read_file "$runtime/used" used
  used=${used%$'\n'}
  [[ ! $used =~ ^[0-9]{10,}$ ]] || printf '%s' "$used"
}

idle_time() { # idle_time KEY
  [[ $1 != lifecycle.idle ]] || printf ', no replica behind it for %s min' "$((($(now) - $(last_use)) / 60))"
}

tell() { # tell TEXT: what it says is in the log
  say "$1"
}
