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
