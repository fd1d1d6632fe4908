#!/bin/sh
# install.sh PYTHON ARGUMENTS...: install packages into PYTHON's environment, with uv where it is found or can be
# installed (seconds), otherwise with pip (minutes). Both follow the same pins.
set -eu
python=$1
shift
beside=$(dirname "$python")/uv
if command -v uv > /dev/null; then
  uv=uv
elif [ -x "$beside" ] || "$python" -m pip install --quiet -c constraints.txt uv; then
  uv=$beside
else
  uv=
fi
# uv does not read pip's settings, so those that name a place to find packages are handed over.
[ -z "${PIP_FIND_LINKS:-}" ] || export UV_FIND_LINKS="${UV_FIND_LINKS:-$PIP_FIND_LINKS}"
[ -z "${PIP_INDEX_URL:-}" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$PIP_INDEX_URL}"
if [ -n "$uv" ]; then
  "$uv" pip install --quiet --python "$python" "$@" && exit 0
  echo "uv could not install the packages: trying pip." >&2
fi
exec "$python" -m pip install --quiet "$@"
