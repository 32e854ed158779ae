# Secrets: read with the VM's own identity into shell variables that are not exported; never to a file, a command
# line or a log.

read_secrets() {
  { set +x; } 2>/dev/null
  local index project count=${#secret_variables[@]} plural=s
  [[ $count == 1 ]] && plural=
  report secrets "Reading $count secret$plural"
  project=$(metadata_value project/project-id) || fail "The metadata server does not say which project this is"
  for index in "${!secret_variables[@]}"; do
    read_secret "${secret_resources[index]}"
  done
}

read_secret() { # read_secret RESOURCE: appends to secret_values
  local resource=$1 delay response status body value
  [[ $resource == projects/* ]] || resource=projects/$project/$resource
  for delay in 2 4 8 16 32 0; do
    response=$(secret_response "$resource") || response=$'\n000'
    status=${response##*$'\n'}
    body=${response%$'\n'*}
    case $status in
      200)
        value=$(printf '%s' "$body" | json_string data | tr '_-' '/+' | base64 -d)
        [[ -n $value ]] || fail "Secret $resource is empty: add a version that holds the value"
        secret_values+=("$value")
        return ;;
      403) fail "The VM's service account $(service_account) may not read secret $resource: grant it roles/secretmanager.secretAccessor. Google says: $(google_says "$body")" ;;
      404) fail "Secret $resource does not exist: create it, or correct its name in the profile. Google says: $(google_says "$body")" ;;
      000 | 401 | 408 | 429 | 5??)
        say "Secret Manager answered HTTP $status, trying again in $delay s"
        sleep "$delay" ;;
      *) fail "Secret $resource cannot be read (HTTP $status). Google says: $(google_says "$body")" ;;
    esac
  done
  fail "Secret $resource could not be read in 6 attempts (last: HTTP $status; 000 is no connection: Private Google Access or NAT is missing)"
}

secret_response() { # secret_response RESOURCE: the body, a newline, the HTTP status
  local token
  token=$(access_token)
  printf 'Authorization: Bearer %s\n' "$token" |
    curl -sS --max-time 20 -w '\n%{http_code}' -H @- "https://secretmanager.googleapis.com/v1/$1:access"
}

service_account() {
  metadata_value instance/service-accounts/default/email || printf '(unknown)'
}

google_says() { # google_says BODY
  short "$(printf '%s' "$1" | json_string message)"
}
