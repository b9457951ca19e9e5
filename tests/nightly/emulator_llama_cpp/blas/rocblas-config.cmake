# Found here: the target roc::rocblas is the stand-in of this project.
