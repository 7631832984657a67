"""The container engine, and the images of the lab's nodes."""
