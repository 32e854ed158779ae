# The container of one host, which is the server: its state. On several hosts it is Ray (cluster.sh).

container_state() { # "true 0" while it runs; a docker that does not answer is no evidence that it ended
  local status=0
  timeout 60 docker inspect -f '{{.State.Running}} {{.State.ExitCode}}' "$name" 2>/dev/null || status=$?
  case $status in
    0) ;;
    124) printf 'true 0' ;;
    *) printf 'false unknown' ;;
  esac
}
