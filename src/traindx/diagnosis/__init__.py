"""From findings to belief: run the rules, weigh, fold, and ask. The only home of confidence."""
