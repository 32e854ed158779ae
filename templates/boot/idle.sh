# When the server last had a request (lifecycle.idle), by its own metrics: of those that ended, and those that it has now.
# tpudeploy's own requests carry a mark in their URL, which vLLM's access log shows. A request without a mark in the log
# counts as a user's: then the machine ends later than it could, never earlier.

note_use() { # once a minute: $runtime/used has the last time at which nothing showed that the server was idle
  local ended figures last='' mark marks new=0 seen=''
  if ! figures=$(quiet_figures); then
    # A start, a change, requests under way, or a server that does not say.
    rm -f "$runtime/ended"
    note_used
    return
  fi
  ended=${figures%% *}
  marks=$(probe_marks)
  read_file "$runtime/ended" last
  read_file "$runtime/probes" seen
  while IFS= read -r mark; do
    [[ -z $mark || $seen == *"$mark"* ]] || new=$((new + 1))
  done <<<"$marks"
  if [[ ! $last =~ ^[0-9]+$ || ! -s $runtime/used ]] || ((ended - last != new)); then
    note_used
  fi
  printf '%s' "$marks" >"$runtime/probes"
  printf '%s' "$ended" >"$runtime/ended"
}

note_used() {
  local at
  at=$(now)
  printf '%s' "$at" >"$runtime/used"
  record used "$at"
}

quiet_figures() { # those of a server that has no request; fails for any other
  local figures
  [[ $(cat "$facts/phase" 2>/dev/null) == serving ]] && ! lives tpudeploy-work || return 1
  figures=$(server_figures) || return 1
  if [[ ${figures#* } != 0 ]]; then
    sleep 5 # a request of tpudeploy's own takes a moment
    figures=$(server_figures) || return 1
  fi
  [[ ${figures#* } == 0 ]] || return 1
  printf '%s' "$figures"
}

server_figures() { # ENDED RUNNING: how many requests ended since the server started, and how many it has
  curl -sS -f --max-time 10 "http://127.0.0.1:$port/metrics" 2>/dev/null | awk '
    /^vllm:request_success_total[{ ]/ { ended += $NF; has = 1 }
    /^vllm:num_requests_(running|waiting)[{ ]/ { running += $NF }
    END { if (!has) exit 1; printf "%.0f %.0f", ended, running }'
}

probe_marks() { # of tpudeploy's own requests that were answered, in the latest lines of the server's log
  container_log | sed -n 's/.*"POST [^ "]*tpudeploy-probe=\([0-9a-f]\{16\}\) HTTP[^"]*" 200.*/\1/p'
}

last_use() { # in seconds since the epoch; nothing before it is known
  local used
  read_file "$runtime/used" used
  [[ ! $used =~ ^[0-9]{10,}$ ]] || printf '%s' "$used"
}

idle_time() { # idle_time KEY
  [[ $1 != lifecycle.idle ]] || printf ', idle for %s min' "$((($(now) - $(last_use)) / 60))"
}
