# Functions of the script that measures pairs of nodes: those of a launcher, and that of a test, each below its name.
# ADAPTERS and LIMIT (seconds) are filled in.
#: slurm on
on() { local node=$1; shift; srun --overlap -N1 -n1 -w "$node" "$@"; }
#: clush on
on() { local node=$1; shift; clush -n -N -w "$node" "$*"; }
#: slurm both
both() { local a=$1 b=$2; shift 2; srun --overlap -N2 -n2 --ntasks-per-node=1 -w "$a,$b" "$@"; }
#: clush both
both() { local a=$1 b=$2; shift 2; mpirun -np 2 -H "$a:1,$b:1" "$@"; }
#: ib_write_bw
pair() {  # ROUND SERVER CLIENT
  local adapter server
  for adapter in ADAPTERS; do
    on "$2" timeout LIMIT ib_write_bw -d "$adapter" -F --report_gbits -D 5 > /dev/null 2>&1 &
    server=$!
    sleep 3
    on "$3" timeout LIMIT ib_write_bw -d "$adapter" -F --report_gbits -D 5 "$2" > "$out/$1,$2,$3,$adapter.txt" 2>&1
    wait "$server"
  done
}
#: nccl-tests
pair() {  # ROUND NODE NODE
  local adapter
  for adapter in ADAPTERS; do
    both "$2" "$3" env NCCL_IB_HCA="=$adapter" timeout LIMIT all_reduce_perf -b 1G -e 1G -g "${GPUS:-8}" \
      > "$out/$1,$2,$3,$adapter.txt" 2>&1
  done
}
#: nccl-tests of all
pair() {  # ROUND NODE NODE
  both "$2" "$3" timeout LIMIT all_reduce_perf -b 1G -e 1G -g "${GPUS:-8}" > "$out/$1,$2,$3,-.txt" 2>&1
}
#: nvbandwidth
pair() {  # ROUND NODE NODE
  both "$2" "$3" timeout LIMIT nvbandwidth -p multinode_device_to_device_memcpy > "$out/$1,$2,$3,-.txt" 2>&1
}
