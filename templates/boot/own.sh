# Scripts of the project, which the profile names under `boot`. Bash runs each of them as root, at every boot and again
# with each change of the server. One that fails ends the work: the server before comes back, if there was one.

own=$runtime/own
own_seconds=900

run_own() { # run_own KEY PHASE [PATH TEXT]...: the scripts of boot.KEY, one after the other
  local key=boot.$1 phase=$2
  shift 2
  mkdir -p "$own"
  # The strictness of this script, and where a command failed. What the script starts has neither.
  # shellcheck disable=SC2016 # bash expands it when a command fails
  printf '%s\n' 'unset BASH_ENV' 'set -eEuo pipefail' \
    'trap '\''printf "%s" "$LINENO" >"$own_line"'\'' ERR' >"$own/strict"
  for (( ; $# > 0; )); do
    report "$phase" "Running $1 ($key)"
    run_own_script "$1" "$2" "$key"
    shift 2
  done
}

run_own_script() { # run_own_script PATH TEXT KEY
  local path=$1 file=$own/${1##*/} status=0
  printf '%s' "$2" >"$file"
  rm -f "$own/line"
  own_line=$own/line BASH_ENV=$own/strict timeout --kill-after=10 "$own_seconds" bash "$file" </dev/null >"$own/output" 2>&1 ||
    status=$?
  printf '%s\n' "$(redacted "$(cat "$own/output")")" | sed 's/^/  | /' >&2
  # A server without its script is not what was asked for. Left running, it would count as one that serves.
  ((status == 0)) || [[ $3 != boot.after ]] || remove_old_container
  case $status in
    0) return ;;
    124 | 137) fail "$path ($3) did not end within $own_seconds s: let it start what is to run on in the background" ;;
  esac
  fail "$path ($3) failed$(own_place) with exit code $status: $(own_end). Correct the script; the next apply runs it again"
}

own_place() {
  ! [[ -s $own/line ]] || printf ' at its line %s' "$(cat "$own/line")"
}

own_end() { # its last line of output
  local line
  line=$(short "$(redacted "$(sed -n '/[^[:space:]]/h; ${ g; p; }' "$own/output")")")
  printf '%s' "${line:-it printed nothing}"
}
