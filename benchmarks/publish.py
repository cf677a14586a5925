"""Writes results into docs/performance.md, between its two marks.

python -m benchmarks.publish .cache/bench/results/A.json [B.json ...]
"""

import sys
from pathlib import Path

from benchmarks.clients.base import ROOT
from benchmarks.result import merged, read_result

PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def published(page: str, text: str) -> str:
    """The page with `text` between its marks. Raises ValueError if a mark is missing."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def main() -> None:
    """Reads the files and rewrites the page."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    result = merged([read_result(Path(name)) for name in sys.argv[1:]])
    PAGE.write_text(published(PAGE.read_text(encoding="utf-8"), result.text()), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
