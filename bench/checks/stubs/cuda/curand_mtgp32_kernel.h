// clang's wrapper of the CUDA headers asks for it; nothing here uses cuRAND.
#pragma once
