"""The device waits for data: facts about the loader, the rules, and the fixes."""
