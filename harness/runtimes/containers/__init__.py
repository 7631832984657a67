"""The container engine, and the images that the lab's nodes run from."""
