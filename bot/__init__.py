"""The running program: transports, models, embedders, configuration and the composition root."""
