# The host: settings that big models need, and that Compute Engine's image does not have. A machine that refuses one of
# them starts its server all the same.

prepare_host() {
  set_host 8388608 /proc/sys/vm/max_map_count
  set_host 2000000 /sys/module/vfio_iommu_type1/parameters/dma_entry_limit
  set_host always /sys/kernel/mm/transparent_hugepage/enabled
}

set_host() { # set_host VALUE FILE
  { printf '%s' "$1" >"$root$2"; } 2>/dev/null || say "host: $2 cannot be set to $1"
}
