"""What Spark, Delta and Hadoop give: sessions, tables, files, locks."""
