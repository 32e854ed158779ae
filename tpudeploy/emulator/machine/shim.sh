# shellcheck shell=bash disable=SC2154
# What nearly every command of an emulated node runs: it hands its words to the node's server and plays back the answer.
# Sourced with the command's words, and with `server` (host/port), `key`, `name`, `head` and `cat` (which a script may
# lack), and `whole`: the command line of shim.py, which says the same to the same server. A boot is hundreds of calls,
# and bash is there in a fraction of the time that Python takes; but it reads a pipe byte by byte, does not know its
# whole environment without /proc, and may have been built without sockets.

LC_ALL=C # lengths are of bytes

for word; do
  case $word in
    - | -K- | *?@- | --password-stdin | */dev/stdin | */dev/fd/*) exec "${whole[@]}" "$@" ;;
  esac
done
{ [[ -r /proc/$$/environ ]] && exec 3<>"/dev/tcp/$server"; } 2>/dev/null || exec "${whole[@]}" "$@"

mapfile -t -d '' environment </proc/$$/environ
given=()
for word; do
  [[ $word != @- ]] || while IFS= read -r -d '' piece; do given+=("$piece"); done # one more for each NUL
done
fields=("$$" "$name" "$PWD" "$#" "$@" "${#environment[@]}" "${environment[@]}" "${given[@]}")
printf -v sent '%s.' "${fields[@]}" # a dot for each NUL
printf -v form '%*s' "${#fields[@]}" ''
start=$'POST /emulator/run HTTP/1.0\r\nX-Emulator-Key: '$key$'\r\nContent-Length: '$((${#sent} + ${#piece}))$'\r\n\r\n'

printf "%s${form// /%s\\0}%s" "$start" "${fields[@]}" "$piece" >&3
while IFS=$': \r' read -r header value <&3 && [[ $header ]]; do
  case $header in
    X-Exit-Code) code=$value ;;
    X-Output-Bytes) output=$value ;;
    X-Plain) plain=$value ;;
    Content-Length) all=$value ;;
  esac
done
if [[ -z $output ]]; then
  echo "$name: the emulator gave no answer" >&2
  exit 125
fi
if [[ $plain ]]; then
  IFS= read -r -N "$output" text <&3
  printf '%s' "$text"
else # bash would drop NULs
  "$head" -c "$output" <&3
fi
((all == output)) || "$cat" <&3 >&2
exit "$code"
