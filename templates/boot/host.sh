# The host: settings that big models need, and that an image may not have (Compute Engine's has none of them). They are
# raised where they are lower. A machine that refuses one of them starts its server all the same.

prepare_host() {
  raise_host 8388608 /proc/sys/vm/max_map_count
  raise_host 2000000 /sys/module/vfio_iommu_type1/parameters/dma_entry_limit
  set_host always /sys/kernel/mm/transparent_hugepage/enabled
}

raise_host() { # raise_host LEAST FILE
  local current
  current=$(cat "$root$2" 2>/dev/null) || current=""
  if ! [[ $current =~ ^[0-9]+$ ]] || ((current < $1)); then
    set_host "$1" "$2"
  fi
}

set_host() { # set_host VALUE FILE
  { printf '%s' "$1" >"$root$2"; } 2>/dev/null || say "host: $2 cannot be set to $1"
}
