# The watcher: a unit of systemd's beside the work, which waits for the metadata to tell of a change. No port is open,
# nobody logs in. Both units are transient: a boot starts them anew.

listener=

boot() {
  local change
  change=$(change_of_this_script)
  if ! has_systemd; then
    take_place "$change"
    tell "This machine does not run systemd, so a change is seen only at the next boot"
    work work "$change" 2>&1 | tee -a "$log"
  elif lives tpudeploy-watcher || lives tpudeploy-work; then
    repeat_by_hand "$change"
  else
    take_place "$change"
    need_watcher
    start_work "$change" --pipe --wait
  fi
}

tell() { # tell TEXT: here and in the log, where no work is under way whose words go there
  say "$1" | tee -a "$log"
}

take_place() { # take_place CHANGE: this script is the one that works and watches from here on
  printf '%s' "$1" >"$runtime/change"
  cat "$script" >"$runtime/current.sh"
}

# The units of this boot live, so somebody runs the script by hand (google_metadata_script_runner startup). Two of them
# would fight for one container: what works is left alone, and what does not is done by the unit, as at a boot.
repeat_by_hand() { # repeat_by_hand CHANGE
  local follow="To follow it: journalctl -f -t startup-script"
  if lives tpudeploy-work; then
    tell "Run by hand: the unit tpudeploy-work is bringing up the server already, and is left alone. $follow"
  elif [[ $1 != "$(cat "$runtime/change" 2>/dev/null)" ]]; then
    need_watcher
    tell "Run by hand: the unit tpudeploy-watcher takes over this change by itself. $follow"
  elif [[ -n $1 && $(undone_change) == "$1" ]]; then
    tell "Run by hand: this change failed and was undone, and the server before is left alone. It failed because: $(undone_cause)"
  elif was_never_stopped; then
    tell "Run by hand: the container $name of this script runs already, and is left alone. To replace it: docker rm -f $name, then run the script again"
  else
    tell "Run by hand: the container of this script does not run, so the unit tpudeploy-work brings it up again"
    take_place "$1"
    need_watcher
    start_work "$1" --pipe --wait
  fi
}

need_watcher() {
  lives tpudeploy-watcher || start_watcher ||
    tell "systemd did not start the watcher, so a change is seen only at the next boot"
}

start_watcher() {
  start_unit --unit=tpudeploy-watcher --property=Restart=always "$BASH" "$runtime/current.sh" watch
}

start_work() { # start_work CHANGE OPTION...: killed from outside, it begins anew; stopped by a newer change, it does not
  start_unit --unit=tpudeploy-work --property=Restart=on-abnormal --property=TimeoutStopSec=30 "${@:2}" \
    "$BASH" "$runtime/current.sh" work "$1"
}

change_of_this_script() { # nothing where the metadata changed between Google's look at them and ours: the watcher sees
  if [[ $(metadata_value instance/attributes/tpudeploy-spec) == "$spec" ]]; then
    metadata_value instance/attributes/tpudeploy-change || true
  fi
}

watch() {
  local answer change etag='' round=0
  note_once first-booted
  start_listeners
  while :; do
    # At first it looks up more often: so a report that was lost at a turn of events is soon written again.
    answer=$(changed_value instance/attributes/tpudeploy-change "$etag" "$((round < 10 ? 60 : 300))") || answer=
    round=$((round + 1))
    etag=$(etag_of "$answer")
    change=${answer##*$'\n'}
    # Without an answer, or with half of a change, it is asked again.
    if [[ -z $etag ]] || ! { [[ $change == "$(cat "$runtime/change" 2>/dev/null)" ]] || take "$change"; }; then
      etag=
      sleep 10
    fi
    refresh_report
  done
}

# Google takes back a spot machine. Its metadata say so up to two minutes before, 30 s before, or never.
listen_for_preemption() {
  local answer etag=''
  while :; do
    answer=$(changed_value instance/preempted "$etag" 300) || answer=
    if [[ ${answer##*$'\n'} == TRUE ]]; then
      tell "Google preempts this machine"
      record preempted "$(now)"
      # At once: systemd may be about to stop this unit. One report above the limit costs less than a late one.
      write_report 0
      return
    fi
    etag=$(etag_of "$answer")
    [[ -n $etag ]] || sleep 10
  done
}

start_listeners() {
  set -m
  listen_for_preemption </dev/null &
  listener=$!
  listen_for_end </dev/null &
  end_listener=$!
  set +m
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
  kill -TERM -- "-$listener" "-$end_listener" 2>/dev/null || true
  exec "$BASH" "$runtime/current.sh" watch
}
