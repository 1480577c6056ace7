"""Messages, parts and tools in the shapes that chat APIs and frameworks write them."""
