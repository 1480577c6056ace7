"""Wire formats of providers' APIs: requests, responses and streams."""
