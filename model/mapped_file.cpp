#include "model/mapped_file.hpp"

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

tl::unexpected<Error> io_failure(const std::filesystem::path& path, const std::string& problem) {
  return fail(ErrorCode::io_error, path.string() + ": " + problem);
}

tl::unexpected<Error> last_failure(const std::filesystem::path& path) {
  return io_failure(path, std::generic_category().message(errno));
}

/// Closes a descriptor at the end of its scope.
struct Descriptor {
  int number = -1;

  explicit Descriptor(int opened) : number(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number >= 0) {
      ::close(number);
    }
  }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would wait for somebody to write to it.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // NOLINT(*-vararg)
  if (file.number < 0) {
    return last_failure(path);
  }
  struct stat status {};
  if (::fstat(file.number, &status) != 0) {
    return last_failure(path);
  }
  if (!S_ISREG(status.st_mode)) {
    return io_failure(path, S_ISDIR(status.st_mode) ? "expected a file, found a directory" : "not a regular file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    return MappedFile(std::span<const std::byte>());
  }
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (address == MAP_FAILED) {
    return last_failure(path);
  }
  return MappedFile(std::span(static_cast<const std::byte*>(address), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());  // NOLINT(*-const-cast)
  }
}

std::string_view MappedFile::text() const noexcept {
  return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};  // NOLINT(*-reinterpret-cast)
}

void MappedFile::release(std::span<const std::byte> part) noexcept {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  // Only whole pages: the ones at the borders belong to neighbours as well.
  const auto begin = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(part.data()) + part.size()) / page * page;
  if (begin < end) {
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // NOLINT(*-int-to-ptr)
  }
}

}  // namespace troupe
