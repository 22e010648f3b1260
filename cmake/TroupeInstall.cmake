# Headers, find modules and package configuration of the installed tree.
include(CMakePackageConfigHelpers)
foreach(folder cache model actors)
  install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/troupe/${folder} FILES_MATCHING PATTERN "*.hpp")
endforeach()
if(TROUPE_WITH_TORCH)
  get_filename_component(TROUPE_LIBTORCH_ROOT "${LibTorch_INCLUDE_DIR}" DIRECTORY)
endif()
set(_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)
configure_package_config_file(cmake/troupeConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/troupeConfig.cmake"
  INSTALL_DESTINATION ${_config_dir})
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/troupeConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/troupeConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/troupeConfigVersion.cmake"
  cmake/FindCAF.cmake cmake/FindxxHash.cmake cmake/FindLibTorch.cmake cmake/FindOniguruma.cmake cmake/Findutf8proc.cmake
  DESTINATION ${_config_dir})
install(EXPORT troupeTargets NAMESPACE troupe:: DESTINATION ${_config_dir})
