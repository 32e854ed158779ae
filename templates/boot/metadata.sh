# The metadata server: who this machine is, and the token of its service account.

metadata_value() { # metadata_value PATH
  curl -sS -f --max-time 10 --retry 5 -H 'Metadata-Flavor: Google' "$metadata/$1"
}

json_string() { # json_string KEY: from the JSON on stdin, one string without escapes
  sed -n 's/.*"'"$1"'" *: *"\([^"]*\)".*/\1/p' | sed -n 1p
}

access_token() {
  metadata_value instance/service-accounts/default/token | json_string access_token
}
