"""What the API server's audit log keeps of judged pods, added up. Pure: whoever calls reads the log and prints."""
