"""Reports as data: texts in Markdown, tables and figures by the facts of results that they show."""
