# The watcher: a unit of systemd's beside the work, which waits for the metadata to tell of a change. No port is open,
# nobody logs in. Both units are transient: a boot starts them anew.

boot() {
  local change
  change=$(change_of_this_script)
  printf '%s' "$change" >"$runtime/change"
  cat "$script" >"$runtime/current.sh"
  if command -v systemd-run >/dev/null && start_watcher; then
    start_work "$change" --pipe --wait
  else
    say "systemd starts no unit here, so no change is seen before the next boot" | tee -a "$log"
    work work "$change" 2>&1 | tee -a "$log"
  fi
}

start_watcher() {
  start_unit --unit=tpudeploy-watcher --property=Restart=always "$BASH" "$runtime/current.sh" watch
}

start_work() { # start_work CHANGE OPTION...: killed from outside, it begins anew; stopped by a newer change, it does not
  start_unit --unit=tpudeploy-work --property=Restart=on-abnormal --property=TimeoutStopSec=30 "${@:2}" \
    "$BASH" "$runtime/current.sh" work "$1"
}

start_unit() { # start_unit OPTION... COMMAND...
  systemd-run --quiet --collect --setenv=HOME=/root --property=SyslogIdentifier=startup-script \
    --property=RestartSec=5 "$@"
}

change_of_this_script() { # nothing where the metadata changed between Google's look at them and ours: the watcher sees
  if [[ $(metadata_value instance/attributes/tpudeploy-spec) == "$spec" ]]; then
    metadata_value instance/attributes/tpudeploy-change || true
  fi
}

watch() {
  local answer change etag=
  while :; do
    answer=$(told_change "$etag") || answer=
    etag=$(printf '%s\n' "$answer" | sed -n 's/^[Ee][Tt][Aa][Gg]: *\([^[:space:]]*\).*/\1/p')
    change=$(printf '%s\n' "$answer" | sed -n '$p')
    # Without an answer, or with half of a change, it is asked again.
    if [[ -z $etag ]] || ! { [[ $change == "$(cat "$runtime/change" 2>/dev/null)" ]] || take "$change"; }; then
      etag=
      sleep 10
    fi
  done
}

told_change() { # told_change ETAG: headers and value, once it is no longer the one of ETAG
  curl -sS -f -i --max-time 330 -H 'Metadata-Flavor: Google' \
    "$metadata/instance/attributes/tpudeploy-change${1:+?wait_for_change=true&timeout_sec=300&last_etag=$1}" 2>/dev/null
}

take() { # take CHANGE: its script does the work, in the place of whatever is at work, and watches from here on
  local wanted
  wanted=$(metadata_value instance/attributes/tpudeploy-spec) || return 1
  metadata_value instance/attributes/startup-script >"$runtime/next.sh" || return 1
  [[ $(spec_of "$runtime/next.sh") == "$wanted" ]] || return 1
  say "The metadata tell of change $1: its script takes over" | tee -a "$log"
  mv "$runtime/next.sh" "$runtime/current.sh"
  systemctl stop tpudeploy-work >/dev/null 2>&1 || true
  start_work "$1" || return 1
  printf '%s' "$1" >"$runtime/change" # last: whoever is killed before has taken nothing
  exec "$BASH" "$runtime/current.sh" watch
}
