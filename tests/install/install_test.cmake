# Run by ctest; see CMakeLists.txt for its variables.
set(prefix "${WORK}/prefix")
set(build "${WORK}/consumer")
file(REMOVE_RECURSE "${prefix}" "${build}")

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${prefix}")
run(${CMAKE_COMMAND} -S "${CONSUMER}" -B "${build}" -G "${GENERATOR}" -D CMAKE_BUILD_TYPE=Release
  -D "CMAKE_CXX_COMPILER=${COMPILER}" -D "CMAKE_PREFIX_PATH=${prefix}")
run(${CMAKE_COMMAND} --build "${build}")
run("${build}/simulated")
if(EXISTS "${build}/real")
  run("${build}/real" "${MODEL}")
endif()
