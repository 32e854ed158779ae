# The image: pulled once for each spec, so that a reboot never changes what a floating tag gave.

pull_image() {
  local pulled
  pulled=$(cat "$memory/pulled" 2>/dev/null || true)
  if [[ $pulled == "$spec" ]] && timeout 60 docker image inspect "$image" >/dev/null 2>&1; then
    report image "The image is here already"
    return
  fi
  report image "Pulling the image"
  local delay output cause
  for delay in 5 10 20 40 80 0; do
    if output=$(pull 2>&1); then
      printf '%s' "$spec" >"$memory/pulled"
      return
    fi
    cause=$(short "$(printf '%s\n' "$output" | sed -n '$p')")
    # What no further attempt will change.
    [[ ! $output =~ (manifest|name)' unknown'|'no matching manifest'|'does not exist'|'invalid reference'|'denied:' ]] ||
      fail "The image cannot be pulled: $cause"
    say "Pull failed, trying again in $delay s: $cause"
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
  timeout --kill-after=10 1800 docker pull -q "$image"
)
