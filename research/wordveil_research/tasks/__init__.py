"""What texts are used for, how it is measured, and data of such tasks."""
