// All that a translated kernel includes.

#pragma once

#include "atomics.h"
#include "check.h"
#include "crosslane.h"
#include "division.h"
#include "float.h"
#include "integer.h"
#include "lanes.h"
#include "matrix.h"
#include "memory.h"
#include "more.h"
#include "scalar.h"
#include "wave.h"
