# The metadata server: who this machine is, and the token of its service account.

metadata_value() { # metadata_value PATH
  curl -sS -f --max-time 10 --retry 5 -H 'Metadata-Flavor: Google' "$metadata/$1"
}

json_string() { # json_string KEY: from the JSON on stdin, one string without escapes
  sed -n 's/.*"'"$1"'" *: *"\([^"]*\)".*/\1/p' | sed -n 1p
}

json_objects() { # from the JSON on stdin: each object of a list on a line of its own
  tr -d '\n' | sed 's/} *, *{/}\n{/g'
  printf '\n'
}

access_token() {
  metadata_value instance/service-accounts/default/token | json_string access_token
}

changed_value() { # changed_value PATH ETAG SECONDS: headers and value, once it is no longer the one of ETAG, or SECONDS later
  curl -sS -f -i --max-time 330 -H 'Metadata-Flavor: Google' \
    "$metadata/$1${2:+?wait_for_change=true&timeout_sec=$3&last_etag=$2}" 2>/dev/null
}

etag_of() { # etag_of ANSWER
  local header=$'(^|\n)[Ee][Tt][Aa][Gg]: *([^[:space:]]*)'
  [[ ! $1 =~ $header ]] || printf '%s' "${BASH_REMATCH[2]}"
}
