"""What the pages are made of: the frame of a page, numbers with units, charts, a trust graph."""
