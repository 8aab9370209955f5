"""The running program: transports, models, embedders, configuration and the composition root."""

import os

# One question is too small to share out: numpy's other threads wait for it spinning (recall among 50,000 messages took
# 19 ms of processor time with two threads, 7 ms with one). Read when numpy is loaded, so it is set before anything is.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
