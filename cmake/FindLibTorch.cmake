# LibTorch wherever the user has it. Defines LibTorch::cpu, and sets LibTorch_CUDA to whether libtorch_cuda is there.
# Searched in this order: LIBTORCH_ROOT, CMAKE_PREFIX_PATH, the virtual environment in $TROUPE_CACHE, the torch package
# of the Python found first on the PATH. TorchConfig.cmake is not used: with a CUDA wheel it insists on a CUDA toolkit.
if(DEFINED ENV{TROUPE_CACHE})
  set(_troupe_cache "$ENV{TROUPE_CACHE}")
else()
  set(_troupe_cache "$ENV{HOME}/.cache/troupe")
endif()
file(GLOB _torch_candidates "${_troupe_cache}/venv/lib/python3*/site-packages/torch")
if(NOT LIBTORCH_ROOT)
  find_program(_torch_python NAMES python3 python)
  if(_torch_python)
    execute_process(
      COMMAND ${_torch_python} -c
        "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE _torch_from_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(_torch_from_python)
      list(APPEND _torch_candidates "${_torch_from_python}")
    endif()
  endif()
endif()
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h HINTS "${LIBTORCH_ROOT}" PATHS ${_torch_candidates} PATH_SUFFIXES include)
if(LibTorch_INCLUDE_DIR)
  get_filename_component(_torch_root "${LibTorch_INCLUDE_DIR}" DIRECTORY)
  if(EXISTS "${_torch_root}/version.py")
    file(STRINGS "${_torch_root}/version.py" _torch_version REGEX "^__version__ = ")
  elseif(EXISTS "${_torch_root}/build-version")
    file(STRINGS "${_torch_root}/build-version" _torch_version LIMIT_COUNT 1)
  endif()
  if(_torch_version MATCHES "([0-9]+\\.[0-9]+\\.[0-9]+)")
    set(LibTorch_VERSION "${CMAKE_MATCH_1}")
  endif()
endif()
find_library(LibTorch_CPU_LIBRARY torch_cpu HINTS "${_torch_root}/lib")
find_library(LibTorch_C10_LIBRARY c10 HINTS "${_torch_root}/lib")
find_library(LibTorch_CUDA_LIBRARY torch_cuda HINTS "${_torch_root}/lib")
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "Set LIBTORCH_ROOT or CMAKE_PREFIX_PATH to a LibTorch, or run scripts/setup first.")
if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  set(LibTorch_CUDA OFF)
  if(LibTorch_CUDA_LIBRARY)
    set(LibTorch_CUDA ON)
  endif()
  get_filename_component(_torch_lib "${LibTorch_CPU_LIBRARY}" DIRECTORY)
  add_library(LibTorch::cpu INTERFACE IMPORTED)
  set_target_properties(LibTorch::cpu PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES "${LibTorch_CPU_LIBRARY};${LibTorch_C10_LIBRARY}"
    # A pip wheel keeps the CUDA runtime that libtorch_cpu.so needs beside it, found through libtorch's own rpath.
    INTERFACE_LINK_OPTIONS
      "LINKER:--disable-new-dtags,-rpath,${_torch_lib}:${_torch_lib}/../../nvidia/cu13/lib;LINKER:--allow-shlib-undefined")
endif()
