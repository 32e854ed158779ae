# Reporting: to the log, and to the node's guest attributes, which may refuse (then the log is all there is).

broken_line=
attributes_refused=

say() { # say TEXT
  printf '%(%Y-%m-%dT%H:%M:%SZ)T %s\n' -1 "$(redacted "$1")"
}

report() { # report PHASE DETAIL
  say "$1: $2"
  attribute detail "$2"
  attribute phase "$1"
}

fail() { # fail CAUSE: ends the work; what is said of it stands in a file, for this may be a subshell
  redacted "$1" >"$runtime/cause"
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
