#!/usr/bin/env bash
# Becomes systemd as PID 1 of a machine of its own: called in new mount, pid, network, uts, ipc and cgroup namespaces.
# Nothing that it does is seen outside: the root is an overlay in memory. Ends with 75 where this system lacks something.
#
#   enter.sh FOLDER   FOLDER holds units/ and hosts, and is /world inside
set -Eeuo pipefail
world=$1
trap 'echo "line $LINENO: $BASH_COMMAND" >&2; exit 75' ERR

mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
mkdir /mnt/root /mnt/upper /mnt/work
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
cd /mnt/root
mkdir -p world proc sys run tmp dev before
mount --bind "$world" world
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs var/log
mount -t tmpfs tmpfs dev
for place in "${@:2}"; do # what the programs of the machine need, wherever that is: under /tmp too
  mkdir -p ".$place"
  mount --bind "$place" ".$place"
done
mkdir dev/pts dev/shm
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
touch "$world/console"
touch dev/console
mount --bind "$world/console" dev/console
cat "$world/hosts" >etc/hosts
ip link set lo up
mount --make-private .
pivot_root . before
umount -l before
trap - ERR
exec env -i container=tpudeploy SYSTEMD_UNIT_PATH=/world/units:/run/systemd/transient \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=world.target --log-target=console --log-level=notice
