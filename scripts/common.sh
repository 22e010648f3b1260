# Shared by the scripts beside it; sourced, not run.

say() { printf '==> %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ -n "${TROUPE_CACHE:-}" ] || [ -n "${HOME:-}" ] || die "HOME is not set; set it or TROUPE_CACHE"
export TROUPE_CACHE=${TROUPE_CACHE:-$HOME/.cache/troupe}
model=$TROUPE_CACHE/models/SmolLM2-135M-Instruct.Q4_1.gguf

# Compilers to run at once: one for each core, but no more than memory allows. LibTorch's headers take 1.5 GB each.
compile_jobs() {
  local cores gigabytes
  cores=$(nproc)
  gigabytes=$(awk '/^MemAvailable:/ {print int($2 / 1000000)}' /proc/meminfo)
  local jobs=$((gigabytes * 2 / 3))
  [ "$jobs" -le "$cores" ] || jobs=$cores
  [ "$jobs" -ge 1 ] || jobs=1
  echo "$jobs"
}

# configure PRESET [ARGUMENT...]: cmake's messages are shown only if something is wrong.
configure() {
  mkdir -p "$root/build"
  local log=$root/build/configure-$1.log
  (cd "$root" && cmake --preset "$@") >"$log" 2>&1 || {
    cat "$log" >&2
    die "cmake could not configure preset $1; its messages are above"
  }
}

# build PRESET TARGET...
build() {
  say "building $2 with preset $1"
  cmake --build "$root/build/$1" -j "$(compile_jobs)" --target "${@:2}" || die "the build failed; the compiler's messages are above"
}
