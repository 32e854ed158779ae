# Cloud Storage through its JSON API, with the token of this machine's service account: a TPU VM surely has curl.

storage_call() { # storage_call PATH CURL-WORDS...: the body (where -o does not take it), a newline, the HTTP status
  { set +x; } 2>/dev/null
  local status=0
  access_token | sed 's/^/Authorization: Bearer /' |
    curl -sS -w '\n%{http_code}' -H @- --max-time 1800 --speed-limit 1000 --speed-time 60 "${@:2}" \
      "https://storage.googleapis.com/$1" 2>/dev/null || status=$?
  # What breaks off has a status all the same: curl's own word comes after it.
  ((status == 0)) || printf '\n%s' "$(broken_off "$status")"
}

broken_off() { # broken_off EXIT-CODE: of curl, in words
  case $1 in
    6 | 7) printf 'no connection: Private Google Access or NAT is missing' ;;
    23) printf 'it cannot be written here: is the disk full?' ;;
    28) printf 'it stalled' ;;
    *) printf 'it broke off: curl ended with %s' "$1" ;;
  esac
}

storage_path() { # storage_path BUCKET OBJECT
  printf 'storage/v1/b/%s/o/%s' "$1" "${2//\//%2F}"
}

refused() { # refused STATUS BODY ROLE: why, and what to do
  case $1 in
    401 | 403) printf '%s may not (HTTP %s): grant it %s on the bucket. Google says: %s' "$(service_account)" "$1" "$3" "$(google_says "$2")" ;;
    404) printf 'it is not there. Google says: %s' "$(google_says "$2")" ;;
    [1-9][0-9][0-9]) printf 'HTTP %s. Google says: %s' "$1" "$(google_says "$2")" ;;
    *) printf '%s' "$1" ;;
  esac
}

matches() { # matches FILE SIZE MD5: whether it is what the bucket holds; MD5 in base64, "" for a composite object
  local size hex
  size=$(stat -c %s "$1") || return
  [[ $size == "$2" ]] || return
  [[ -n $3 ]] || return 0
  hex=$(printf '%s' "$3" | base64 -d | od -An -v -tx1 | tr -d ' \n')
  [[ $(md5sum <"$1") == "$hex "* ]]
}
