// The whole runtime as one translation unit: it is compiled when it is first needed, and this way that takes seconds.

#include "copy.cpp"
#include "device.cpp"
#include "dispatch.cpp"
#include "graph.cpp"
#include "launch.cpp"
#include "loader.cpp"
#include "memory.cpp"
#include "module.cpp"
#include "report.cpp"
#include "services.cpp"
#include "settings.cpp"
#include "stream.cpp"
