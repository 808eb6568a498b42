"""What Spark, Delta and Hadoop provide: sessions, tables, files, locks."""
