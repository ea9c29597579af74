"""`nonmember score`: membership scores of documents, in memory as a table or streamed as a folder of tables."""
