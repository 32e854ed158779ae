# Reporting: to the log, and to the node's guest attributes, which may refuse (then the log is all there is).

broken_line=
verdict=
attributes_refused=
# Of what runs beside others (gather.sh). In memory: a full disk must not hide why a part failed.
parts=$root/run/tpudeploy/parts
part=
part_jobs=()
doing=
# A line for each part of this start: its name, when it began and ended; of a phase only when it began.
timeline=$root/run/tpudeploy/timeline

now() { # seconds since the epoch
  date +%s
}

say() { # say TEXT [TIME]: in one write, so that what several parts say does not mix
  printf '%(%Y-%m-%dT%H:%M:%SZ)T %s\n' "${2:-$(now)}" "$(redacted "$1")"
}

report() { # report PHASE DETAIL
  local at
  at=$(now)
  note_phase "$1" "$at"
  say "$1: $2" "$at"
  attribute detail "$2"
  attribute phase "$1"
}

note_phase() { # note_phase PHASE TIME
  [[ $1 != booted ]] || rm -f "$timeline"
  printf '%s %s\n' "$1" "$2" >>"$timeline"
}

keep_timeline() { # beside the log for each start; in the guest attributes for the last
  printf '%(%Y-%m-%dT%H:%M:%SZ)T %s %s\n' "$(now)" "$spec" "$(tr '\n' ';' <"$timeline")" >>"${log%/*}/starts.log"
  attribute timeline "$(cat "$timeline")"
}

fail() { # fail CAUSE: the end of the work, or of a part of it that runs beside others
  [[ -z $part ]] || give_up "$1"
  verdict=$1
  exit 1
}

attribute() { # attribute KEY VALUE
  redacted "$2" | curl -sS -f -X PUT --data-binary @- -H 'Metadata-Flavor: Google' --max-time 10 --retry 3 \
    "$metadata/instance/guest-attributes/tpudeploy/$1" >/dev/null 2>&1 || note_refusal
}

note_refusal() {
  [[ -n $attributes_refused ]] || say "Guest attributes cannot be written here: the phases stand in this log only"
  attributes_refused=yes
}

redacted() { # redacted TEXT: no secret leaves in a text of ours, whatever a container printed
  local text=$1 value
  for value in "${secret_values[@]}"; do
    text=${text//"$value"/[secret]}
  done
  printf '%s' "$text"
}

short() { # short LINE: without vLLM's prefix of process, time and place; plain, and no longer than a reader wants
  printf '%s' "${1:0:600}" | tr -cd '\40-\176' |
    sed -E 's/^(\([A-Za-z0-9_]+ pid=[0-9]+\) *)?((INFO|WARNING|ERROR) [0-9-]+ [0-9:]+ \[[^]]*\] *)?//'
}
