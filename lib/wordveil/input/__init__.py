"""Where records come from: tables, formats, columns and conditions, on plain data."""
