import sys
from pathlib import Path

sys.path[:0] = [str(path) for path in Path(__file__).parent.iterdir() if path.is_dir()]
