# Packages of the distribution.

apt_get() {
  DEBIAN_FRONTEND=noninteractive timeout --kill-after=10 600 apt-get -q -o DPkg::Lock::Timeout=300 "$@" 2>&1
}
