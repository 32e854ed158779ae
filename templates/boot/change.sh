# A change that fails is undone: the script of the server that served last is kept, and brought up again.

take_up() { # take_up work|back CHANGE
  called=$1
  change=$2
  trap 'broken_line=$LINENO' ERR
  trap 'stopped $?' EXIT
  trap 'trap - EXIT; end_parts; end_reporter; exit 143' TERM # a newer change has come, and speaks for itself
  if [[ -n $change && $(undone_change) == "$change" ]]; then
    go_back "$(undone_cause)" # at a boot after that
  fi
  record spec "$spec"
  # The acknowledgement: what is said from here on is said of this change.
  [[ -z $change ]] || record change "$change"
  if [[ $called == back ]] && was_never_stopped; then
    report_at_once serving "The server before serves on: the change failed before it was stopped"
    repeat_report
    exit 0
  fi
  report_at_once booted "Starting"
  start_reporter
}

stopped() { # stopped STATUS: the end of the work, foreseen or not
  trap - EXIT ERR
  end_parts
  end_reporter
  (($1 != 0)) || exit 0
  local cause=${verdict:-"The startup script broke at its line ${broken_line:-?}; its log is $log"}
  record failed_at "$(now)" # of several hosts, the others may fail because of this one
  unharmed timeline keep_timeline
  go_back "$cause"
  if [[ $called == back ]]; then
    cause="$(undone_cause) (the server before did not come back either: $cause)"
  fi
  report_at_once failed "$cause"
  repeat_report
  exit "$1"
}

go_back() { # go_back CAUSE: returns where there is nothing to go back to
  [[ $called == work && -s $memory/served.sh && $(spec_of "$memory/served.sh") != "$spec" ]] || return 0
  say "Going back to the server before: $1"
  remember undone "$change $1"
  record undone "$change"
  record cause "$1"
  reports_in_one "$memory/served.sh" || leave_reporting_to_an_older_script
  exec "$BASH" "$memory/served.sh" back "$change"
}

reports_in_one() { # reports_in_one SCRIPT: whether it writes its report as this one does
  grep -q '^put_attribute()' "$1"
}

leave_reporting_to_an_older_script() { # it writes an attribute for each fact, and what we wrote must not speak for it
  printf '%s' "$(recall undone)" | put_attribute undone || true
  curl -sS -X DELETE -H 'Metadata-Flavor: Google' --max-time 10 \
    "$metadata/instance/guest-attributes/tpudeploy/report" >/dev/null 2>&1 || true
  rm -rf "$facts"
}

undone_change() {
  recall undone | sed -n '1s/ .*//p'
}

undone_cause() {
  recall undone | sed -n '1s/[^ ]* //p'
}

was_never_stopped() {
  [[ $(recall running) == "$spec" && $(container_state) == true* ]]
}

keep_as_served() { # no secret is in it
  { cat "$script" >"$memory/served.part" && mv "$memory/served.part" "$memory/served.sh"; } ||
    say "This script cannot be kept in $memory: a later change that fails will not be undone"
}

spec_of() { # spec_of SCRIPT
  sed -n 's/^spec=//p' "$1" 2>/dev/null | sed -n 1p
}
