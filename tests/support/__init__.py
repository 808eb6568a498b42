"""What tests share: toys, made texts, real clusters, commands called in this process."""
