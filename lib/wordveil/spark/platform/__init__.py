"""Platform services of Spark, Delta and Hadoop: sessions, tables, files, locks."""
