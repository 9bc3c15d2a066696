"""The site: what Sphinx, the browser and the server need, and the contents that the pages are made from."""
