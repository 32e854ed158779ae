# A completion, asked of the server at $port of this machine.

ask_for_a_completion() {
  local delay
  for delay in 5 10 0; do
    ! completes || return 0
    say "The completion failed (HTTP ${answer##*$'\n'})"
    sleep "$delay"
  done
  fail "The server is healthy, but a completion failed (HTTP ${answer##*$'\n'}): $(google_says "$answer")"
}

completes() { # whether it answers; $answer has the answer, a newline, the HTTP status
  answer=$(ask chat/completions "$chat")
  # A base model has no chat template and says so with a 4xx.
  [[ ${answer##*$'\n'} != 4?? ]] || answer=$(ask completions "$completion")
  [[ ${answer##*$'\n'} == 200 ]] || return 1
  record answer "${answer%$'\n'*}"
}

ask() { # ask PATH BODY: the answer, a newline, the HTTP status (000: none)
  local index
  {
    printf 'Content-Type: application/json\n'
    for index in "${!secret_values[@]}"; do
      [[ ${secret_variables[index]} != VLLM_API_KEY ]] || printf 'Authorization: Bearer %s\n' "${secret_values[index]}"
    done
  } | curl -sS --max-time 300 -w '\n%{http_code}' -H @- --data-binary "$2" "http://127.0.0.1:$port/v1/$1" 2>/dev/null ||
    printf '\n000'
}
