#!/usr/bin/env bash
# On a GPU host: issue 7's plan with our own commands, in the order of their value, until SECONDS_LEFT are over.
# Usage: SECONDS_LEFT=1400 tools/h200/plan.sh RUNS_FOLDER   (in the repository's root; `setsid` it to outlive a shell)
# Every part stops by SIGINT when its time is up, which keeps what was measured and writes the reports.
set -uo pipefail
runs=$1; mkdir -p "$runs"; began=$SECONDS; left=${SECONDS_LEFT:-1400}
: "${PYTHON:=python3}" "${MODEL:=/tmp/models/dense-8b}" "${SERVER_PYTHONPATH:=/tmp/site}" "${KV_BYTES:=26000000000}"
: "${LEVELS:=1,2,4,8,16,32,64,128,256}" "${VERIFY_LEVELS:=8,32,128}" "${WINDOW:=4}" "${REPEATS:=3}" "${WORKERS:=2}"
: "${OPEN_LOOP:=9}" "${INPUT:=500}" "${OUTPUT:=uniform:64-192}"
export VLLM_COMMAND=${VLLM_COMMAND:-"python3 -m vllm.entrypoints.openai.api_server"}
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 VLLM_USE_FLASHINFER_SAMPLER=0
export VLLM_CACHE_ROOT=${VLLM_CACHE_ROOT:-$runs/../vllm-cache}

say() { echo "[$((SECONDS - began)) s] $*" | tee -a "$runs/plan.log"; }

# part NAME AT_LEAST COMMAND...: if AT_LEAST seconds are left, runs it for as long as there are.
part() {
    local name=$1 least=$2 rest=$((left - (SECONDS - began))); shift 2
    if ((rest < least)); then say "$name: not run, $rest s are left of $least wanted"; return; fi
    say "$name begins"
    timeout -s INT -k 60 "$rest" "$@" >"$runs/$name.out" 2>"$runs/$name.err"
    say "$name ended with $?"
}

sweep() {  # NAME AT_LEAST ARGUMENTS...
    local name=$1 least=$2; shift 2
    part "$name" "$least" "$PYTHON" -m loadgen sweep --engine process --model "$MODEL" --profiles tools/h200/profiles \
        --runs "$runs/$name" --order together --workload chat --input-tokens "$INPUT" --output-lengths "$OUTPUT" \
        --ignore-eos --window "$WINDOW" --repeats "$REPEATS" --workers "$WORKERS" --start-timeout 300 \
        --server-env "PYTHONPATH=$SERVER_PYTHONPATH" --server-arg=--load-format --server-arg=dummy \
        --server-arg=--max-model-len --server-arg=4096 --server-arg=--max-num-seqs --server-arg=256 \
        --server-arg=--gpu-memory-utilization --server-arg=0.15 \
        --server-arg=--kv-cache-memory-bytes "--server-arg=$KV_BYTES" "$@"
}

nvidia-smi >"$runs/nvidia-smi.txt" 2>&1
sweep dense8b 200 --profile layer-draft --k 1,3 --levels "$LEVELS"
part schedule 0 "$PYTHON" -m loadgen schedule latest --runs "$runs/dense8b" --json
part verify 250 "$PYTHON" -m loadgen verify latest --runs "$runs/dense8b" --levels "$VERIFY_LEVELS" \
    --repeats "$REPEATS" --window "$WINDOW" --open-loop "$OPEN_LOOP"
REPEATS=1 sweep probe 220 --profile layer-probe --levels 1,8,32,64,128
say "plan is over"
