# Reporting: to the log, and to the node's guest attributes, which may refuse (then the log is all there is).
#
# Google allows about ten queries of a machine's guest attributes a minute, three in a second, writes and reads together,
# and above it may remove what is being written. So the whole report is one attribute; progress is written every 18 s,
# a turn of events at once, but never two within 10 s; and the last word is written twice, for one may be lost.

broken_line=
verdict=
attributes_refused=
facts=$root/run/tpudeploy/report # the facts of the report, a file each; .written: when it was last written, and what
progress_seconds=18
turn_seconds=10
reporter=
part= # the name of a part that runs beside others (gather.sh)
# A line for each part of this start: its name, when it began and ended; of a phase only when it began.
timeline=$root/run/tpudeploy/timeline

now() { # seconds since the epoch
  date +%s
}

say() { # say TEXT [TIME]: in one write, so that what several parts say does not mix
  local clean
  redact "$1"
  printf '%(%Y-%m-%dT%H:%M:%SZ)T %s\n' "${2:-$(now)}" "$clean"
}

report() { # report PHASE DETAIL: progress, which is written when its time comes
  note_phase "$1" "$2"
  write_report "$progress_seconds"
}

report_at_once() { # report_at_once PHASE DETAIL: a turn of events, which somebody waits for
  local wait
  note_phase "$1" "$2"
  wait=$((turn_seconds - $(seconds_since_report)))
  ((wait <= 0)) || sleep "$wait"
  write_report 0
}

note_phase() { # note_phase PHASE DETAIL: in the log, the timeline and the facts
  local at
  at=$(now)
  [[ $1 != booted ]] || rm -f "$timeline"
  printf '%s %s\n' "$1" "$at" >>"$timeline"
  say "$1: $2" "$at"
  record detail "$2"
  record phase "$1"
}

keep_timeline() { # beside the log for each start; in the guest attributes for the last
  printf '%(%Y-%m-%dT%H:%M:%SZ)T %s %s\n' "$(now)" "$spec" "$(tr '\n' ';' <"$timeline")" >>"${log%/*}/starts.log"
  record timeline "$(cat "$timeline")"
}

fail() { # fail CAUSE: the end of the work, or of a part of it that runs beside others
  [[ -z $part ]] || give_up "$1"
  verdict=$1
  exit 1
}

record() { # record KEY VALUE: a fact for the next report
  local clean
  redact "$2"
  put_fact "$1" "$clean" || say "$facts/$1 cannot be written"
}

put_fact() { # put_fact FILE TEXT: by a rename, because the watcher, the work and its reporter read and write side by side
  { { [[ -d $facts ]] || mkdir -p "$facts"; } && printf '%s' "$2" >"$facts/.$1.$BASHPID" && mv -f "$facts/.$1.$BASHPID" "$facts/$1"; } 2>/dev/null
}

keep_reporting() { # beside the work: progress that came too soon after the last report
  while sleep "$progress_seconds"; do
    write_report "$progress_seconds" || true
  done
}

start_reporter() {
  set -m
  keep_reporting </dev/null >/dev/null 2>&1 &
  set +m
  reporter=$!
  disown "$reporter" # or who waits for a part would wait for it too
}

end_reporter() {
  [[ -n $reporter ]] || return 0
  kill -TERM -- "-$reporter" 2>/dev/null || true
  reporter=
}

refresh_report() { # now and then, while nothing happens: a report that was lost is not missed for long
  if [[ -e $facts/phase ]] && (($(seconds_since_report) >= 50)); then
    write_report 0
  fi
}

repeat_report() { # the last word, once more
  local wait
  end_reporter
  wait=$((turn_seconds - $(seconds_since_report)))
  ((wait <= 0)) || sleep "$wait"
  write_report 0
}

write_report() { # write_report SECONDS: unless the last was written less than SECONDS ago, or says the same; 0: always
  local at text written=
  at=$(now)
  (($1 == 0)) || (($(seconds_since_report "$at") >= $1)) || return 0
  text=$(report_facts)
  read_file "$facts/.written" written
  (($1 == 0)) || [[ $text != "${written#*$'\n'}" ]] || return 0
  put_fact .written "$at"$'\n'"$text" || true
  printf '{"at":"%s"%s}' "$at" "$text" | put_attribute report || note_refusal
}

seconds_since_report() { # seconds_since_report [NOW]: many where there was none, or the clock went back
  local since written=
  read_file "$facts/.written" written
  written=${written%%$'\n'*}
  [[ $written =~ ^[0-9]+$ ]] || written=0 # an error in arithmetic would end the whole script
  since=$((${1:-$(now)} - written))
  ((since >= 0)) || since=$progress_seconds
  printf '%s' "$since"
}

report_facts() { # the members of a JSON object, each behind a comma
  local file text json
  for file in "$facts"/*; do
    [[ -f $file ]] || continue
    read_file "$file" text
    to_json "${text%"${text##*[!$'\n']}"}" # without newlines at its end
    printf ',"%s":"%s"' "${file##*/}" "$json"
  done
}

read_file() { # read_file FILE VARIABLE: its text; empty where it cannot be read. Without a process: reports are many
  printf -v "$2" ''
  { IFS= read -r -d '' "$2" <"$1"; } 2>/dev/null || true
}

to_json() { # to_json TEXT: $json as it stands within quotes; what is neither printed nor a line's end is left out
  local backslash=\\
  json=${1//"$backslash"/"$backslash$backslash"}
  json=${json//'"'/"$backslash\""}
  json=${json//$'\n'/"${backslash}n"}
  json=${json//[[:cntrl:]]/}
}

put_attribute() { # put_attribute KEY: what is on stdin
  curl -sS -f -X PUT --data-binary @- -H 'Metadata-Flavor: Google' --max-time 10 \
    "$metadata/instance/guest-attributes/tpudeploy/$1" >/dev/null 2>&1
}

note_refusal() {
  [[ -n $attributes_refused ]] || say "Guest attributes cannot be written here: the phases stand in this log only"
  attributes_refused=yes
}

redact() { # redact TEXT: $clean. No secret leaves in a text of ours, whatever a container printed
  local value
  clean=$1
  for value in "${secret_values[@]}"; do
    clean=${clean//"$value"/[secret]}
  done
}

redacted() { # redacted TEXT
  local clean
  redact "$1"
  printf '%s' "$clean"
}

short() { # short LINE: without vLLM's prefix of process, time and place; plain, and no longer than a reader wants
  local text=${1:0:600} prefix='^(\([A-Za-z0-9_]+ pid=[0-9]+\) *)?((INFO|WARNING|ERROR) [0-9-]+ [0-9:]+ \[[^]]*\] *)?'
  text=${text//[^ -~]/}
  [[ ! $text =~ $prefix ]] || text=${text:${#BASH_REMATCH[0]}}
  printf '%s' "$text"
}
