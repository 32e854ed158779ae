# What a machine knows after a restart: a file of $memory for each fact.

remember() { # remember KEY VALUE: on the disk, without secrets; a disk that is full costs the memory, not the server
  redacted "$2" >"$memory/$1" || say "$memory/$1 cannot be written"
}

recall() { # recall KEY
  cat "$memory/$1" 2>/dev/null || true
}

note_once() { # note_once KEY: the time, on the disk: a restart does not move the end
  [[ -n $(recall "$1") ]] || remember "$1" "$(now)"
}

note_service() { # when this machine first served, for the end that counts from there, and in the report
  note_once first-served
  record served "$(recall first-served)"
}
