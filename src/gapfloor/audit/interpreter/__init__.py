"""What an expression can stand for: names, calls, attributes, conditions and facts about libraries."""
