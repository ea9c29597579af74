"""The page of one audit: `audit.html` beside `result.json`, made of the files in that folder alone."""
