"""Variables of a kernel before and after agents' cells, and the way back to them."""
