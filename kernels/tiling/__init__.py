"""How a problem is cut into programs: tiles of a product, splits of a context, whole numbers."""
