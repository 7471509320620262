"""What uses the library: command line, tables, pages about models, saved models."""
