// Made by CMake in a real build.
#pragma once
#define GGML_VERSION "0"
#define GGML_COMMIT "0"
