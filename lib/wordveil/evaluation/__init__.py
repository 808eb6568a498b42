"""What a mechanism does to words, texts and those who attack them: statistics, attackers, utility tasks, previews."""
