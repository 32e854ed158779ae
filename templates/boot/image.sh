# The image: pulled once for each spec, so that a reboot never changes what a floating tag gave.

# Two attempts that stall end before the profile's patience does, so that the cause is told and not only waited for.
pull_seconds=$((patience / 3))

image_is_here() {
  local pulled
  pulled=$(cat "$memory/pulled" 2>/dev/null || true)
  [[ $pulled == "$spec" ]] && timeout 60 docker image inspect "$image" >/dev/null 2>&1 || return
  say "image: It is here already"
}

pull_image() {
  say "image: Pulling it"
  local delay output cause status stalls=0
  for delay in 5 10 20 40 80 0; do
    status=0
    output=$(pull 2>&1 | counting_layers) || status=$?
    if ((status == 0)); then
      printf '%s' "$spec" >"$memory/pulled"
      return
    fi
    cause=$(short "$(printf '%s\n' "$output" | sed -n '$p')")
    if ((status == 124)); then
      stalls=$((stalls + 1))
      cause="it took longer than $pull_seconds s${cause:+ ($cause)}"
      ((stalls < 2)) || fail "The image could not be pulled: $cause, twice. A larger health.timeout gives it longer"
    fi
    # What no further attempt will change.
    [[ ! $output =~ (manifest|name)' unknown'|'no matching manifest'|'does not exist'|'invalid reference'|'denied:' ]] ||
      fail "The image cannot be pulled: $cause"
    say "image: Pull failed, trying again in $delay s: $cause"
    sleep "$delay"
  done
  fail "The image could not be pulled in 6 attempts: $cause"
}

pull() (
  # Credentials live in memory (/run) and only as long as the pull.
  export DOCKER_CONFIG=$root/run/tpudeploy/docker
  mkdir -p "$DOCKER_CONFIG"
  trap 'rm -rf "$DOCKER_CONFIG"' EXIT
  case ${image%%/*} in
    *.pkg.dev) { set +x; } 2>/dev/null
      access_token | timeout 60 docker login -u oauth2accesstoken --password-stdin "https://${image%%/*}" ;;
  esac
  # In the foreground of its part's process group, so as to end with it.
  timeout --foreground --kill-after=10 "$pull_seconds" docker pull "$image"
)

counting_layers() { # hands on what docker says, and tells how many of a hundred layers are here: it hides their sizes
  local line all=0 here=0 share told=0
  record pulled 0
  while IFS= read -r line || [[ -n $line ]]; do
    printf '%s\n' "$line"
    case $line in
      *': Pulling fs layer') all=$((all + 1)) ;;
      *': Already exists') all=$((all + 1)) here=$((here + 1)) ;;
      # By then all are named.
      *': Pull complete')
        here=$((here + 1)) share=$((100 * here / (all > here ? all : here)))
        ((share < told + 10)) || { told=$share && record pulled "$share"; } ;;
    esac
  done
}
