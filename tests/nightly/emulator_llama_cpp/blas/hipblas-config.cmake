# Found here: the target roc::hipblas is the stand-in of this project.
