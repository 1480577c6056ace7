"""What every page is made of: templates, assets, formats, forms and text."""
