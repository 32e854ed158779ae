# Gathering: what the server needs comes side by side. Each part is a job of its own; the first that fails ends the
# others and is the cause. Secrets live in this shell's variables alone, so this shell reads them meanwhile.

# In memory: a full disk must not hide why a part failed.
parts=$root/run/tpudeploy/parts
part_jobs=()
doing=

gather() {
  rm -rf "$parts"
  mkdir -p "$parts"
  if image_is_here; then
    [[ -z $cache_bucket ]] || begin "Restoring the compile cache" timed cache unharmed cache restore_cache
  elif [[ -z $cache_bucket ]]; then
    begin "Pulling the image" timed image pull_image
  elif [[ -n $image_digest ]]; then
    begin "Pulling the image" timed image pull_image
    begin "Restoring the compile cache" timed cache unharmed cache restore_cache
  else # of a tag, only the pull tells the digest, and that names the cache
    begin "Pulling the image, restoring the compile cache" image_then_cache
  fi
  [[ -z $mirror_bucket ]] || begin "Fetching the weights" timed mirror fetch_weights
  ((${#secret_variables[@]} == 0)) || timed secrets read_secrets
  await_parts
}

image_then_cache() {
  timed image pull_image
  timed cache unharmed cache restore_cache
}

remember_start() { # once it serves, which nothing here takes back
  unharmed timeline keep_timeline
  [[ -z $cache_bucket ]] || unharmed cache save_cache
}

begin() { # begin WORDS COMMAND...: a job in a process group of its own, to be ended with all that it started
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

timed() { # timed NAME COMMAND...: done, and noted when it began and ended
  local began ended
  began=$(now)
  "${@:2}"
  ended=$(now)
  printf '%s %s %s\n' "$1" "$began" "$ended" >>"$timeline"
  say "$1: done in $((ended - began)) s"
}

unharmed() { # unharmed NAME COMMAND...: what breaks in it is told, and ends nothing
  local what=$1
  set +e
  (
    set -e
    trap '(($? == 0)) || say "$what: It broke at line ${broken_line:-?} of this script; the start goes on without"' EXIT
    "${@:2}"
  )
  set -e
}
