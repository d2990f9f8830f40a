"""How Actions, Observations and values look in a notebook."""
