#!/bin/sh
# Makes a virtual environment that trains with JoeyNMT 2.3.0:
#     benchmarks/setup_joeynmt.sh /tmp/joeynmt-env
# The folder must lie outside the repository: a peer's packages are never part of Pellucid.
# benchmarks/peers.md says why each line is as it is.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 FOLDER (outside the repository)" >&2
    exit 2
fi
folder=$1
repository=$(cd "$(dirname "$0")/.." && pwd -P)
mkdir -p "$folder"
case "$(cd "$folder" && pwd -P)/" in
"$repository"/*)
    rmdir "$folder" 2>/dev/null || true
    echo "the environment must lie outside the repository, got $folder" >&2
    exit 2
    ;;
esac

"${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip --disable-pip-version-check install --quiet "$@"; }
pip torch==2.13.0 sentencepiece==0.2.0 numpy==2.4.6 PyYAML==6.0.3 sacrebleu==2.6.0 \
    subword-nmt==0.3.8 tensorboard==2.21.0 matplotlib==3.11.2 importlib_metadata==10.2.0
pip --no-deps joeynmt==2.3.0

"$folder/bin/python" -c '
import joeynmt.training, sentencepiece, torch
from importlib.metadata import version
print("joeynmt", version("joeynmt"), "torch", torch.__version__,
      "sentencepiece", sentencepiece.__version__)'
