"""
Run the tests that failed in a checkout once more by themselves, if all of them drive a browser.

    .ci/again.py FOLDER

A test does not fully control a browser's timing. So a test that passes now is listed in FOLDER/flaky, and the run
goes on; the next commit repairs it. Exit with 1 if a test of another kind has failed, or if one fails again.
"""

import json
import subprocess
import sys
from pathlib import Path

folder = Path(sys.argv[1])
noted = folder / ".pytest_cache/v/cache/lastfailed"
failed = sorted(json.loads(noted.read_text())) if noted.exists() else []
if not failed or not all(test.startswith("tests/browser/") for test in failed):
    sys.exit(1)
print("\n== Failed in a browser; running once more by themselves:", *failed, sep="\n", flush=True)
command = [".venv/bin/python", "-m", "pytest", "-p", "no:randomly", *failed]
if subprocess.run(command, cwd=folder, check=False).returncode:
    sys.exit(1)
(folder / "flaky").write_text("".join(f"FLAKY: {test}\n" for test in failed))
