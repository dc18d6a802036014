"""Programs that train the zoo's models, and the command line."""
