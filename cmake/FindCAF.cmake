# The C++ Actor Framework 0.17 as Debian packages it. Defines CAF::core.
find_path(CAF_INCLUDE_DIR caf/config.hpp)
find_library(CAF_CORE_LIBRARY caf_core)
if(CAF_INCLUDE_DIR)
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" _caf_version REGEX "#define CAF_VERSION +[0-9]+")
  if(_caf_version MATCHES "CAF_VERSION +([0-9]+)")
    math(EXPR _major "${CMAKE_MATCH_1} / 10000")
    math(EXPR _minor "${CMAKE_MATCH_1} / 100 % 100")
    math(EXPR _patch "${CMAKE_MATCH_1} % 100")
    set(CAF_VERSION "${_major}.${_minor}.${_patch}")
  endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS CAF_CORE_LIBRARY CAF_INCLUDE_DIR VERSION_VAR CAF_VERSION)
if(CAF_FOUND AND NOT TARGET CAF::core)
  find_package(Threads REQUIRED)
  add_library(CAF::core UNKNOWN IMPORTED)
  set_target_properties(CAF::core PROPERTIES
    IMPORTED_LOCATION "${CAF_CORE_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
    # Turns a message type that was not registered into a compile error.
    INTERFACE_COMPILE_DEFINITIONS CAF_ENABLE_TYPE_ID_CHECKS
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
