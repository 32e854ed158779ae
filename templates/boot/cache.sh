# The compile cache: programs that an earlier machine compiled come from the bucket to this disk before the container
# starts, and go back once it serves. Whatever is wrong with them costs time alone: the server then compiles.

cache_bytes_most=$((4 << 30)) # of one object; what one start compiles is about 200 MB
cache_objects_most=20         # so many are kept, however old; beyond them, what nobody wrote for a month is removed
cache_days=30

restore_cache() {
  local object
  mkdir -p "$cache_folder"
  rm -rf "$cache_folder/.tpudeploy"
  object=$(cache_object)
  if [[ -n $object ]]; then
    printf '%s' "$object" >"$parts/cache.object"
    fetch_cache "$object"
  else
    say "cache: docker does not say which digest the image has, so nothing is restored"
  fi
  count_programs >"$parts/cache.before"
}

cache_object() { # named by what it was compiled for: the settings (in the key) and the image, which holds jax and libtpu
  local digest=$image_digest
  [[ -n $digest ]] || digest=$(timeout 60 docker image inspect -f '{{.RepoDigests}}' "$image" 2>/dev/null |
    sed -n 's/.*@sha256:\([0-9a-f]*\).*/\1/p')
  [[ -z $digest ]] || printf '%stpudeploy-xla-%s-%s.tar' "$cache_prefix" "$cache_key" "${digest:0:20}"
}

fetch_cache() { # fetch_cache OBJECT: into a folder beside; what is whole moves over, program by program
  local object=$1 answer status body generation beside=$cache_folder/.tpudeploy cause
  say "cache: Looking for gs://$cache_bucket/$object"
  answer=$(storage_call "$(storage_path "$cache_bucket" "$object")?fields=generation,size,md5Hash" --retry 3)
  status=${answer##*$'\n'} body=${answer%$'\n'*}
  case $status in
    200) ;;
    404) compiles "there is none yet" && return ;;
    *) compiles "it cannot be read: $(refused "$status" "$body" roles/storage.objectUser)" && return ;;
  esac
  generation=$(printf '%s' "$body" | json_string generation)
  printf '%s' "$generation" >"$parts/cache.generation"
  if [[ $(cat "$memory/cache" 2>/dev/null || true) == "$object $generation" && $(count_programs) != 0 ]]; then
    say "cache: Its programs are on this disk already"
    return
  fi
  mkdir -p "$beside/new"
  # No longer than compiling would take.
  answer=$(storage_call "$(storage_path "$cache_bucket" "$object")?alt=media&generation=$generation" \
    --max-time 300 -o "$beside/tar")
  status=${answer##*$'\n'}
  if [[ $status != 200 ]]; then
    compiles "it cannot be fetched: $(refused "$status" "" roles/storage.objectUser)"
  elif ! matches "$beside/tar" "$(printf '%s' "$body" | json_string size)" "$(printf '%s' "$body" | json_string md5Hash)"; then
    compiles "what arrived does not match its checksum, and was thrown away"
  elif ! cause=$(tar -x -m --no-same-owner -f "$beside/tar" -C "$beside/new" 2>&1); then
    compiles "it cannot be unpacked, and was thrown away: $(short "${cause%%$'\n'*}")"
  else
    take_over "$beside/new"
    printf '%s' "$object $generation" >"$memory/cache"
    say "cache: $(count_programs) programs are here"
  fi
  rm -rf "$beside"
}

compiles() { # compiles WHY
  say "cache: $1; this start compiles"
}

