# Gathering: what the server needs comes side by side. Each part is a job of its own; the first that fails ends the
# others and is the cause. Secrets live in this shell's variables alone, so this shell reads them meanwhile.

gather() {
  rm -rf "$parts"
  mkdir -p "$parts"
  image_is_here || begin "Pulling the image" timed image pull_image
  ((${#secret_variables[@]} == 0)) || timed secrets read_secrets
  await_parts
}

begin() { # begin WORDS COMMAND…: a job in a process group of its own, to be ended with all that it started
  set -m
  (
    set +m
    part=$1
    trap 'give_up "The startup script broke at its line ${broken_line:-?} ($part); its log is $log"' EXIT
    "${@:2}"
    trap - EXIT
  ) </dev/null &
  set +m
  part_jobs+=("$!")
  doing+=${doing:+; }$1
}

await_parts() {
  local job
  [[ -z $doing ]] || report image "$doing"
  for job in "${part_jobs[@]}"; do
    wait -n || fail "$(cat "$parts/cause" 2>/dev/null || printf 'A part of the start was killed; its log is %s' "$log")"
  done
  part_jobs=()
}

end_parts() { # whatever is still under way when the script ends
  local job
  for job in "${part_jobs[@]}"; do
    disown "$job" 2>/dev/null || true
    kill -TERM -- "-$job" 2>/dev/null || true
  done
}

give_up() { # give_up CAUSE: the end of one part, foreseen or not; the first cause is kept, for who waits to report it
  trap - EXIT
  (
    set -C
    printf '%s' "$1" >"$parts/cause"
  ) 2>/dev/null || true
  exit 1
}

timed() { # timed NAME COMMAND…: done, and noted when it began and ended
  local began ended
  began=$(now)
  "${@:2}"
  ended=$(now)
  printf '%s %s %s\n' "$1" "$began" "$ended" >>"$timeline"
  say "$1: done in $((ended - began)) s"
}
