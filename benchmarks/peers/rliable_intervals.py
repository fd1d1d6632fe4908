"""The interval of rliable for each array of a JSON file: prints the processor seconds that they take together."""

import json
import sys
import time
from pathlib import Path

import numpy as np
from rliable import library

arrays = [np.array(values)[:, None] for values in json.loads(Path(sys.argv[1]).read_text())]
start = time.process_time()
for array in arrays:
    library.get_interval_estimates({"a": array}, lambda x: np.array([np.mean(x)]), reps=10_000)
print(time.process_time() - start)
