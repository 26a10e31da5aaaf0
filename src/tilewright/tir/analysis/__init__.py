"""Questions about loop programs, answered without changing them."""
