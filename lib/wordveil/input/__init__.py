"""Sources of records: tables, formats, columns and conditions, on plain data."""
