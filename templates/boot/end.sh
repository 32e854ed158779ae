# The end of the deployment (lifecycle.end, .idle, .hours). The metadata have it as `WHEN,WHEN URL KEY: TEXT; KEY: TEXT`, a WHEN
# for each key of the profile: in seconds since the epoch; `+SECONDS` after this machine first served, at the latest after
# the end of its patience; `~SECONDS` after its last request, or `~` to report that alone; or `-`, if others end it. `never` is no end. Once the earliest has come, the machine deletes its
# own request at URL with the identity of its service account: nobody else may be there to do it.

end_listener=
unended= # why the last deletion was refused: each cause stands in the log once, however often it is tried

end_time() { # end_time TEXT: the earliest, in seconds since the epoch; nothing without an end
  local at earliest='' when
  while IFS= read -r when; do
    at=$(time_of "$when")
    if [[ -n $at && ( -z $earliest || $at -lt $earliest ) ]]; then
      earliest=$at
    fi
  done <<<"$(tr ',' '\n' <<<"${1%% *}")"
  printf '%s' "$earliest"
}

time_of() { # time_of WHEN
  local from
  if [[ $1 =~ ^[0-9]+$ ]]; then
    printf '%s' "$1"
  elif [[ $1 =~ ^\+[0-9]+$ ]]; then
    from=$(recall first-served)
    if [[ ! $from =~ ^[0-9]{10,}$ ]]; then
      from=$(recall first-booted)
      # A disk that was full remembers neither: then nothing says when it ends, and the next apply does it.
      [[ $from =~ ^[0-9]{10,}$ ]] || return 0
      from=$((from + patience))
    fi
    printf '%s' "$((from + ${1#+}))"
  elif [[ $1 =~ ^~[0-9]+$ ]]; then
    from=$(last_use)
    [[ -z $from ]] || printf '%s' "$((from + ${1#'~'}))"
  fi
}

key_that_ends() { # key_that_ends TEXT: the first key of the profile whose time has come
  local at key number=0 when
  while IFS= read -r when; do
    number=$((number + 1))
    at=$(time_of "$when")
    if [[ -z $at || $at -gt $(now) ]]; then
      continue
    fi
    key=$(sed 's/^[^ ]* [^ ]* //; s/; /\n/g' <<<"$1" | sed -n "${number}p")
    printf '%s' "${key%%:*}"
    return
  done <<<"$(tr ',' '\n' <<<"${1%% *}")"
}

listen_for_end() {
  local answer end etag='' left text=''
  [[ ${rank:-0} == 0 ]] || return 0 # of several hosts, the first one speaks for the slice
  while :; do
    ! counts_requests "$text" || note_use
    end=$(end_time "$text")
    left=$((${end:-$(now) + 300} - $(now)))
    ! counts_requests "$text" || ((left < 60)) || left=60
    # It is read again at the end, which may have been moved; and then each minute, until the machine is gone.
    ((left > 0)) || end_now
    answer=$(changed_value instance/attributes/tpudeploy-end "$etag" "$((left <= 0 ? 60 : left < 300 ? left : 300))") || answer=
    etag=$(etag_of "$answer")
    if [[ -n $etag ]]; then
      text=${answer##*$'\n'}
    else
      sleep 10
    fi
  done
}

counts_requests() { # counts_requests TEXT: whether it ends once it has no requests
  [[ ${1%% *} == *'~'* ]]
}

end_now() {
  local answer end key text url
  text=$(metadata_value instance/attributes/tpudeploy-end) || return 0
  ! counts_requests "$text" || note_use
  end=$(end_time "$text")
  [[ -n $end ]] && ((end <= $(now))) || return 0
  read -r _ url _ <<<"$text"
  # The token is for Google alone, whatever the metadata say.
  [[ $url == https://tpu.googleapis.com/* || $url == https://compute.googleapis.com/* ]] || return 0
  key=$(key_that_ends "$text")
  [[ $url != https://compute.googleapis.com/* ]] || url+="?requestId=$(own_request_id "$key")"
  answer=$(printf 'Authorization: Bearer %s\n' "$(access_token)" |
    curl -sS --max-time 60 -X DELETE -w '\n%{http_code}' -H @- "$url" 2>/dev/null) || answer=$'\n000'
  case ${answer##*$'\n'} in
    2?? | 404) tell "$key has come$(idle_time "$key"): this machine deletes its request" ;;
    *)
      answer="HTTP ${answer##*$'\n'}: $(google_says "${answer%$'\n'*}")"
      record unended "$answer"
      [[ $answer == "$unended" ]] || tell "$key has come, and $(service_account) may not delete this machine: $answer"
      unended=$answer
      ;;
  esac
  write_report 0
}

own_request_id() { # own_request_id KEY: a UUID that says why, and differs each time, or Google would answer with a refused try
  local key=3 minutes=0
  case $1 in
    lifecycle.end) key=1 ;;
    lifecycle.idle) key=2 minutes=$((($(now) - $(last_use)) / 60)) ;;
  esac
  printf '74707564-6570-4%d00-8%03x-%012x' "$key" "$((minutes < 4095 ? minutes : 4095))" "$(now)"
}
