"""What a record becomes, without Spark."""
