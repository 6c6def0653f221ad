#!/bin/sh
# Install pymarian and fxtranslate into a virtual environment of their own: contenders of
# student_referees.py, never dependencies. pymarian has wheels for Python 3.11, of 600 MB.
#
#     sh benchmarks/setup_marian.sh /tmp/marian
set -eu
python3 -m venv "$1"
"$1/bin/pip" install -q pymarian==1.12.42 fxtranslate==0.5.0
