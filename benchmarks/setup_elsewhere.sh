#!/bin/sh
# Makes a virtual environment for each program that opens an exported model:
#     benchmarks/setup_elsewhere.sh /tmp/elsewhere
# The folder must lie outside the repository: a peer's packages are never part of Pellucid. What
# cannot be installed leaves its last lines in FOLDER/NAME.log, and the others go on.
set -u

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
    echo "the environments must lie outside the repository, got $folder" >&2
    exit 2
    ;;
esac

# torch is pinned to the version that Pellucid is tested with, and so cannot become a CUDA build
# where its CPU build was installed from PyTorch's own index.
torch=torch==2.13.0
make() {
    name=$1
    shift
    "${PYTHON:-python3}" -m venv "$folder/$name" &&
        "$folder/$name/bin/python" -m pip --disable-pip-version-check install --quiet \
            --no-compile "$@" >"$folder/$name.log" 2>&1 &&
        echo "$name: installed" || echo "$name: $(grep -a ERROR "$folder/$name.log" | tail -n 1)"
}
make ctranslate2 ctranslate2==4.8.5 sentencepiece==0.2.3
make onnxruntime onnxruntime==1.31.1 sentencepiece==0.2.3
make transformers "$torch" transformers==5.23.0 sentencepiece==0.2.3
make transformer_lens "$torch" transformer-lens==4.3.0 sentencepiece==0.2.3
make inseq "$torch" inseq==0.7.1 sentencepiece==0.2.3
make bertviz "$torch" bertviz==1.4.1 sentencepiece==0.2.3
