# The mirror: the weights from a bucket of one's own instead of the hub, several files at once, each held to its
# checksum. One that is declared and broken ends the boot: going to the hub after all is what its owner ruled out.

mirror_jobs=8

fetch_weights() {
  local size generation md5 name running=0 kept=$mirror_folder/.tpudeploy
  say "mirror: Looking at gs://$mirror_bucket/$mirror_prefix"
  list_weights >"$parts/mirror"
  cut -d ' ' -f 4 "$parts/mirror" >"$parts/mirror.names"
  grep -qx 'config.json' "$parts/mirror.names" ||
    fail "The mirror gs://$mirror_bucket/$mirror_prefix holds no config.json: copy the model's files there, or correct model.mirror"
  mkdir -p "$kept" || fail "There is no place for the weights: $mirror_folder cannot be made"
  touch "$kept/fetched"
  while read -r size generation md5 name; do
    if ((running == mirror_jobs)); then
      wait -n || exit 1
      running=$((running - 1))
    fi
    fetch_weight "$size" "$generation" "$md5" "$name" &
    running=$((running + 1))
  done <"$parts/mirror"
  for ((; running; running--)); do
    wait -n || exit 1
  done
  remove_strays
  say "mirror: $(wc -l <"$parts/mirror.names") files are here"
}

list_weights() { # a line a file: bytes, generation, MD5 ("-" where a composite object has none), name below the prefix
  local answer status page='' fields='nextPageToken,items(name,size,md5Hash,generation)'
  while :; do
    answer=$(storage_call "storage/v1/b/$mirror_bucket/o?prefix=${mirror_prefix//\//%2F}&fields=$fields$page" --retry 3)
    status=${answer##*$'\n'}
    [[ $status == 200 ]] ||
      fail "The mirror gs://$mirror_bucket/$mirror_prefix cannot be read: $(refused "$status" "${answer%$'\n'*}" roles/storage.objectViewer)"
    printf '%s' "${answer%$'\n'*}" | json_objects | weight_rows
    page=$(printf '%s' "$answer" | json_string nextPageToken | sed 's/+/%2B/g; s/=/%3D/g; s,/,%2F,g')
    [[ -n $page ]] || return 0
    page="&pageToken=$page"
  done
}

weight_rows() { # of objects, one a line; folders and hidden files are no weights
  local object name md5
  while IFS= read -r object; do
    name=$(printf '%s' "$object" | json_string name)
    name=${name#"$mirror_prefix"}
    [[ -n $name && $name != */ && /$name != */.* ]] || continue
    [[ $name =~ ^[A-Za-z0-9._/+=@-]+$ ]] || fail "The mirror's object '$name' cannot be a file of a model: rename or remove it"
    md5=$(printf '%s' "$object" | json_string md5Hash)
    printf '%s %s %s %s\n' "$(printf '%s' "$object" | json_string size)" \
      "$(printf '%s' "$object" | json_string generation)" "${md5:--}" "$name"
  done
}

fetch_weight() { # fetch_weight BYTES GENERATION MD5 NAME
  local file=$mirror_folder/$4 beside=$mirror_folder/.tpudeploy/$4 delay answer status cause
  if grep -qxF "$2 $4" "$mirror_folder/.tpudeploy/fetched" && matches "$file" "$1" ""; then
    return
  fi
  mkdir -p "${file%/*}" "${beside%/*}"
  [[ $3 != - ]] || say "mirror: $4 has no MD5 (a composite object): only its size is compared"
  for delay in 2 4 8 16 0; do
    answer=$(storage_call "$(storage_path "$mirror_bucket" "$mirror_prefix$4")?alt=media&generation=$2" -o "$beside")
    status=${answer##*$'\n'}
    if [[ $status == 200 ]] && matches "$beside" "$1" "${3#-}"; then
      mv -f "$beside" "$file"
      printf '%s %s\n' "$2" "$4" >>"$mirror_folder/.tpudeploy/fetched"
      return
    fi
    cause=$(refused "$status" "" roles/storage.objectViewer)
    [[ $status != 200 ]] || cause="what arrived does not match its checksum"
    rm -f "$beside"
    [[ ! $status =~ ^40[0-9]$|'disk full' ]] || break
    say "mirror: $4: $cause; trying again in $delay s"
    sleep "$delay"
  done
  fail "The mirror's $4 could not be fetched: $cause"
}

remove_strays() { # what an earlier state of the mirror left: a shard too many would be loaded
  local name
  find "$mirror_folder" -type f -not -path "$mirror_folder/.tpudeploy/*" -printf '%P\n' | while IFS= read -r name; do
    grep -qxF -- "$name" "$parts/mirror.names" || rm -f "$mirror_folder/$name"
  done
}
