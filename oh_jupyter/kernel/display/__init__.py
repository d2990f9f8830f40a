"""Display of Actions, Observations and values in a notebook."""
