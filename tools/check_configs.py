"""Checks that every shipped profile loads and passes its own checks; prints each fault and exits 1."""

import sys
from pathlib import Path

from loadgen.errors import LoadgenError
from loadgen.profiles.compat import check_profile
from loadgen.profiles.loader import list_profiles, load_profile

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """0 if all load, else 1."""
    faults = 0
    names = list_profiles(ROOT / "server_profiles")
    for name in names:
        try:
            check_profile(load_profile(name, ROOT / "server_profiles"), vllm_version=None, model=None)
        except LoadgenError as error:
            print(f"server_profiles/{name}.yaml: {error}")
            faults += 1
    if not names:
        print("server_profiles/ holds no profile")
        faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
