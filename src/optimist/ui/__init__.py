"""`optimist ui`: a local web page of runs, their memories, CAGE 2 replays and reports."""
