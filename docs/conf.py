"""How Sphinx builds these pages (`tox run -e docs`); every warning is an error there."""

project = "Urteil"
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
nitpicky = True
html_theme = "alabaster"
html_theme_options = {
    "description": "A chaos lab for clusters that speak the Kafka protocol",
    "page_width": "1280px",
}
html_show_copyright = False
myst_heading_anchors = 3
