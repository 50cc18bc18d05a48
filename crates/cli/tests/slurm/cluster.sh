#!/usr/bin/env bash
# A cluster of one node on this machine, for tests: Debian's slurm-wlm and munge on loopback.
#
#   cluster.sh start FOLDER       starts it, with all its files in FOLDER; then: export SLURM_CONF=FOLDER/slurm.conf
#   cluster.sh kill-node FOLDER   kills the node and its jobs without warning, and starts it again
#   cluster.sh kill-job FOLDER N  kills what runs in task N of an array (12_3), as the system does when memory runs out
#   cluster.sh stop FOLDER        stops it
#
# The daemons run as root, as Slurm wants it; nothing outside FOLDER is written but munge's socket.
set -euo pipefail

folder=$(realpath -m "$2")
case $1 in
start)
  mkdir -p "$folder"/{state,spool,munge}
  name=$(hostname -s)
  # Munge refuses folders that others may write to.
  chmod 700 "$folder/munge"; chmod 755 "$folder"
  head --bytes 1024 /dev/urandom > "$folder/munge/key"; chmod 400 "$folder/munge/key"
  munged --force --socket "$folder/munge/socket" --key-file "$folder/munge/key" --log-file "$folder/munge/log" \
    --pid-file "$folder/munge/pid" --seed-file "$folder/munge/seed"
  # A job whose node failed waits until its credential has expired: by default two minutes.
  cat > "$folder/slurm.conf" <<EOF
ClusterName=isogloss
SlurmctldHost=$name(127.0.0.1)
SlurmUser=root
SlurmctldPort=${ISOGLOSS_SLURM_PORT:-26817}
SlurmdPort=$((${ISOGLOSS_SLURM_PORT:-26817} + 1))
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=defer,batch_sched_delay=0,sched_interval=1,bf_interval=1
ReturnToService=2
SlurmdTimeout=6
MpiDefault=none
KillWait=5
MinJobAge=300
JobRequeue=1
NodeName=$name NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=cpu Nodes=$name Default=YES State=UP
PartitionName=gpu Nodes=$name State=UP
EOF
  export SLURM_CONF=$folder/slurm.conf
  slurmctld -f "$SLURM_CONF"
  slurmd -f "$SLURM_CONF" -N "$name"
  for _ in $(seq 100); do
    sinfo --noheader --format=%T 2> /dev/null | grep -q idle && exit 0
    sleep 0.2
  done
  echo "the node did not come up:" >&2; tail -n 20 "$folder"/slurm*.log >&2
  exit 1 ;;
stop)
  for pid in "$folder"/slurmd.pid "$folder"/slurmctld.pid "$folder"/munge/pid; do
    [ -s "$pid" ] && kill "$(cat "$pid")" 2> /dev/null || true
  done ;;
kill-node)
  # The node dies with all that runs on it, Slurm notices, and it comes back.
  SLURM_CONF=$folder/slurm.conf
  kill -9 "$(cat "$folder/slurmd.pid")"
  # Everything of this cluster's jobs: slurmstepd, their scripts and what these run.
  for process in /proc/[0-9]*; do
    if grep --quiet --text "SLURM_CONF=$SLURM_CONF" "$process/environ" 2> /dev/null &&
      ! grep --quiet --text -e slurmctld -e slurmscriptd "$process/cmdline" && [ "${process#/proc/}" != $$ ]; then
      kill -9 "${process#/proc/}" 2> /dev/null || true
    fi
  done
  export SLURM_CONF
  for _ in $(seq 150); do
    sinfo --noheader --format=%T | grep -q down && break
    sleep 0.2
  done
  # From now on a busy machine is not taken for a dead one.
  sed -i 's/^SlurmdTimeout=.*/SlurmdTimeout=300/' "$SLURM_CONF"
  scontrol reconfigure
  slurmd -f "$SLURM_CONF" -N "$(hostname -s)"
  for _ in $(seq 150); do
    sinfo --noheader --format=%T | grep -q -e idle -e mix -e alloc && break
    sleep 0.2
  done ;;
kill-job)
  for process in /proc/[0-9]*; do
    environ=$(tr '\0' '\n' 2> /dev/null < "$process/environ" || true)
    # Its script, the step and its command; not slurmstepd, which reports how they ended.
    if grep --quiet --line-regexp "SLURM_CONF=$folder/slurm.conf" <<< "$environ" &&
      grep --quiet --line-regexp "SLURM_ARRAY_JOB_ID=${3%_*}" <<< "$environ" &&
      grep --quiet --line-regexp "SLURM_ARRAY_TASK_ID=${3#*_}" <<< "$environ" &&
      ! grep --quiet --text slurmstepd "$process/cmdline"; then
      kill -9 "${process#/proc/}" 2> /dev/null || true
    fi
  done ;;
*) echo "start, stop, kill-node or kill-job" >&2; exit 2 ;;
esac
