"""Words that are not words: addresses, numbers, dates, names and the like, each found and written as its class."""
