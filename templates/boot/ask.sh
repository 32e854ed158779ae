# A real request of the model's task, to the server at $port of this machine: a completion, or for a model that pools an
# embedding, a score or a class.

ask_for_an_answer() {
  local delay
  for delay in 5 10 0; do
    ! answers || return 0
    say "Asked for $asked, and failed (HTTP ${answer##*$'\n'})"
    sleep "$delay"
  done
  fail "The server is healthy, but $asked failed (HTTP ${answer##*$'\n'}): $(google_says "$answer")"
}

answers() { # whether it answers; $answer has the answer, a newline, the HTTP status
  local index
  for index in "${!questions[@]}"; do
    answer=$(ask "${question_paths[index]}" "${questions[index]}")
    # A base model has no chat template, and a server has no route for what its model does not do: the next one, then.
    [[ ${answer##*$'\n'} == 4?? || ${answer##*$'\n'} == 501 ]] || break
  done
  [[ ${answer##*$'\n'} == 200 ]] || return 1
  # A vector is long, and a report is short.
  record answer "$(printf '%.4000s' "${answer%$'\n'*}")"
}

ask() { # ask PATH BODY: the answer, a newline, the HTTP status (000: none)
  local index
  {
    printf 'Content-Type: application/json\n'
    for index in "${!secret_values[@]}"; do
      [[ ${secret_variables[index]} != VLLM_API_KEY ]] || printf 'Authorization: Bearer %s\n' "${secret_values[index]}"
    done
  } | curl -sS --max-time 300 -w '\n%{http_code}' -H @- --data-binary "$2" "http://127.0.0.1:$port$1" 2>/dev/null ||
    printf '\n000'
}
