# What every target of troupe has in common.

# troupe_library(<name> SOURCES <file>... [PUBLIC <target>...] [PRIVATE <target>...])
# makes the library troupe_<name>, its alias troupe::<name>, and marks it for installation.
function(troupe_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(troupe_${name} STATIC ${arg_SOURCES})
  add_library(troupe::${name} ALIAS troupe_${name})
  set_target_properties(troupe_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(troupe_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/troupe>)
  target_link_libraries(troupe_${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  troupe_options(troupe_${name})
  install(TARGETS troupe_${name} EXPORT troupeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# troupe_options(<target>) sets language level, warnings and sanitizers.
function(troupe_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  # Members have defaults, so a designated initializer may leave them out.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
    -Wno-missing-field-initializers)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlapping copies in every `"literal" + std::string` (GCC bug 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  if(TROUPE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(TROUPE_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${TROUPE_SANITIZE})
  endif()
endfunction()
