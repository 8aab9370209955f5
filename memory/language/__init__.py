"""What is known of German, Russian and English: words, forms, statements, and which sentences give a fact away."""