take_over() { # take_over FOLDER: by renames, so that half a program is never one
  local program
  for program in "$1"/*; do
    [[ ! -f $program || -L $program ]] || mv -f "$program" "$cache_folder/"
  done
}

programs() { # newest first: time, bytes, name
  find "$cache_folder" -maxdepth 1 -type f -printf '%T@ %s %f\n' | sort -rn
}

count_programs() {
  programs | wc -l
}

save_cache() { # only once a prompt was completed: what compiled these programs works
  local object generation before after
  [[ -e $parts/cache.before ]] || return 0 # it broke before: what is there is not known
  object=$(cat "$parts/cache.object" 2>/dev/null || true)
  generation=$(cat "$parts/cache.generation" 2>/dev/null || true)
  before=$(cat "$parts/cache.before")
  after=$(count_programs)
  tell_cache "$before" "$((after - before))"
  [[ -n $object ]] || return 0
  ((after > before)) || [[ -z $generation ]] || return 0
  if ((after == 0)); then
    say "cache: The server keeps no programs in $cache_folder: there is nothing to save"
    return
  fi
  push_cache "$object" "$generation"
  rm -rf "$cache_folder/.tpudeploy"
  prune_cache "$object"
}

tell_cache() { # tell_cache BEFORE NEW
  local word=miss
  (($1 == 0)) || word="partly a hit"
  (($1 == 0 || $2 > 0)) || word=hit
  say "cache: $word: $1 programs were here, $2 were compiled anew"
  record cache "$word: $1 programs were here, $2 were compiled anew"
}

push_cache() { # push_cache OBJECT GENERATION: whole or not at all, and only over what was seen before
  local object=$1 beside=$cache_folder/.tpudeploy cause answer status
  mkdir -p "$beside"
  if ! cause=$(programs | newest | tar -cf "$beside/tar" -C "$cache_folder" -T - 2>&1); then
    say "cache: It cannot be packed and is not saved: $(short "${cause%%$'\n'*}")"
    return
  fi
  answer=$(storage_call "upload/storage/v1/b/$cache_bucket/o?uploadType=media&name=${object//\//%2F}&ifGenerationMatch=${2:-0}" \
    -X POST -H 'Content-Type: application/x-tar' -T "$beside/tar")
  status=${answer##*$'\n'}
  case $status in
    200)
      printf '%s %s' "$object" "$(printf '%s' "${answer%$'\n'*}" | json_string generation)" >"$memory/cache"
      say "cache: Saved as gs://$cache_bucket/$object ($(stat -c %s "$beside/tar") bytes)" ;;
    412) say "cache: Another machine saved it meanwhile; its copy stays" ;;
    *) say "cache: It is not saved: $(refused "$status" "${answer%$'\n'*}" roles/storage.objectUser)" ;;
  esac
}

newest() { # of what `programs` lists, the names of as many as one object may hold
  local size name left=$cache_bytes_most
  while read -r _ size name; do
    ((left -= size, left >= 0)) || break
    printf '%s\n' "$name"
  done
  cat >/dev/null
}

prune_cache() { # prune_cache OBJECT: none but ours, never the one in use, and only what is both surplus and old
  local answer oldest updated name number=0
  oldest=$(printf '%(%Y-%m-%d)T' "$(($(now) - cache_days * 86400))")
  answer=$(storage_call "storage/v1/b/$cache_bucket/o?prefix=${cache_prefix//\//%2F}tpudeploy-xla-&fields=items(name,updated)")
  [[ ${answer##*$'\n'} == 200 ]] || return 0
  while read -r updated name; do
    number=$((number + 1))
    ((number > cache_objects_most)) && [[ $updated < $oldest && $name != "$1" ]] || continue
    answer=$(storage_call "$(storage_path "$cache_bucket" "$name")" -X DELETE)
    say "cache: Removed gs://$cache_bucket/$name, written last on ${updated%%T*} (HTTP ${answer##*$'\n'})"
  done < <(printf '%s' "${answer%$'\n'*}" | json_objects | cache_rows | sort -r)
}

cache_rows() { # of objects, one a line: when it was written, and its name
  local object name
  while IFS= read -r object; do
    name=$(printf '%s' "$object" | json_string name)
    [[ $name == "$cache_prefix"tpudeploy-xla-*.tar ]] || continue
    printf '%s %s\n' "$(printf '%s' "$object" | json_string updated)" "$name"
  done
}
