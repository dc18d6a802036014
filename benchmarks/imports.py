"""Seconds that `import keras_attention` and `import zoo` add to `import keras`.

python -m benchmarks.imports
"""

import statistics
import subprocess
import sys

ROUNDS = 5
CODE = """
import time, keras
begun = time.perf_counter()
import {package}
print(time.perf_counter() - begun)
"""


def main():
    for package in ("keras_attention", "zoo"):
        times = []
        for _ in range(ROUNDS):
            code = CODE.format(package=package)
            result = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            )
            times.append(float(result.stdout))
        print(f"import {package}: {statistics.median(times):.3f} s after keras")


if __name__ == "__main__":
    main()
