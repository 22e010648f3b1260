# Shared by the scripts beside it; sourced, not run.

say() { printf '==> %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export TROUPE_CACHE=${TROUPE_CACHE:-${HOME:?HOME is not set; set it or TROUPE_CACHE}/.cache/troupe}
venv=$TROUPE_CACHE/venv
model=$TROUPE_CACHE/models/SmolLM2-135M-Instruct.Q4_1.gguf
