# The chip: free before a container starts on it. What was killed may take a while to let go of it.

free_the_chip() {
  local waited
  for ((waited = 0; waited < 60; waited += 2)); do
    [[ -n $(chip_holders) ]] || break
    ((waited > 0)) || say "Waiting until nobody holds the chip: $(chip_holders)"
    sleep 2
  done
  [[ -z $(chip_holders) ]] || say "The chip is still held after $waited s, the server is started all the same"
  # A container that was killed leaves it behind, and libtpu then believes that the chips are taken.
  rm -f "$root/tmp/libtpu_lockfile"
}

chip_holders() { # open files under /proc, for fuser and lsof may be missing; nothing where it cannot be told
  find "$root"/proc/[0-9]*/fd -lname '/dev/vfio/[0-9]*' -o -lname '/dev/accel[0-9]*' 2>/dev/null || true
}
