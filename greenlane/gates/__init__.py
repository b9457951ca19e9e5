"""Gates turn a lane red by measurement: exact, reach, bench."""
