# Units of systemd's. They are transient: a boot starts them anew.

has_systemd() { # sd_booted(3)
  [[ -d $root/run/systemd/system ]]
}

lives() { # lives UNIT: also one that systemd is about to start again
  case $(systemctl is-active "$1" 2>/dev/null) in
    active | activating | reloading | deactivating) ;;
    *) return 1 ;;
  esac
}

start_unit() { # start_unit OPTION... COMMAND...
  systemd-run --quiet --collect --setenv=HOME=/root --property=SyslogIdentifier=startup-script \
    --property=RestartSec=5 "$@"
}
